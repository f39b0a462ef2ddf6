"""After a restart: publications that are to be passed on wait until this broker knows again what others want.

A broker knows enough when every broker that it can reach has told everything, in its present incarnation. Links need
some time to come up, so recovery takes two ticks at least. Brokers that recover together may wait for each other, so it
has an end. What is learned after that is still matched with what was kept.
"""

from __future__ import annotations

from routing.messages import PublicationId, Publish

FEWEST_TICKS = 2


class Recovery:
    def __init__(self, most_ticks: int, most_waiting: int) -> None:
        """`most_waiting`: publications; a sender repeats what there is no room for."""
        self._most_ticks = max(most_ticks, FEWEST_TICKS)
        self._most_waiting = most_waiting
        self._ticks: int | None = None
        self._waiting: dict[PublicationId, list[tuple[Publish, str]]] = {}

    @property
    def is_recovering(self) -> bool:
        return self._ticks is not None

    def begin(self) -> None:
        self._ticks = 0

    def tick(self, *, is_informed: bool) -> bool:
        """Counts a tick. Returns True if recovery ends with it."""
        if self._ticks is None:
            return False
        self._ticks += 1
        if self._ticks < FEWEST_TICKS or not (is_informed or self._ticks >= self._most_ticks):
            return False
        self._ticks = None
        return True

    def postpone(self, message: Publish, peer: str) -> None:
        """Keeps an arrived publication until recovery ends. Of several copies by the same way the last one is kept."""
        if message.id not in self._waiting and len(self._waiting) >= self._most_waiting:
            return
        copies = self._waiting.setdefault(message.id, [])
        copies[:] = [each for each in copies if (each[0].source, each[0].domain) != (message.source, message.domain)]
        copies.append((message, peer))

    def release(self) -> list[tuple[Publish, str]]:
        """The publications that wait, in the order in which they came."""
        waiting, self._waiting = self._waiting, {}
        return [copy for copies in waiting.values() for copy in copies]

    def __contains__(self, publication: object) -> bool:
        return publication in self._waiting

    def __len__(self) -> int:
        return len(self._waiting)
