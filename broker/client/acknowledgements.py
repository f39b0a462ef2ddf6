"""The deliveries of a connection that the application has finished.

Deliveries are numbered from 1. An acknowledgement contains the number up to which all deliveries are finished. A
delivery to several subscriptions is finished when all of them have finished it.
"""

from __future__ import annotations

from collections.abc import Callable


class Acknowledgements:
    """Calls `on_due` when there is a number to acknowledge, and again for each delivery once `every` are pending.

    `mark_acknowledged` returns the number to send.
    """

    __slots__ = ("_acknowledged", "_done", "_early", "_every", "_is_reported", "_on_due", "_shared")

    def __init__(self, on_due: Callable[[], None], every: int = 1) -> None:
        self._on_due = on_due
        self._every = every
        self._is_reported = False
        self._done = 0
        self._acknowledged = 0
        self._early: set[int] = set()
        self._shared: dict[int, int] = {}

    def share(self, number: int, parts: int) -> None:
        """Requires `parts` calls of `finish` for the delivery."""
        self._shared[number] = parts

    def finish(self, number: int) -> None:
        if self._shared:
            left = self._shared.pop(number, 1) - 1
            if left:
                self._shared[number] = left
                return
        if number != self._done + 1:
            self._early.add(number)
            return
        self._done = number
        while self._early and self._done + 1 in self._early:
            self._done += 1
            self._early.remove(self._done)
        if not self._is_reported or self._done - self._acknowledged >= self._every:
            self._is_reported = True
            self._on_due()

    @property
    def pending(self) -> int:
        """The number of finished deliveries that are not acknowledged."""
        return self._done - self._acknowledged

    def mark_acknowledged(self) -> int:
        """Marks all finished deliveries as acknowledged. Returns the highest number."""
        self._is_reported = False
        self._acknowledged = self._done
        return self._done
