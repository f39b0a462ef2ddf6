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
        self._ended: dict[Key, tuple[int, int]] = {}
        """Silences that have ended: the ticks of their start and of their end."""

    def tick(self, silent: Mapping[Key, int], remember: int = 0) -> None:
        """Counts a tick. `silent` maps each key that is silent now to the tick in which it became known. For keys that
        are not in it, silence ends. `remember`: for how many ticks ended silences are remembered."""
        self.now += 1
        if remember:
            for key, since in self._since.items():
                if key not in silent:
                    self._ended[key] = (since, self.now)
            if self._ended:
                self._ended = {key: times for key, times in self._ended.items() if self.now - times[1] <= remember}
        self._since = {
            key: self._since.get(key, self.now if known_since < self.now - 1 else -ALWAYS)
            for key, known_since in silent.items()
        }

    def ticks(self, key: Key, known_since: int) -> int:
        """Returns for how many ticks the key has been silent."""
        return self.now - self._since.get(key, self.now if known_since < self.now - 1 else -ALWAYS)

    def recent(self) -> dict[Key, int]:
        """Returns the keys that are silent or whose silence is remembered, with the tick in which it began.

        A broker whose silence has just ended may not have stated everything yet.
        """
        return {key: since for key, (since, _) in self._ended.items()} | self._since
