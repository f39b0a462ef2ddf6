"""What a broker core can be told about time and room. All limits are finite."""

from __future__ import annotations

from dataclasses import dataclass

MILLISECOND = 1_000_000
SECOND = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Settings:
    """Times in nanoseconds."""

    is_durable: bool = False
    """Accepted requests and deliveries are persisted before they are answered for."""
    is_open: bool = True
    """Clients publish without advertising: the broker holds a standing advertisement of everything."""
    tick: int = SECOND
    """Heartbeats, and the repetition of what nobody acknowledged."""
    dead_after: int = 3 * SECOND
    """A neighbour that was silent for so long is lost."""
    acknowledge_after: int = 5 * MILLISECOND
    catch_up_after: int = 20 * MILLISECOND
    """News of other brokers' links waits so long for more of it."""
    patience: int = 5 * SECOND
    longest_patience: int = 60 * SECOND
    hold_unreachable: int = 30 * SECOND
    """How long a publication is kept for brokers that cannot be reached, or whose interest is heard of late."""
    retain_bytes: int = 16 << 20
    """Attributes and payloads of publications that are kept for interest that is heard of late."""
    clock_skew: int = 0
    """How far the clocks of brokers may be apart."""
    window: int = 4096
    """Publications of one source that can be in flight."""
    publish_window: int = 1024
    """Publications of one client that may wait for their answer."""
    credit: int = 256
    """Publication frames in flight on a link."""
    outbox_frames: int = 4096
    """Publication frames that wait for a neighbour."""
    deliveries_for_absent: int = 10_000
    """Deliveries that wait for one client, because it is away or slow."""
    entries_of_client: int = 1 << 30
    """Subscriptions, and as many advertisements, of one client."""
    outbox_bytes: int = 64 << 20
    """Their attributes and payloads."""
    disconnects_slow: bool = False
    """A connected client for whom more than that would wait is disconnected."""
    records_matches: bool = True
    """Each table that is asked is recorded; else only for publications that are traced."""
    hop_limit: int = 64
    publication_bytes: int = 512 * 1024
    """Attributes and payload of one publication; more would not fit into a frame."""
    reorganise_every: int = 0
    """The cycle of self-reorganisation; 0 leaves the links as they are."""
    most_links: int = 8
    """Self-reorganisation keeps to so many links in a domain."""

    @property
    def detection_time(self) -> int:
        """By then it is noticed everywhere that a broker is out of reach or back, and what it told has arrived."""
        return 2 * self.dead_after + 4 * max(self.tick, SECOND)

    def ticks_in(self, duration: int) -> int:
        """The ticks that are no shorter than the duration."""
        return -(-duration // self.tick)
