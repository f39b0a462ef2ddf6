"""Compares the clocks of the two ends of a link.

Each end sends its time, with the last time that it received from the other end and how long ago that was. From this the
other end computes the round trip, and the difference of the clocks with an error of at most half the round trip.
"""

from __future__ import annotations

from broker.wire.link_handshake import LinkClock


class ClockComparison:
    def __init__(self) -> None:
        self.offset: int | None = None
        """The other clock minus this one, in nanoseconds; None: unknown yet."""
        self.error: int = 0
        """The largest error of the offset."""
        self._received: tuple[int, int] | None = None
        """The last time of the other end, and when it arrived."""

    def frame(self, now: int) -> LinkClock:
        """The frame to send now."""
        echoed, arrived = self._received or (0, now)
        return LinkClock(now, echoed, now - arrived)

    def receive(self, frame: LinkClock, now: int) -> None:
        """Takes the other end's time. Computes the offset, unless the frame cannot belong to a frame sent here."""
        self._received = (frame.sent, now)
        round_trip = now - frame.echoed - frame.held
        if frame.echoed and round_trip >= 0:
            self.error = round_trip // 2
            self.offset = frame.sent + self.error - now

    def exceeds(self, clock_skew: int) -> bool:
        """Whether the clocks differ by more than this, with certainty."""
        return self.offset is not None and abs(self.offset) - self.error > clock_skew
