"""The tables of an overlay file that tell brokers how to run: each a dataclass, each key with a reader and a meaning.

Another table is another dataclass of such keys, and a field of `config.OverlayConfig`; nothing else must be taught
about it but its name in `topologies.files.toml.TABLES_OF_OTHERS`.
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
    """A configuration that cannot be used as it stands; the message names the place."""

    exit_code = 3


Reader = Callable[[object, str], object]
T = TypeVar("T")


def key(default: Any, read: Reader, meaning: str) -> Any:
    """A key of a table: what it is when left out, how it is read, and what it means."""
    return field(default=default, metadata={"read": read, "meaning": meaning})


def text(value: object, place: str) -> str:
    if not isinstance(value, str):
        raise ConfigError(f"{place} must be text in quotes, not {value!r}")
    return value


def unchecked(value: object, _place: str) -> object:
    """For what another module reads."""
    return value


def boolean(value: object, place: str) -> bool:
    if not isinstance(value, bool):
        raise ConfigError(f"{place} must be true or false, not {value!r}")
    return value


def duration(value: object, place: str) -> int:
    """In nanoseconds."""
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
    """The table as its dataclass. A key that the dataclass lacks is an error that names the nearest."""
    if not isinstance(table, Mapping):
        raise ConfigError(f"{place} must be a table")
    known = {each.name: each.metadata["read"] for each in fields(kind)}  # type: ignore[arg-type]
    for name in table:
        if name not in known:
            raise ConfigError(f"{place} has an unknown key {name!r}; {nearest(str(name), known)}")
    return kind(**{name: known[name](value, f"{place} {name}") for name, value in table.items()})


@dataclass(frozen=True, slots=True)
class HeartbeatTable:
    every: int = key(SECOND, positive_duration, "how often neighbours hear from each other")
    dead_after: int = key(3 * SECOND, positive_duration, "a neighbour that was silent for so long is lost")
    redial_first: int = key(100 * MILLISECOND, positive_duration, "the wait before a lost neighbour is dialled again")
    redial_at_most: int = key(2 * SECOND, positive_duration, "that wait doubles up to this, and varies by half")
    clock_skew: int = key(50 * MILLISECOND, duration, "how far the clocks of two brokers may be apart")


FSYNC_POLICIES = ("batch", "checkpoint", "never")


@dataclass(frozen=True, slots=True)
class StoreTable:
    data_dir: str = key("", text, "brokers keep their state in a folder of their own in here; none: in memory only")
    fsync: str = key(
        "batch",
        one_of(*FSYNC_POLICIES),
        "batch: what is accepted survives a power cut; checkpoint: it survives a killed process; never: the same, and "
        "a power cut may damage the store",
    )


@dataclass(frozen=True, slots=True)
class DeliveryTable:
    hold: int = key(30 * SECOND, positive_duration, "how long a publication is kept for brokers out of reach")
    session: int = key(60 * SECOND, duration, "how long a session waits for a client that lost its connection")
    outbox: int = key(10_000, at_least(1), "deliveries that wait for one client")
    outbox_bytes: int = key(64 << 20, at_least(1), "their attributes and payloads in bytes")
    when_full: str = key(
        "drop",
        one_of("drop", "disconnect"),
        "drop: the oldest that was not sent goes; disconnect: so does the connection",
    )


@dataclass(frozen=True, slots=True)
class LimitsTable:
    frame_bytes: int = key(1 << 20, at_least(1 << 10), "a frame, its length included")
    header_bytes: int = key(1 << 20, at_least(1 << 10), "what brokers read of a frame when they pass it on")
    header_depth: int = key(5, at_least(5), "arrays within arrays in a header")
    text_bytes: int = key(1 << 16, at_least(64), "a name, an address or an expression")
    destinations: int = key(4096, at_least(1), "brokers that one message names")
    publication_bytes: int = key(512 << 10, at_least(1), "attributes and payload of a publication")
    attributes: int = key(256, at_least(1), "attributes of a publication")
    subscriptions: int = key(10_000, at_least(1), "subscriptions, and as many advertisements, of one client")
    connections: int = key(1_000, at_least(1), "clients that are connected")
    sessions: int = key(10_000, at_least(1), "sessions that are kept, of clients that are connected or away")
    neighbours: int = key(64, at_least(1), "links to other brokers")
    idle: int = key(60 * SECOND, positive_duration, "a client that was silent for so long is disconnected")
    hello: int = key(5 * SECOND, positive_duration, "whoever connects says who it is within this time")
    publish_window: int = key(1_024, at_least(1), "publications of one client that wait for an answer")
    window: int = key(4096, at_least(1), "publications of a broker that are not settled at all their destinations")
    retained_bytes: int = key(16 << 20, at_least(0), "settled publications that are kept for late subscriptions")
    credit: int = key(256, at_least(1), "publications in flight on a link")
    link_queue: int = key(4096, at_least(1), "publications that wait for a link")


@dataclass(frozen=True, slots=True)
class ReorganiseTable:
    every: int = key(0, duration, "the cycle in which brokers may change their links; none: links stay as they are")
    most_links: int = key(8, at_least(1), "links that a broker keeps to")


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
        one_of(*protocol_names()),
        "how publications are routed; left out: merc where there are clusters, else d-dbr",
    )
    advertise: str = key("open", one_of("open", "strict"), "strict: publishing needs an advertisement")
    matcher: str = key("auto", one_of(*matcher_names()), "the index that matches publications")
    metric: Metric = key("hops", one_of(*METRICS), "what the shortest path is the shortest of")  # noqa: RUF009
    covering: bool | None = key(None, boolean, "fbr: a subscription that another covers is not passed on")
    readvertise: bool | None = key(None, boolean, "fbr: trees are mended")

    @property
    def router_options(self) -> dict[str, object]:
        chosen = {"covering": self.covering, "readvertise": self.readvertise}
        return {option: value for option, value in chosen.items() if value is not None}


@dataclass(frozen=True, slots=True)
class BrokerTable:
    listen: Address | None = key(None, _address, "where clients and other brokers connect")  # noqa: RUF009
    address: Address | None = key(None, _address, "where others reach it, if not where it listens")  # noqa: RUF009
    admin: Address | None = key(ANY_LOOPBACK_PORT, _address_or_off, "the admin pages; off: none")  # noqa: RUF009
    data_dir: str | None = key(None, text, "this broker's own folder, instead of one in the store's")
    cores: int = key(1, at_least(1), "for simulations")
    mqtt: object = key("", unchecked, "the MQTT broker that it is a gateway to, as an address or a table")

    @property
    def contact_address(self) -> Address | None:
        return self.address or self.listen
