"""Authentication and authorisation at a broker: TLS, tokens, certificates and an access list."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from broker.security.access import AccessList
    from broker.security.authentication import Security
    from broker.security.security_config import load_security

__all__ = ["AccessList", "Security", "load_security"]

__getattr__ = lazy_exports(
    __name__,
    {
        "AccessList": "broker.security.access",
        "Security": "broker.security.authentication",
        "load_security": "broker.security.security_config",
    },
)
