"""Issues certificates for `mercast certs` and tokens for `mercast token`."""

from __future__ import annotations

import hashlib
import secrets
import sys
from pathlib import Path

import tomli_w

from broker.config.overlay_config import OverlayConfig, read_config
from broker.config.tables import ConfigError
from broker.security.access import UNSUPPORTED_WILDCARDS, WILDCARD
from topologies.files.toml import format_array_table

THIS_MACHINE = ("localhost", "127.0.0.1", "::1")


def issue_certificates(overlay: Path, out: Path, clients: tuple[str, ...]) -> None:
    """Writes certificates for an overlay's brokers and clients, and prints the [tls] table that uses them."""
    try:
        from broker.security.certificates import write_certificates
    except ImportError as error:
        raise ConfigError(f"making certificates needs {error.name}: pip install 'mercast[certs]'") from error
    config = read_config(overlay)
    if out.exists():
        raise ConfigError(f"{out} exists; certificates are written into a new folder, so that none is overwritten")
    brokers = {broker.id: _hosts(config, broker.id) for broker in config.overlay.brokers}
    for name in clients:
        if name in (*brokers, "ca"):
            raise ConfigError(f"a client cannot be called {name!r}: that is the name of a broker, or of the authority")
        if not name or "/" in name:
            raise ConfigError(f"{name!r} is no name for a client's files")
    written = write_certificates(out, config.name, brokers, clients)
    print(f"wrote {len(written)} files into {out}; for {overlay}:", file=sys.stderr)
    table = {"ca": f"{out}/ca.pem", "certificate": f"{out}/{{broker}}.pem", "key": f"{out}/{{broker}}.key"}
    print(tomli_w.dumps({"tls": table}), end="")
    print(
        f"{out}/ca.key can sign certificates that every broker trusts. This is a set for trying out: for production "
        "keep that key elsewhere, and give each machine its own certificate and key only.",
        file=sys.stderr,
    )


def _hosts(config: OverlayConfig, id: str) -> tuple[str, ...]:
    """The hosts of the broker's addresses. A broker on loopback gets all names of this machine."""
    table = config.brokers[id]
    hosts = [address.host for address in (table.address, table.listen) if address is not None]
    is_local = any(address.is_loopback for address in (table.address, table.listen) if address is not None)
    return tuple(dict.fromkeys((*(host for host in hosts if host), *(THIS_MACHINE if is_local else ()))))


def issue_token(name: str) -> None:
    """Prints a new token on stdout, and the access rule that accepts it on stderr."""
    if not name.strip() or any(each in name for each in (WILDCARD, *UNSUPPORTED_WILDCARDS)):
        raise ConfigError(f"{name!r} is no name for a client: its rule would fit others too; write one as sensor-1")
    token = secrets.token_urlsafe(32)
    digest = hashlib.sha256(token.encode()).hexdigest()
    print(token)
    rule = {"name": f"{name}*", "token_sha256": digest, **dict.fromkeys(("publish", "subscribe", "advertise"), "TRUE")}
    print(format_array_table("client", rule), end="", file=sys.stderr)
