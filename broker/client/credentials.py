"""Credentials of commands, read from the environment: every user could read a secret on a command line.

MERCAST_TOKEN is the client's token. MERCAST_CLIENT is the prefix of its name: each command appends random letters, so
that several can run at once. MERCAST_CA is the file of the authority's certificate, and switches TLS on.
MERCAST_CERTIFICATE and MERCAST_KEY are the files of the client's own certificate and key.
"""

from __future__ import annotations

import os
import secrets
import ssl
from pathlib import Path
from typing import TypedDict

from broker.client.errors import ClientError
from broker.config.tables import ConfigError

CLIENT, TOKEN = "MERCAST_CLIENT", "MERCAST_TOKEN"
AUTHORITY, CERTIFICATE, KEY = "MERCAST_CA", "MERCAST_CERTIFICATE", "MERCAST_KEY"


class Credentials(TypedDict):
    name: str
    token: str
    tls: ssl.SSLContext | None


def environment_credentials() -> Credentials:
    """Returns arguments of `connect`."""
    authority, certificate, key = (os.environ.get(name) or None for name in (AUTHORITY, CERTIFICATE, KEY))
    if certificate and not authority:
        raise ClientError(f"{CERTIFICATE} is set and {AUTHORITY} is not: without TLS no certificate is shown")
    prefix = os.environ.get(CLIENT, "")
    name = f"{prefix}-{secrets.token_hex(6)}" if prefix else ""
    context = _context((authority, certificate, key), (AUTHORITY, CERTIFICATE, KEY)) if authority else None
    return Credentials(name=name, token=os.environ.get(TOKEN, ""), tls=context)


def tls(
    ca: str | Path | None = None, certificate: str | Path | None = None, key: str | Path | None = None
) -> ssl.SSLContext:
    """Returns the context for `connect(…, tls=tls("ca.pem"))`. Without `ca`, the system's authorities are trusted."""
    return _context((ca, certificate, key), ("ca", "certificate", "key"))


def _context(files: tuple[str | Path | None, ...], names: tuple[str, str, str]) -> ssl.SSLContext:
    from broker.security.tls import client_context

    try:
        ca, certificate, key = (None if each is None else Path(each) for each in files)
        return client_context(ca, certificate, key, names)
    except (ConfigError, OSError) as error:
        raise ClientError(f"TLS: {error}") from error
