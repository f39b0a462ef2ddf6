"""What commands show to brokers, from the environment: a secret on a command line could be read by every user.

MERCAST_TOKEN is the client's token, and MERCAST_CLIENT what its name begins with: each command adds some letters, so
that several can run at once. MERCAST_CA is the file with the authority's certificate, and switches TLS on;
MERCAST_CERTIFICATE and MERCAST_KEY are the client's own.
"""

from __future__ import annotations

import os
import secrets
import ssl
from pathlib import Path
from typing import TypedDict

from broker.client.errors import ClientError
from broker.config_tables import ConfigError

CLIENT, TOKEN = "MERCAST_CLIENT", "MERCAST_TOKEN"
AUTHORITY, CERTIFICATE, KEY = "MERCAST_CA", "MERCAST_CERTIFICATE", "MERCAST_KEY"


class Shown(TypedDict):
    name: str
    token: str
    tls: ssl.SSLContext | None


def shown_credentials() -> Shown:
    """Arguments of `connect`."""
    authority, certificate, key = (os.environ.get(name) for name in (AUTHORITY, CERTIFICATE, KEY))
    if certificate and not authority:
        raise ClientError(f"{CERTIFICATE} is set and {AUTHORITY} is not: without TLS no certificate is shown")
    begins = os.environ.get(CLIENT, "")
    name = f"{begins}-{secrets.token_hex(6)}" if begins else ""
    return Shown(
        name=name, token=os.environ.get(TOKEN, ""), tls=tls(authority, certificate, key) if authority else None
    )


def tls(
    ca: str | Path | None = None, certificate: str | Path | None = None, key: str | Path | None = None
) -> ssl.SSLContext:
    """For `connect(…, tls=tls("ca.pem"))`. Without `ca` the system's authorities count."""
    from broker.security.tls import client_context

    try:
        return client_context(*(None if each is None else Path(each) for each in (ca, certificate, key)))
    except (ConfigError, OSError) as error:
        raise ClientError(f"TLS: {error}") from error
