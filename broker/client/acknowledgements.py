"""Which deliveries of a connection the application is done with.

Deliveries are numbered from 1 on; the broker is told up to which number all are done. A delivery that several
subscriptions of the application share is done when the last of them is.
"""

from __future__ import annotations

from collections.abc import Callable


class Acknowledgements:
    """`on_news` is called when there is something to tell, and when there is much (`every` deliveries); `tell` says
    what, and takes it as told."""

    __slots__ = ("_done", "_early", "_every", "_is_announced", "_on_news", "_shared", "_told")

    def __init__(self, on_news: Callable[[], None], every: int = 1) -> None:
        self._on_news = on_news
        self._every = every
        self._is_announced = False
        self._done = 0
        self._told = 0
        self._early: set[int] = set()
        self._shared: dict[int, int] = {}

    def share(self, number: int, parts: int) -> None:
        """So many must be done with the delivery before it is."""
        self._shared[number] = parts

    def done(self, number: int) -> None:
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
        if not self._is_announced or self._done - self._told >= self._every:
            self._is_announced = True
            self._on_news()

    @property
    def untold(self) -> int:
        return self._done - self._told

    def tell(self) -> int:
        self._is_announced = False
        self._told = self._done
        return self._done
