"""What waits for the store: an action for each record, done when the record would survive a crash."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from broker.core.effects import Effect, Persist

Key = tuple[str, ...]
Action = Callable[[], None]


class PendingWrites:
    def __init__(self, effects: list[Effect]) -> None:
        """`effects` is where the core collects them."""
        self._effects = effects
        self._waiting: dict[Key, deque[Action]] = {}

    def __contains__(self, key: object) -> bool:
        return key in self._waiting

    def write(self, key: Key, record: object, then: Action) -> None:
        self._waiting[key] = deque([then])
        self._effects.append(Persist(key, record))

    def complete(self, key: Key) -> None:
        actions = self._waiting.pop(key, None)
        while actions:
            actions.popleft()()
            again = self._waiting.get(key)
            if again is not None:
                # It is stored once more, and the rest waits for that.
                actions.extendleft(reversed(again))
                self._waiting[key] = actions
                return

    def run_after(self, key: Key, then: Action) -> None:
        """Right after what waits for the record."""
        self._waiting[key].append(then)
