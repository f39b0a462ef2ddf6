"""What all parts of a broker's core share: its name, its settings, the router, the time, and the effects so far."""

from __future__ import annotations

from collections import Counter

from broker.core.effects import DroppedRow, Effect, Record, SetTimer
from broker.core.settings import Settings
from routing.messages import PublicationId
from routing.router import Router


class CoreContext:
    __slots__ = ("drops", "effects", "incarnation", "me", "now", "router", "settings")

    def __init__(self, me: str, incarnation: int, settings: Settings, router: Router) -> None:
        self.me = me
        self.incarnation = incarnation
        self.settings = settings
        self.router = router
        self.now = 0
        """The time of the present input, in nanoseconds."""
        self.effects: list[Effect] = []
        """The effects of the present input. All parts append to this one list."""
        self.drops: Counter[str] = Counter()
        """Drops by reason, since the start."""

    def drop(self, reason: str, publication: PublicationId | None, detail: str) -> None:
        """Counts a drop and records it."""
        self.drops[reason] += 1
        self.effects.append(Record(DroppedRow(reason, publication, detail)))

    def set_timer(self, name: str, after: int) -> None:
        """Sets a timer that fires after so many nanoseconds."""
        self.effects.append(SetTimer(name, self.now + after))
