"""Authentication and authorisation at a broker: TLS, tokens, certificates and an access list. Of the broker packages it
may import config.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from broker.security.access import NO_RIGHTS, Rights
    from broker.security.authentication import PeerCredentials, Security, check_exposure
    from broker.security.security_config import load_security
    from broker.security.tls import client_context

__all__ = ["NO_RIGHTS", "PeerCredentials", "Rights", "Security", "check_exposure", "client_context", "load_security"]

__getattr__ = lazy_exports(
    __name__,
    {
        "NO_RIGHTS": "broker.security.access",
        "PeerCredentials": "broker.security.authentication",
        "Rights": "broker.security.access",
        "Security": "broker.security.authentication",
        "check_exposure": "broker.security.authentication",
        "client_context": "broker.security.tls",
        "load_security": "broker.security.security_config",
    },
)
