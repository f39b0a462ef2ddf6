"""Links in virtual time, with latency and bandwidth. Each direction is first in, first out."""

from __future__ import annotations

from dataclasses import dataclass, field

MILLISECOND = 1_000_000


@dataclass(slots=True)
class SimulatedLink:
    first: str
    second: str
    latency: int
    """Nanoseconds."""
    bytes_per_second: int | None = None
    """None: no limit."""
    is_up: bool = True
    generation: int = 0
    """How often the link came up. Frames that were sent in an earlier generation do not arrive."""
    up_since: int = 0
    is_broken: bool = False
    """Whether a fault keeps the link down until the fault is over."""
    extra_delay: int = 0
    loss: float = 0.0
    _free_at: dict[str, int] = field(default_factory=dict)
    _last_arrival: dict[str, int] = field(default_factory=dict)

    def send_frame(self, sender: str, size: int, now: int) -> int:
        """Sends a frame of this size now. Returns the time of its arrival. Frames never overtake each other."""
        sent = now
        if self.bytes_per_second is not None:
            sent = max(now, self._free_at.get(sender, 0)) + size * 1_000_000_000 // self.bytes_per_second
            self._free_at[sender] = sent
        at = sent + self.latency + self.extra_delay
        if at < self._last_arrival.get(sender, 0):
            at = self._last_arrival[sender]
        self._last_arrival[sender] = at
        return at

    def is_carrying(self, now: int) -> bool:
        """Whether a frame is in flight."""
        return self.is_up and any(at > now for at in self._last_arrival.values())

    def other(self, end: str) -> str:
        """The broker at the other end."""
        return self.second if end == self.first else self.first
