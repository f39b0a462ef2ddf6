"""Settings of a broker core: times and limits. All limits are finite."""

from __future__ import annotations

from dataclasses import dataclass

MILLISECOND = 1_000_000
"""A millisecond in nanoseconds, the unit of all times of the core."""
SECOND = 1_000_000_000
"""A second in nanoseconds."""
FOREVER = 1 << 62
"""A time that never comes."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Times in nanoseconds."""

    is_durable: bool = False
    """Whether requests and deliveries are stored before they are accepted or settled."""
    is_open: bool = True
    """Whether clients publish without advertising: the broker itself advertises everything."""
    tick: int = SECOND
    """The interval of heartbeats, and of retransmission of unacknowledged messages."""
    dead_after: int = 3 * SECOND
    """A neighbour that is silent for longer is lost."""
    acknowledge_after: int = 5 * MILLISECOND
    """How long settled publications are collected before one frame reports them."""
    catch_up_after: int = 20 * MILLISECOND
    """How long received link states are collected before they are applied together."""
    patience: int = 5 * SECOND
    """Time until the first retransmission. It doubles with each retransmission."""
    longest_patience: int = 60 * SECOND
    """The longest time between two retransmissions."""
    hold_unreachable: int = 30 * SECOND
    """How long a publication is kept for unreachable brokers, and for subscriptions that become known late."""
    retain_bytes: int = 16 << 20
    """Limit for attributes and payloads of publications that are retained for late subscriptions."""
    clock_skew: int = 0
    """The largest difference between the clocks of two brokers, with the time from an input to its answer. Clients see
    the order of answers. The core knows only the times of inputs."""
    window: int = 4096
    """The largest number of unsettled publications of one source."""
    publish_window: int = 1024
    """Publications of one client that may wait for an answer."""
    credit: int = 256
    """Publication frames in flight on a link."""
    outbox_frames: int = 4096
    """Publication frames that wait for a neighbour."""
    deliveries_for_absent: int = 10_000
    """Deliveries that may be undelivered for one client, because it is disconnected or slow."""
    entries_of_client: int = 1 << 30
    """The largest number of subscriptions of one client, and of advertisements."""
    expression_bytes_of_client: int = 1 << 40
    """The size of the expressions of all subscriptions and advertisements of one client."""
    patterns_of_client: int = 1 << 30
    """The number of patterns in these expressions."""
    outbox_bytes: int = 64 << 20
    """Attributes and payloads of one client's undelivered publications."""
    disconnects_slow: bool = False
    """Whether a connected client is disconnected when its undelivered publications exceed a limit."""
    once: int = 600 * SECOND
    """How long the once id of a delivered publication is known."""
    once_ids: int = 1 << 16
    """The largest number of once ids that are known."""
    records_matches: bool = True
    """Whether every table lookup is recorded; otherwise only lookups for traced publications are."""
    hop_limit: int = 64
    publication_bytes: int = 512 * 1024
    """Attributes and payload of one publication; a larger one would not fit into a frame."""
    attribute_bytes: int = 512 * 1024
    """Attributes of one publication."""
    reorganise_every: int = 0
    """The interval of self-reorganisation; 0: the links stay as they are."""
    most_links: int = 8
    """The largest number of links in a domain that self-reorganisation gives a broker."""

    @property
    def detection_time(self) -> int:
        """The time after which every broker has noticed that a broker is unreachable or back, and has its updates."""
        return 2 * self.dead_after + 4 * max(self.tick, SECOND)

    def ticks_in(self, duration: int) -> int:
        """The smallest number of ticks that last at least this long."""
        return -(-duration // self.tick)
