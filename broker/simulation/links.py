"""Links in virtual time: latency, bandwidth, and first in, first out in each direction."""

from __future__ import annotations

from dataclasses import dataclass, field

MILLISECOND = 1_000_000


@dataclass(slots=True)
class SimulatedLink:
    first: str
    second: str
    latency: int
    """Nanoseconds."""
    bytes_a_second: int | None = None
    """None: as fast as you like."""
    is_up: bool = True
    life: int = 0
    """Counts how often it came up; what was under way in an earlier life does not arrive."""
    up_since: int = 0
    is_broken: bool = False
    """By a fault: nobody can bring it up until the fault is over."""
    extra_delay: int = 0
    loss: float = 0.0
    _free_at: dict[str, int] = field(default_factory=dict)
    _last_arrival: dict[str, int] = field(default_factory=dict)

    def arrival(self, sender: str, size: int, now: int) -> int:
        """When a frame of this size, sent now, is there. Nothing overtakes."""
        sent = now
        if self.bytes_a_second is not None:
            sent = max(now, self._free_at.get(sender, 0)) + size * 1_000_000_000 // self.bytes_a_second
            self._free_at[sender] = sent
        at = sent + self.latency + self.extra_delay
        if at < self._last_arrival.get(sender, 0):
            at = self._last_arrival[sender]
        self._last_arrival[sender] = at
        return at

    def is_carrying(self, now: int) -> bool:
        """Is a frame under way?"""
        return self.is_up and any(at > now for at in self._last_arrival.values())

    def other(self, end: str) -> str:
        return self.second if end == self.first else self.first
