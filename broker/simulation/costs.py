"""How long a broker works on what arrives.

A profile charges by what every exact index has in common, the subscriptions stored in the table that was asked and
those that matched. So a run does not depend on which index answered, or on whether a compiler was there.

`padres-2015` is derived from [THESIS 10.1.1], where 2,000 subscriptions at 50 publications a second keep a broker 63%
busy, and one that only forwards 2%. Forwarding is a frame in and a frame out: 2% of a second over 50 publications
are 0.4 ms, 0.2 ms a frame. The rest of the 63% is matching: 12.2 ms for 2,000 subscriptions are 6.1 µs for each.

`native` has coefficients by index, from a file that a calibration wrote on some machine (see `cost_file`).
"""

from __future__ import annotations

from dataclasses import dataclass

from broker.core.effects import Effect, MatchedRow, Record, Send
from broker.core.inputs import FrameReceived, Input, Published
from routing.messages import FREE_MESSAGES
from routing.router import TableWork


@dataclass(frozen=True, slots=True)
class CostProfile:
    """Nanoseconds for each part of the work."""

    name: str
    stored: float
    """For each subscription in a table that was asked."""
    matched: float
    """For each subscription, or destination, that matched."""
    frame_in: int
    frame_out: int
    asked: float = 0.0
    """For each table that was asked, however much it holds."""

    def cost(self, happened: Input, effects: list[Effect]) -> int:
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
                work += self.cost_of_asking(effect.row.work)
        return round(work)

    def cost_of_asking(self, work: TableWork) -> float:
        return self.asked + self.stored * work.stored + self.matched * work.matched


PADRES_2015 = CostProfile("padres-2015", stored=6_100.0, matched=0.0, frame_in=200_000, frame_out=200_000)
