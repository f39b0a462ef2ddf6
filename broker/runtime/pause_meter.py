"""Measures how long the event loop serves nothing, because it executes one long piece of work.

A timer fires at short intervals. It is late by the rest of the work that the loop executed when the timer was due.
"""

from __future__ import annotations

import asyncio

EVERY_S = 0.025
WINDOW_S = 60.0


class PauseMeter:
    def __init__(self) -> None:
        self.longest_s = 0.0
        """The longest pause since the start."""
        self._loop = asyncio.get_running_loop()
        self._windows = [0.0, 0.0]
        """The longest pauses of the previous window and of the present one."""
        self._window_ends = 0.0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def longest_recent_s(self) -> float:
        """The longest pause of the last one to two minutes."""
        return max(self._windows)

    def start(self) -> None:
        self._due = self._loop.time() + EVERY_S
        self._window_ends = self._due + WINDOW_S
        self._timer = self._loop.call_at(self._due, self._measure)

    def _measure(self) -> None:
        now = self._loop.time()
        pause = now - self._due
        if now >= self._window_ends:
            self._windows = [self._windows[1], 0.0]
            self._window_ends = now + WINDOW_S
        self._windows[1] = max(self._windows[1], pause)
        self.longest_s = max(self.longest_s, pause)
        self._due = now + EVERY_S
        self._timer = self._loop.call_at(self._due, self._measure)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
