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
        are not in it, silence ends.

        `remember`: a silence that begins so many ticks after the last one ended continues the last one. A broker that
        returns may need this time to state everything, or to say that it cannot.
        """
        self.now += 1
        since = {key: self._began(key, known_since) for key, known_since in silent.items()}
        if remember:
            self._ended.update((key, (began, self.now)) for key, began in self._since.items() if key not in since)
            if self._ended:
                kept = self._ended.items()
                self._ended = {
                    key: times for key, times in kept if key not in since and self.now - times[1] <= remember
                }
        self._since = since

    def skip_ticks(self, count: int, remember: int = 0) -> None:
        """Counts ticks in which the same keys are silent as in the last one."""
        self.now += count
        if self._ended:
            self._ended = {key: times for key, times in self._ended.items() if self.now - times[1] <= remember}

    def ticks(self, key: Key, known_since: int) -> int:
        """Returns for how many ticks the key has been silent."""
        return self.now - self._began(key, known_since)

    def _began(self, key: Key, known_since: int) -> int:
        if key in self._since:
            return self._since[key]
        if key in self._ended:
            return self._ended[key][0]
        return self.now if known_since < self.now - 1 else -ALWAYS

    def recent(self) -> dict[Key, int]:
        """Returns the keys that are silent or whose silence is remembered, with the tick in which it began.

        A broker whose silence has just ended may not have stated everything yet.
        """
        return {key: since for key, (since, _) in self._ended.items()} | self._since
