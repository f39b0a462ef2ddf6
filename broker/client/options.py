"""A client's options and the addresses of its servers."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterable
from dataclasses import dataclass, field

from broker.client.errors import ServerAddressError
from broker.config.address import Address, AddressError, parse_address
from broker.wire.client_frames import DeliveryMode

SCHEME = "mercast://"
DEFAULT_SERVER = "mercast://127.0.0.1:7001"
VARIABLE = "MERCAST_SERVER"


@dataclass(frozen=True, slots=True)
class ClientOptions:
    name: str = ""
    """Random if empty. A durable client needs a name, by which the broker recognises it after a restart."""
    token: str = field(default="", repr=False)
    tls: ssl.SSLContext | None = None
    """None: the connection is not encrypted."""
    mode: DeliveryMode = DeliveryMode.AT_LEAST_ONCE
    is_durable: bool = False
    window: int = 1024
    """The largest number of deliveries that are in flight or queued in the client."""
    connect_within_s: float = 5.0
    """The time limit for one server in one attempt."""
    wait_s: float = 0.0
    """At the start: how long to retry while no server accepts the connection."""
    reconnect_within_s: float | None = None
    """After a lost connection: how long to retry. None: without limit."""
    timeout_s: float | None = 30.0
    """How long to wait for a broker's answer."""
    drain_s: float = 5.0
    """How long `close` waits for answers to publications."""


def parse_servers(servers: str | Iterable[str]) -> tuple[Address, ...]:
    """Reads addresses such as `mercast://127.0.0.1:7001`: one, several with commas, or a list. Keeps their order."""
    texts = [servers] if isinstance(servers, str) else list(servers)
    addresses: dict[Address, None] = {}
    for text in texts:
        for part in text.split(","):
            addresses[_address(part.strip(), text)] = None
    if not addresses:
        raise ServerAddressError(f"no server was given; for example {DEFAULT_SERVER}")
    return tuple(addresses)


def chosen_servers(option: str | None) -> str:
    """Returns the command-line option, else `MERCAST_SERVER`, else the first address that `mercast up` uses."""
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
