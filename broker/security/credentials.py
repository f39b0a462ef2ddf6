"""Are clients and brokers who they say they are?

A broker shows a certificate of the overlay's authority with its id on it, or knows the brokers' token. A client is let
in by the access list; without one, by any certificate of the authority.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from broker.security.access import ALL_RIGHTS, AccessList, Rights
from broker.security.authentication import Introduction

UNKNOWN_CLIENT = "no client of that name with these credentials may connect here"
"""Says nothing about which of the two is wrong."""


@dataclass(slots=True)
class Credentials:
    """The broker's authenticator when its configuration asks for one."""

    read_access: Callable[[], AccessList | None]
    has_tls: bool
    brokers: tuple[str, ...]
    """The overlay's brokers, as the file names them."""
    lets_others_join: bool
    brokers_token: str = field(default="", repr=False)
    own_token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    """Shown by what runs beside the broker in its process; it never leaves this process but over loopback."""
    access: AccessList | None = field(init=False)

    def __post_init__(self) -> None:
        self.access = self.read_access()

    def reload(self) -> None:
        self.access = self.read_access()

    def refusal(self, introduction: Introduction) -> str | None:
        if introduction.is_broker:
            return self._refusal_of_broker(introduction)
        return None if self.rights(introduction) is not None else UNKNOWN_CLIENT

    def _refusal_of_broker(self, introduction: Introduction) -> str | None:
        id = introduction.name
        if id not in self.brokers and not self.lets_others_join:
            return f"{id[:80]} is no broker of this overlay"
        if self.has_tls:
            if id not in names_of(introduction.certificate):
                return f"the certificate is not one of broker {id[:80]}"
        elif not self.brokers_token:
            return f"without TLS and a brokers' token {id[:80]} cannot be told from others"
        elif not hmac.compare_digest(introduction.token.encode(), self.brokers_token.encode()):
            return f"{id[:80]} does not know the brokers' token"
        return None

    def rights(self, introduction: Introduction) -> Rights | None:
        """What a client may do; None: it may not come in."""
        if hmac.compare_digest(introduction.token.encode(), self.own_token.encode()):
            return ALL_RIGHTS
        names = names_of(introduction.certificate)
        if self.access is None:
            return ALL_RIGHTS if names else None
        return self.access.rights_of(introduction.name, introduction.token, names)


def names_of(certificate: object) -> tuple[str, ...]:
    """The common name and the DNS names on a certificate, as the standard library tells it; none without one."""
    if not isinstance(certificate, Mapping):
        return ()
    common = [value for part in certificate.get("subject", ()) for key, value in part if key == "commonName"]
    others = [value for kind, value in certificate.get("subjectAltName", ()) if kind == "DNS"]
    return tuple(dict.fromkeys((*common, *others)))
