"""The tables of an overlay file that configure brokers: a dataclass for each table, with a reader for each key.

To add a table, write a dataclass of such keys, add a field to `overlay_config.OverlayConfig`, and add the table's name
to `topologies.files.toml.TABLES_OF_OTHERS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from broker.config.address import Address, AddressError, parse_address
from broker.config.duration import DurationError, parse_duration
from broker.core.settings import MILLISECOND, SECOND
from matching.registry import names as matcher_names
from routing.registry import names as protocol_names
from topologies.broker_and_link import METRICS, Metric
from topologies.errors import nearest

ANY_LOOPBACK_PORT = Address("127.0.0.1", 0)
OFF = "off"


class ConfigError(ValueError):
    """The configuration has a mistake. The message names its place."""

    exit_code = 3


Reader = Callable[[object, str], object]
"""Checks and converts a key's value. The second argument names the place of the key, for errors."""
T = TypeVar("T")


def key(default: Any, read: Reader, meaning: str) -> Any:
    """Declares a key of a table: its default, its reader and its meaning."""
    return field(default=default, metadata={"read": read, "meaning": meaning})


def text(value: object, place: str) -> str:
    if not isinstance(value, str):
        raise ConfigError(f"{place} must be text in quotes, not {value!r}")
    return value


def unchecked(value: object, _place: str) -> object:
    """Returns the value without a check, because another module reads it."""
    return value


def boolean(value: object, place: str) -> bool:
    if not isinstance(value, bool):
        raise ConfigError(f"{place} must be true or false, not {value!r}")
    return value


def duration(value: object, place: str) -> int:
    """Reads a duration into nanoseconds."""
    try:
        return parse_duration(text(value, place))
    except DurationError as error:
        raise ConfigError(f"{place}: {error}") from error


def positive_duration(value: object, place: str) -> int:
    ns = duration(value, place)
    if not ns:
        raise ConfigError(f"{place} must be longer than {value!r}")
    return ns


