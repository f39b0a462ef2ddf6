"""Counters and status of a gateway. Drops are counted by reason, and logged at a bounded rate."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from broker.log import Log


@dataclass(frozen=True, slots=True)
class GatewayStatus:
    mqtt: str
    """The MQTT broker's address."""
    is_connected: bool
    is_synchronised: bool
    """Whether the gateway has received all subscriptions that existed before the connection, and entered them."""
    connections: int
    names: int
    changes_waiting: int
    waiting: int
    """Received messages that are not yet sent to the broker."""
    unanswered: int
    """Messages that are sent to the broker and not answered."""
    taken: int
    """Messages that the broker accepted."""
    delivered: int
    drops: dict[str, int]
    left_out: dict[str, int]
    """Values that did not become attributes, by reason."""
    errors_told: int
    """Errors that were published for MQTT clients."""


class GatewayCounters:
    def __init__(self, log: Log) -> None:
        self.accepted = 0
        self.delivered = 0
        self.errors_published = 0
        self.connections = 0
        self.drops: Counter[str] = Counter()
        self._log = log

    def dropped(self, reason: str, detail: str) -> None:
        self.drops[reason] += 1
        count = self.drops[reason]
        # Log the first, the tenth, the hundredth: enough to notice drops without flooding the log.
        if count == 10 ** (len(str(count)) - 1):
            self._log.warning("mqtt message dropped", reason=reason, count=count, detail=detail[:500])


@dataclass(slots=True)
class SyncState:
    """Names of the subscriptions that the MQTT broker has sent on this connection, until it has sent all."""

    marker: bytes
    seen: set[str] = field(default_factory=set)
    is_done: bool = False
