"""Authentication by certificates, tokens and the access list.

A broker presents a certificate of the overlay's authority that names its id, or the brokers' token. A client must match
a rule of the access list. Without an access list it must present a certificate of the authority. No rule and no
certificate admits a client under the name of the broker's MQTT gateway.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from broker.security.access import ALL_RIGHTS, AccessList, Rights
from broker.security.authentication import PeerCredentials

UNKNOWN_CLIENT = "no client of that name with these credentials may connect here"
"""The message hides whether the name or the credentials are wrong, so that an attacker cannot test names."""


@dataclass(slots=True)
class CredentialAuthenticator:
    """The authenticator of a broker whose configuration has [tls] or [acl]."""

    read_access: Callable[[], AccessList | None]
    has_tls: bool
    brokers: tuple[str, ...]
    """The ids of the overlay's brokers in the overlay file."""
    lets_others_join: bool
    gateway_client: str
    """The client name of the broker's MQTT gateway. Only a client with the internal token can have it."""
    brokers_token: str = field(default="", repr=False)
    internal_token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    """Presented by clients inside the broker's process. It leaves the process only over loopback."""
    access: AccessList | None = field(init=False)

    def __post_init__(self) -> None:
        self.access = self.read_access()

    def reload(self) -> None:
        self.access = self.read_access()

    def refusal(self, credentials: PeerCredentials) -> str | None:
        if credentials.is_broker:
            return self._broker_refusal(credentials)
        return None if self.rights(credentials) is not None else UNKNOWN_CLIENT

    def _broker_refusal(self, credentials: PeerCredentials) -> str | None:
        id = credentials.name
        if id not in self.brokers and not self.lets_others_join:
            return f"{id[:80]} is no broker of this overlay"
        if self.has_tls:
            if id not in certificate_names(credentials.certificate):
                return f"the certificate is not one of broker {id[:80]}"
        elif not self.brokers_token:
            return f"without TLS and a brokers' token {id[:80]} cannot be told from others"
        elif not hmac.compare_digest(credentials.token.encode(), self.brokers_token.encode()):
            return f"{id[:80]} does not know the brokers' token"
        return None

    def rights(self, credentials: PeerCredentials) -> Rights | None:
        """The rights of a client, or None if it may not connect."""
        if hmac.compare_digest(credentials.token.encode(), self.internal_token.encode()):
            return ALL_RIGHTS
        if credentials.name == self.gateway_client:
            # Reserved even without a gateway: the broker keeps the session of a gateway that comes back.
            return None
        names = certificate_names(credentials.certificate)
        if self.access is None:
            return ALL_RIGHTS if names else None
        return self.access.rights_of(credentials.name, credentials.token, names)


def certificate_names(certificate: object) -> tuple[str, ...]:
    """The common name and the DNS names of a certificate in the form of `ssl.SSLSocket.getpeercert`.

    Empty without a certificate.
    """
    if not isinstance(certificate, Mapping):
        return ()
    common = [value for part in certificate.get("subject", ()) for key, value in part if key == "commonName"]
    others = [value for kind, value in certificate.get("subjectAltName", ()) if kind == "DNS"]
    return tuple(dict.fromkeys((*common, *others)))