def at_least(smallest: int) -> Reader:
    def read(value: object, place: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < smallest:
            raise ConfigError(f"{place} must be a whole number from {smallest} on, not {value!r}")
        return value

    return read


def one_of(*known: str) -> Reader:
    def read(value: object, place: str) -> str:
        if value not in known:
            raise ConfigError(f"{place} is {value!r}; {nearest(str(value), known)}")
        return str(value)

    return read


def read_table(kind: type[T], table: object, place: str) -> T:
    """Reads a table into its dataclass. An unknown key is an error that names the nearest known key."""
    if not isinstance(table, Mapping):
        raise ConfigError(f"{place} must be a table")
    known = {each.name: each.metadata["read"] for each in fields(kind)}  # type: ignore[arg-type]
    for name in table:
        if name not in known:
            raise ConfigError(f"{place} has an unknown key {name!r}; {nearest(str(name), known)}")
    return kind(**{name: known[name](value, f"{place} {name}") for name, value in table.items()})


@dataclass(frozen=True, slots=True)
class HeartbeatTable:
    every: int = key(SECOND, positive_duration, "the interval of heartbeats between neighbours")
    dead_after: int = key(3 * SECOND, positive_duration, "the silence after which a link to a neighbour is down")
    redial_first: int = key(100 * MILLISECOND, positive_duration, "the first wait before reconnecting to a neighbour")
    redial_at_most: int = key(2 * SECOND, positive_duration, "the longest wait; waits double up to it and vary by half")
    clock_skew: int = key(50 * MILLISECOND, duration, "the largest difference between the clocks of two brokers")


FSYNC_POLICIES = ("batch", "checkpoint", "never")


@dataclass(frozen=True, slots=True)
class StoreTable:
    data_dir: str = key("", text, "the folder in which each broker has a folder for its store; empty: memory only")
    fsync: str = key(
        "batch",
        one_of(*FSYNC_POLICIES),
        "batch: accepted publications survive a power cut; checkpoint: they survive a killed process; never: as "
        "checkpoint, and a power cut may damage the store",
    )


@dataclass(frozen=True, slots=True)
class DeliveryTable:
    hold: int = key(30 * SECOND, positive_duration, "how long a publication is kept for an unreachable broker")
    session: int = key(60 * SECOND, duration, "how long a session is kept for a client that lost its connection")
    outbox: int = key(10_000, at_least(1), "deliveries queued for one client")
    outbox_bytes: int = key(64 << 20, at_least(1), "attributes and payloads of these deliveries, in bytes")
    when_full: str = key(
        "drop",
        one_of("drop", "disconnect"),
        "drop: the oldest unsent delivery is dropped; disconnect: the client is disconnected too",
    )


@dataclass(frozen=True, slots=True)
class LimitsTable:
    """Limits on frames, publications, clients, links and queues."""

    frame_bytes: int = key(1 << 20, at_least(1 << 10), "size of a frame with its length prefix")
    header_bytes: int = key(1 << 20, at_least(1 << 10), "size of a frame's header, which brokers decode to forward it")
    text_bytes: int = key(1 << 16, at_least(64), "size of a name, an address or an expression")
    destinations: int = key(4096, at_least(1), "destinations of one message")
    publication_bytes: int = key(512 << 10, at_least(1), "size of a publication's attributes and payload")
    attributes: int = key(256, at_least(1), "attributes of a publication")
    subscriptions: int = key(10_000, at_least(1), "subscriptions, and as many advertisements, of one client")
    connections: int = key(1_000, at_least(1), "connected clients")
    sessions: int = key(10_000, at_least(1), "sessions of connected and absent clients")
    neighbours: int = key(64, at_least(1), "links to other brokers")
    idle: int = key(60 * SECOND, positive_duration, "the silence after which a client is disconnected")
    hello: int = key(5 * SECOND, positive_duration, "the time in which a new connection must send its hello")
    publish_window: int = key(1_024, at_least(1), "publications of one client that the broker has not answered")
    window: int = key(4096, at_least(1), "publications of a broker that some destination has not settled")
    retained_bytes: int = key(16 << 20, at_least(0), "size of settled publications retained for late subscriptions")
    credit: int = key(256, at_least(1), "publications in flight on a link")
    link_queue: int = key(4096, at_least(1), "publications queued for a link")


@dataclass(frozen=True, slots=True)
class ReorganiseTable:
    every: int = key(0, duration, "the interval at which brokers may change their links; 0s: links never change")
    most_links: int = key(8, at_least(1), "the largest number of links that a broker aims for")


def _address(value: object, place: str) -> Address:
    try:
        return parse_address(text(value, place))
    except AddressError as error:
        raise ConfigError(f"{place}: {error}") from error


def _address_or_off(value: object, place: str) -> Address | None:
    return None if value == OFF else _address(value, place)


@dataclass(frozen=True, slots=True)
class OverlayTable:
    protocol: str = key(
        "",
        lambda value, place: one_of(*protocol_names())(value, place),
        "the routing protocol; default: merc for an overlay with clusters, else d-dbr",
    )
    advertise: str = key("open", one_of("open", "strict"), "strict: publishing needs an advertisement")
    matcher: str = key("auto", one_of(*matcher_names()), "the index that matches publications")
    metric: Metric = key("hops", one_of(*METRICS), "the link cost that shortest paths minimise")  # noqa: RUF009
    covering: bool | None = key(None, boolean, "fbr: covered subscriptions are not forwarded")
    readvertise: bool | None = key(None, boolean, "fbr: brokers repair broken trees")

    @property
    def router_options(self) -> dict[str, object]:
        chosen = {"covering": self.covering, "readvertise": self.readvertise}
        return {option: value for option, value in chosen.items() if value is not None}


@dataclass(frozen=True, slots=True)
class BrokerTable:
    listen: Address | None = key(None, _address, "the address to listen on, for clients and brokers")  # noqa: RUF009
    address: Address | None = key(None, _address, "the address that others connect to; default: listen")  # noqa: RUF009
    admin: Address | None = key(ANY_LOOPBACK_PORT, _address_or_off, "address of the admin pages; off: none")  # noqa: RUF009
    data_dir: str | None = key(None, text, "the folder of this broker's store; default: a folder in [store] data_dir")
    cores: int = key(1, at_least(1), "processor cores of the broker in simulations")
    mqtt: object = key("", unchecked, "the MQTT broker that this broker has a gateway to: an address or a table")

    @property
    def contact_address(self) -> Address | None:
        """The address that clients and other brokers connect to."""
        return self.address or self.listen
