"""Who may connect. A broker asks its authenticator about everyone who says hello, before anything else is done."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from broker.config.address import Address
from broker.security.access import ALL_RIGHTS, Rights


class InsecureError(Exception):
    """A broker would be open to everybody who reaches it."""

    exit_code = 3


@dataclass(frozen=True, slots=True)
class Introduction:
    """What is known of someone who connects."""

    name: str
    """A client's name, or a broker's id."""
    is_broker: bool
    token: str = field(repr=False)
    other_end: str
    """Its host and port."""
    certificate: object = None
    """Its TLS certificate as the standard library tells it, where there is one."""


class Authenticator(Protocol):
    def refusal(self, introduction: Introduction) -> str | None:
        """Why this one may not come in; None: it may."""

    def rights(self, introduction: Introduction) -> Rights | None:
        """What a client may do that came in; None: it may not be here any more."""

    def reload(self) -> None:
        """Reads again what may have changed; raises what is wrong with it, and then keeps what it had."""

    @property
    def own_token(self) -> str:
        """For what runs beside the broker in its process."""


class TrustEveryone:
    """For loopback, where the operating system keeps others out, and for whoever says `--insecure`."""

    own_token = ""

    def refusal(self, introduction: Introduction) -> str | None:
        return None

    def rights(self, introduction: Introduction) -> Rights | None:
        return ALL_RIGHTS

    def reload(self) -> None:
        """Nothing was read."""


@dataclass(frozen=True, slots=True)
class Contexts:
    """TLS, as the files of certificates were when they were read."""

    listening: ssl.SSLContext
    dialling: ssl.SSLContext
    inside: ssl.SSLContext
    """For what runs beside the broker in its process and connects as others do."""


@dataclass(slots=True)
class Security:
    authenticator: Authenticator = field(default_factory=TrustEveryone)
    token: str = field(default="", repr=False)
    """What this broker shows to others."""
    read_contexts: Callable[[], Contexts] | None = None
    """Without it no TLS is spoken."""
    _contexts: Contexts | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        if self.read_contexts is not None:
            self._contexts = self.read_contexts()

    @property
    def listening(self) -> ssl.SSLContext | None:
        return self._contexts.listening if self._contexts is not None else None

    @property
    def dialling(self) -> ssl.SSLContext | None:
        return self._contexts.dialling if self._contexts is not None else None

    @property
    def inside(self) -> ssl.SSLContext | None:
        return self._contexts.inside if self._contexts is not None else None

    def reload(self) -> None:
        """For connections to come. Raises what is wrong with a file, and then nothing has changed."""
        contexts = self.read_contexts() if self.read_contexts is not None else None
        self.authenticator.reload()
        self._contexts = contexts

    @property
    def is_open(self) -> bool:
        return isinstance(self.authenticator, TrustEveryone)


def check_exposure(listen: Address, security: Security, is_insecure: bool) -> None:
    """Refuses to listen for everybody unless told to."""
    if listen.is_loopback or is_insecure or not security.is_open:
        return
    raise InsecureError(
        f"{listen} can be reached from other machines, and nobody would be asked who they are; "
        "listen on 127.0.0.1, configure authentication, or say --insecure"
    )
