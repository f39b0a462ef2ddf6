"""What waits for the store: an action for each record, done when the record would survive a crash."""

from __future__ import annotations

from collections.abc import Callable

from broker.effects import Effect, Persist

Key = tuple[str, ...]
Action = Callable[[], None]


class Persisting:
    def __init__(self, effects: list[Effect]) -> None:
        """`effects` is where the core collects them."""
        self._effects = effects
        self._waiting: dict[Key, Action] = {}

    def __contains__(self, key: object) -> bool:
        return key in self._waiting

    def persist(self, key: Key, record: object, then: Action) -> None:
        self._waiting[key] = then
        self._effects.append(Persist(key, record))

    def persisted(self, key: Key) -> None:
        then = self._waiting.pop(key, None)
        if then is not None:
            then()

    def after(self, key: Key, then: Action) -> None:
        """Right after what waits for the record."""
        first = self._waiting[key]

        def both() -> None:
            first()
            then()

        self._waiting[key] = both
