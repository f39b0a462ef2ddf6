"""Pending writes: actions that run when the store has committed a record, so that it would survive a crash."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from broker.core.effects import Effect, Persist

Key = tuple[str, ...]
Action = Callable[[], None]


class PendingWrites:
    def __init__(self, effects: list[Effect]) -> None:
        """`effects` is the list in which the core collects its effects."""
        self._effects = effects
        self._waiting: dict[Key, deque[Action]] = {}

    def __contains__(self, key: object) -> bool:
        """Whether a write of this key is pending."""
        return key in self._waiting

    def write(self, key: Key, record: object, then: Action) -> None:
        """Writes the record. Runs `then` when it is committed."""
        self._waiting[key] = deque([then])
        self._effects.append(Persist(key, record))

    def complete(self, key: Key) -> None:
        """Runs the actions that wait for this key. The store has committed its record."""
        actions = self._waiting.pop(key, None)
        while actions:
            actions.popleft()()
            newer = self._waiting.get(key)
            if newer is not None:
                # The action has written the key again. The remaining actions wait for that write.
                actions.extendleft(reversed(newer))
                self._waiting[key] = actions
                return

    def run_after(self, key: Key, then: Action) -> None:
        """Runs `then` after the actions that already wait for the pending write of this key."""
        self._waiting[key].append(then)
