"""What a gateway did, and what it dropped: counted by reason, and named in the log without flooding it."""

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
    """Are all subscriptions that MQTT clients asked for before the connection known?"""
    connections: int
    names: int
    changes_waiting: int
    waiting: int
    """Messages that were taken in and not sent to the broker yet."""
    unanswered: int
    """Sent, and not answered for by the broker."""
    taken: int
    delivered: int
    drops: dict[str, int]
    left_out: dict[str, int]
    """What of the messages did not become attributes."""
    errors_told: int


class GatewayCounters:
    def __init__(self, log: Log) -> None:
        self.taken = 0
        self.delivered = 0
        self.errors_told = 0
        self.connections = 0
        self.drops: Counter[str] = Counter()
        self._log = log

    def dropped(self, reason: str, detail: str) -> None:
        self.drops[reason] += 1
        count = self.drops[reason]
        # The first, the tenth, the hundredth: enough to see what goes on.
        if count == 10 ** (len(str(count)) - 1):
            self._log.warning("mqtt message dropped", reason=reason, count=count, detail=detail[:500])


@dataclass(slots=True)
class SyncState:
    """Which subscriptions the MQTT broker told of since the connection was made, until it has told all."""

    marker: bytes
    seen: set[str] = field(default_factory=set)
    is_done: bool = False
