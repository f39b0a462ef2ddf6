"""Since when brokers cannot say what they want, in ticks.

A subscription that was confirmed before a broker fell silent was told in time. So of the publications that are kept
for a silent broker, only those matter that were accepted after that moment, or shortly before. A broker that was silent
from the first moment on at which it was known has never been heard: all publications matter.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
ALWAYS = 1 << 40


class Silence(Generic[Key]):
    def __init__(self) -> None:
        self.now = 0
        """In ticks."""
        self._since: dict[Key, int] = {}

    def tick(self, silent: Mapping[Key, int]) -> None:
        """Counts a tick. `silent`: who is silent now, with the tick since which it is known. Those that are not among
        them any more start anew the next time."""
        self.now += 1
        self._since = {
            key: self._since.get(key, self.now if known_since < self.now - 1 else -ALWAYS)
            for key, known_since in silent.items()
        }

    def ticks(self, key: Key, known_since: int) -> int:
        """How long it has been silent."""
        return self.now - self._since.get(key, self.now if known_since < self.now - 1 else -ALWAYS)
