"""The tables of an overlay file that configure brokers: a struct for each table, with a type for each key.

To add a table, write such a struct, add a field to `overlay_config.OverlayConfig`, and add the table's name to
`topologies.files.toml.TablesOfOthers`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias, get_args

from msgspec import Meta

from broker.config.address import Address, parse_address
from broker.config.duration import Duration, PositiveDuration, parse_duration
from broker.core.settings import MILLISECOND, SECOND
from topologies.broker_and_link import Metric
from topologies.files.typed_tables import INT_MAX, Count, Parser, Table, Whole, expecting

ANY_LOOPBACK_PORT = Address("127.0.0.1", 0)

Fsync: TypeAlias = Literal["batch", "checkpoint", "never"]
FSYNC_POLICIES: tuple[Fsync, ...] = get_args(Fsync)
FrameBytes: TypeAlias = Annotated[int, Meta(ge=1 << 10, le=INT_MAX)]
TextBytes: TypeAlias = Annotated[int, Meta(ge=64, le=INT_MAX)]


class ConfigError(ValueError):
    """The configuration has a mistake. The message names its place."""

    exit_code = 3


def parse_positive_duration(text: str) -> PositiveDuration:
    ns = parse_duration(text)
    if not ns:
        raise ConfigError(f"{text!r} is too short; it must be longer")
    return PositiveDuration(ns)


PARSERS: Mapping[type, Parser] = {
    Address: parse_address,
    Duration: lambda text: Duration(parse_duration(text)),
    PositiveDuration: parse_positive_duration,
}


class HeartbeatTable(Table, frozen=True, kw_only=True):
    every: PositiveDuration = PositiveDuration(SECOND)
    """The interval of heartbeats between neighbours."""
    dead_after: PositiveDuration = PositiveDuration(3 * SECOND)
    """The silence after which a link to a neighbour is down."""
    redial_first: PositiveDuration = PositiveDuration(100 * MILLISECOND)
    """The first wait before reconnecting to a neighbour."""
    redial_at_most: PositiveDuration = PositiveDuration(2 * SECOND)
    """The longest wait; waits double up to it and vary by half."""
    clock_skew: Duration = Duration(50 * MILLISECOND)
    """The largest difference between the clocks of two brokers."""


class StoreTable(Table, frozen=True, kw_only=True):
    data_dir: str = ""
    """The folder in which each broker has a folder for its store; empty: memory only."""
    fsync: Fsync = "batch"
    """batch: accepted publications survive a power cut; checkpoint: they survive a killed process; never: as
    checkpoint, and a power cut may damage the store."""


class DeliveryTable(Table, frozen=True, kw_only=True):
    hold: PositiveDuration = PositiveDuration(30 * SECOND)
    """How long a publication is kept for an unreachable broker."""
    session: Duration = Duration(60 * SECOND)
    """How long a session is kept for a client that lost its connection."""
    outbox: Count = 10_000
    """Deliveries queued for one client."""
    outbox_bytes: Count = 64 << 20
    """Attributes and payloads of these deliveries, in bytes."""
    when_full: Literal["drop", "disconnect"] = "drop"
    """drop: the oldest unsent delivery is dropped; disconnect: the client is disconnected too."""
    once: PositiveDuration = PositiveDuration(600 * SECOND)
    """How long a broker knows the id that a client gave a publication."""


class LimitsTable(Table, frozen=True, kw_only=True):
    """Limits on frames, publications, clients, links and queues."""

    frame_bytes: FrameBytes = 1 << 20
    """Size of a frame with its length prefix."""
    header_bytes: FrameBytes = 1 << 20
    """Size of a frame's header, which brokers decode to forward it."""
    text_bytes: TextBytes = 1 << 16
    """Size of a name, an address or an expression."""
    destinations: Count = 4096
    """Destinations of one message."""
    publication_bytes: Count = 512 << 10
    """Size of a publication's attributes and payload."""
    attribute_bytes: Count = 64 << 10
    """Size of a publication's attributes. Patterns examine all of it."""
    attributes: Count = 256
    """Attributes of a publication."""
    subscriptions: Count = 10_000
    """Subscriptions, and as many advertisements, of one client."""
    expression_bytes: Count = 8 << 20
    """Size of the expressions of all subscriptions and advertisements of one client."""
    patterns: Whole = 1_000
    """Patterns (MATCHES, LIKE) in all subscriptions and advertisements of one client."""
    connections: Count = 1_000
    """Connected clients."""
    sessions: Count = 10_000
    """Sessions of connected and absent clients."""
    neighbours: Count = 64
    """Links to other brokers."""
    idle: PositiveDuration = PositiveDuration(60 * SECOND)
    """The silence after which a client is disconnected."""
    hello: PositiveDuration = PositiveDuration(5 * SECOND)
    """The time from accepting a connection, TLS handshake included, in which its hello must arrive."""
    hello_bytes: FrameBytes = 16 << 10
    """Size of a hello, the first frame of a connection."""
    pending_connections: Count = 1_024
    """Connections whose hello has not arrived. The oldest gives way to a new one."""
    publish_window: Count = 1_024
    """Publications of one client that the broker has not answered."""
    window: Count = 4096
    """Publications of a broker that some destination has not settled."""
    retained_bytes: Whole = 16 << 20
    """Size of settled publications retained for late subscriptions."""
    credit: Count = 256
    """Publications in flight on a link."""
    link_queue: Count = 4096
    """Publications queued for a link."""
    once_ids: Count = 65_536
    """Ids of publications that a broker knows, to deliver each once."""


class AdminTable(Table, frozen=True, kw_only=True):
    """Access to the admin pages."""

    token_file: str = ""
    """A file with the token that requests must present. Pages that other machines reach need one."""
    hosts: Annotated[tuple[str, ...], expecting('a list of names, for example ["b1.example.org"]')] = ()
    """Names of the pages' host in requests, besides its addresses, localhost and the hosts of listen and address."""


class ReorganiseTable(Table, frozen=True, kw_only=True):
    every: Duration = Duration(0)
    """The interval at which brokers may change their links; 0s: links never change."""
    most_links: Count = 8
    """The largest number of links that a broker aims for."""


class OverlayTable(Table, frozen=True, kw_only=True):
    protocol: str | None = None
    """The routing protocol; default: merc for an overlay with clusters, else d-dbr."""
    advertise: Literal["open", "strict"] = "open"
    """strict: publishing needs an advertisement."""
    matcher: str = "auto"
    """The index that matches publications."""
    metric: Metric = "hops"
    """The link cost that shortest paths minimise."""
    covering: bool | None = None
    """fbr: covered subscriptions are not forwarded."""
    readvertise: bool | None = None
    """fbr: brokers repair broken trees."""

    @property
    def router_options(self) -> dict[str, object]:
        chosen = {"covering": self.covering, "readvertise": self.readvertise}
        return {option: value for option, value in chosen.items() if value is not None}


class BrokerTable(Table, frozen=True, kw_only=True):
    listen: Address | None = None
    """The address to listen on, for clients and brokers."""
    address: Address | None = None
    """The address that others connect to; default: listen."""
    admin: Address | None = ANY_LOOPBACK_PORT
    """Address of the admin pages; off: none."""
    data_dir: str | None = None
    """The folder of this broker's store; default: a folder in [store] data_dir."""
    cores: Count = 1
    """Processor cores of the broker in simulations."""
    mqtt: Any = ""
    """The MQTT broker that this broker has a gateway to: an address or a table."""

    @property
    def contact_address(self) -> Address | None:
        """The address that clients and other brokers connect to."""
        return self.address or self.listen
