"""Since when brokers cannot say what they want, in ticks.

A subscription that was confirmed before a broker fell silent was told in time. So of the publications that are kept
for a silent broker, only those matter that were accepted after that moment, or shortly before. A broker that was silent
from the first moment on at which it was known has never been heard: all publications matter.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Generic, TypeVar

Who = TypeVar("Who", bound=Hashable)
EVER = 1 << 40


class Silence(Generic[Who]):
    def __init__(self) -> None:
        self.now = 0
        """In ticks."""
        self._since: dict[Who, int] = {}

    def tick(self, silent: Mapping[Who, int]) -> None:
        """Counts a tick. `silent`: who is silent now, with the tick since which it is known. Those that are not among
        them any more start anew the next time."""
        self.now += 1
        self._since = {
            who: self._since.get(who, self.now if known < self.now - 1 else -EVER) for who, known in silent.items()
        }

    def ticks(self, who: Who, known: int) -> int:
        """How long it has been silent."""
        return self.now - self._since.get(who, self.now if known < self.now - 1 else -EVER)
