"""How long brokers have been silent, in ticks. A silent broker cannot send its subscriptions.

A subscription that was confirmed before its broker became silent arrived in time. So a silent broker may be owed only
publications that were accepted after that moment, or shortly before. A broker that has been silent since it became
known never sent its subscriptions: it may be owed all publications.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
ALWAYS = 1 << 40


class Silence(Generic[Key]):
    """The tick in which each silent broker became silent."""

    def __init__(self) -> None:
        self.now = 0
        """The number of ticks so far."""
        self._since: dict[Key, int] = {}

    def tick(self, silent: Mapping[Key, int]) -> None:
        """Counts a tick. `silent` maps each key that is silent now to the tick in which it became known. For keys that
        are not in it, silence ends."""
        self.now += 1
        self._since = {
            key: self._since.get(key, self.now if known_since < self.now - 1 else -ALWAYS)
            for key, known_since in silent.items()
        }

    def ticks(self, key: Key, known_since: int) -> int:
        """Returns for how many ticks the key has been silent."""
        return self.now - self._since.get(key, self.now if known_since < self.now - 1 else -ALWAYS)
