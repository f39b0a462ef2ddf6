"""Where a client finds its brokers: `mercast://127.0.0.1:7001`, several with commas between, or a list of them."""

from __future__ import annotations

import os
from collections.abc import Iterable

from broker.client.errors import ServerAddressError
from broker.config.address import Address, AddressError, parse_address

SCHEME = "mercast://"
DEFAULT_SERVER = "mercast://127.0.0.1:7001"
VARIABLE = "MERCAST_SERVER"


def parse_servers(servers: str | Iterable[str]) -> tuple[Address, ...]:
    """The addresses in the order in which they are tried."""
    texts = [servers] if isinstance(servers, str) else list(servers)
    addresses: dict[Address, None] = {}
    for text in texts:
        for part in text.split(","):
            addresses[_address(part.strip(), text)] = None
    if not addresses:
        raise ServerAddressError(f"no server was given; for example {DEFAULT_SERVER}")
    return tuple(addresses)


def chosen_servers(option: str | None) -> str:
    """What the command line says, or the environment, or the address that `mercast up` uses first."""
    return option or os.environ.get(VARIABLE) or DEFAULT_SERVER


def _address(part: str, text: str) -> Address:
    scheme, separator, rest = part.rpartition("://")
    if separator and f"{scheme}://" != SCHEME:
        raise ServerAddressError(f"server {text!r}: {scheme}:// is not known; write {SCHEME}host:port")
    try:
        address = parse_address(rest.rstrip("/"))
    except AddressError as error:
        raise ServerAddressError(f"server {text!r}: {error}") from None
    if not address.port:
        raise ServerAddressError(f"server {text!r}: port 0 is no port to connect to")
    return address
