"""Authentication of clients and brokers. A broker calls its authenticator for every hello, before any other step."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from broker.config.address import Address
from broker.security.access import ALL_RIGHTS, Rights


class InsecureError(Exception):
    """A broker would accept connections from other machines without authentication."""

    exit_code = 3


@dataclass(frozen=True, slots=True)
class PeerCredentials:
    """The credentials that a connecting client or broker presents."""

    name: str
    """A client's name, or a broker's id."""
    is_broker: bool
    token: str = field(repr=False)
    address: str
    """Host and port of the other end of the connection."""
    certificate: object = None
    """The peer's TLS certificate in the form of `ssl.SSLSocket.getpeercert`, or None."""


class Authenticator(Protocol):
    def refusal(self, credentials: PeerCredentials) -> str | None:
        """The reason why the peer may not connect, or None if it may."""

    def rights(self, credentials: PeerCredentials) -> Rights | None:
        """The rights of a connected client, or None if it may no longer be connected."""

    def reload(self) -> None:
        """Reads files again that may have changed. Raises an error and keeps the old state if one is invalid."""

    @property
    def internal_token(self) -> str:
        """The token of clients that run inside the broker's process, such as a gateway."""


class AllowAllAuthenticator:
    """Accepts every peer with all rights. For loopback, which other machines cannot reach, and for `--insecure`."""

    internal_token = ""

    def refusal(self, credentials: PeerCredentials) -> str | None:
        return None

    def rights(self, credentials: PeerCredentials) -> Rights | None:
        return ALL_RIGHTS

    def reload(self) -> None:
        """Does nothing: this authenticator reads no files."""


@dataclass(frozen=True, slots=True)
class TlsContexts:
    """TLS contexts with the content that the certificate files had when they were read."""

    server: ssl.SSLContext
    link: ssl.SSLContext
    internal: ssl.SSLContext
    """For clients that run inside the broker's process and connect to it over loopback."""


@dataclass(slots=True)
class Security:
    """A broker's authenticator, the token that it presents to neighbours, and its TLS contexts."""

    authenticator: Authenticator = field(default_factory=AllowAllAuthenticator)
    token: str = field(default="", repr=False)
    """The token that this broker presents to other brokers."""
    read_contexts: Callable[[], TlsContexts] | None = None
    """Reads the certificate files. None disables TLS."""
    read_admin_token: Callable[[], str] = str
    """Reads the token of the admin pages. An empty text means that they need none."""
    admin_token: str = field(init=False, repr=False)
    _contexts: TlsContexts | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.admin_token = self.read_admin_token()
        if self.read_contexts is not None:
            self._contexts = self.read_contexts()

    @property
    def server_tls(self) -> ssl.SSLContext | None:
        """The context for accepted connections, or None without TLS."""
        return self._contexts.server if self._contexts is not None else None

    @property
    def link_tls(self) -> ssl.SSLContext | None:
        """The context for links to other brokers, or None without TLS."""
        return self._contexts.link if self._contexts is not None else None

    @property
    def internal_tls(self) -> ssl.SSLContext | None:
        """The context for connections of the broker to itself, or None without TLS."""
        return self._contexts.internal if self._contexts is not None else None

    def reload(self) -> None:
        """Reads all files again, for new connections. Raises an error and changes nothing if a file is invalid."""
        contexts = self.read_contexts() if self.read_contexts is not None else None
        admin_token = self.read_admin_token()
        self.authenticator.reload()
        self._contexts, self.admin_token = contexts, admin_token

    @property
    def allows_everyone(self) -> bool:
        """Whether every client has all rights."""
        return isinstance(self.authenticator, AllowAllAuthenticator)


def check_exposure(listen: Address, admin: Address | None, security: Security, is_insecure: bool) -> None:
    """Raises InsecureError if other machines reach the broker or its admin pages without authentication and without
    `--insecure`."""
    if is_insecure:
        return
    if security.allows_everyone and not listen.is_loopback:
        raise InsecureError(
            f"{listen} can be reached from other machines, and nobody would be asked who they are; "
            "listen on 127.0.0.1, configure authentication, or say --insecure"
        )
    if admin is not None and not admin.is_loopback and not security.admin_token:
        raise InsecureError(
            f"admin = {str(admin)!r} can be reached from other machines, and anyone there could make the broker leave "
            f'the overlay; write admin = "127.0.0.1:{admin.port}", name a token file in [admin] token_file, '
            "or say --insecure"
        )
