"""Cost profiles: how long a simulated broker works on an input.

A profile charges for quantities that all exact indexes have in common: the subscriptions stored in the table of a
lookup, and those that matched. So a run depends neither on the index nor on the presence of a compiler.

`padres-2015` is derived from [THESIS 10.1.1]. There, 2,000 subscriptions at 50 publications a second keep a broker 63%
busy, and a broker that only forwards is 2% busy. Forwarding is one received and one sent frame: 2% of a second over 50
publications are 0.4 ms, which is 0.2 ms a frame. The rest of the 63% is matching: 12.2 ms for 2,000 subscriptions are
6.1 µs for each.

`native` has coefficients for each index, from a file that a calibration wrote on some machine (see `cost_file`).
"""

from __future__ import annotations

from dataclasses import dataclass

from broker.core.effects import Effect, MatchedRow, Record, Send
from broker.core.inputs import FrameReceived, Input, Published
from routing.messages import FREE_MESSAGES
from routing.tables import TableWork


@dataclass(frozen=True, slots=True)
class CostProfile:
    """Nanoseconds for each part of the work."""

    name: str
    stored: float
    """For each subscription in the table of a lookup."""
    matched: float
    """For each subscription, or destination, that matched."""
    frame_in: int
    frame_out: int
    asked: float = 0.0
    """For each lookup in a table, independent of the table's size."""

    def cost(self, happened: Input, effects: list[Effect]) -> int:
        """The time that a broker works on an input with these effects."""
        work = 0.0
        if isinstance(happened, FrameReceived):
            if type(happened.message) not in FREE_MESSAGES:
                work += self.frame_in
        elif isinstance(happened, Published):
            work += self.frame_in
        for effect in effects:
            if isinstance(effect, Send):
                if type(effect.message) not in FREE_MESSAGES:
                    work += self.frame_out
            elif isinstance(effect, Record) and isinstance(effect.row, MatchedRow):
                work += self.match_cost(effect.row.work)
        return round(work)

    def longest_answer(self, subscriptions: int, tables: int, brokers: int) -> int:
        """An upper bound of the time from a client's publication to its answer, at a broker with so many tables of at
        most so many subscriptions."""
        lookup = self.asked + (self.stored + self.matched) * subscriptions
        return round(self.frame_in + self.frame_out * brokers + lookup * tables)

    def match_cost(self, work: TableWork) -> float:
        """The time of one lookup in a table."""
        return self.asked + self.stored * work.stored + self.matched * work.matched


PADRES_2015 = CostProfile("padres-2015", stored=6_100.0, matched=0.0, frame_in=200_000, frame_out=200_000)
"""The cost profile `padres-2015`, derived from [THESIS 10.1.1]."""
