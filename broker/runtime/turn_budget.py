"""Divides the time of the event loop among connections.

Heartbeats, timers and admin pages wait until the current turn of the loop ends. So the connections that share a budget
have a few milliseconds in each turn, and each connection a share of them. A connection with more frames than fit into
its share handles the rest in a later turn, after the other connections.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import Protocol

from broker.core.settings import MILLISECOND

TURN_NS = 5 * MILLISECOND
SHARE_NS = 2 * MILLISECOND


class PostponedWork(Protocol):
    def handle_postponed(self) -> None:
        """Continues until the share is over. Postpones the rest."""


class TurnBudget:
    def __init__(self, turn_ns: int = TURN_NS, share_ns: int = SHARE_NS) -> None:
        """`turn_ns`: the time of all connections in one turn of the loop. `share_ns`: the time of one connection."""
        self._loop = asyncio.get_running_loop()
        self._turn_ns = turn_ns
        self._share_ns = share_ns
        self._postponed: deque[PostponedWork] = deque()
        self._is_turn_running = False
        self._turn_ends = 0
        self._share_ends = 0

    def begin_share(self) -> None:
        """Begins the share of one connection. The first share of a turn begins the turn."""
        now = time.monotonic_ns()
        if not self._is_turn_running:
            self._is_turn_running = True
            self._turn_ends = now + self._turn_ns
            # The loop calls this at the start of its next turn.
            self._loop.call_soon(self._begin_next_turn)
        self._share_ends = min(now + self._share_ns, self._turn_ends)

    @property
    def is_share_over(self) -> bool:
        return time.monotonic_ns() >= self._share_ends

    def postpone(self, work: PostponedWork) -> None:
        """Lets the work continue in a later turn. Works continue in the order of these calls."""
        self._postponed.append(work)
        if not self._is_turn_running:
            self.begin_share()

    def _begin_next_turn(self) -> None:
        self._is_turn_running = False
        for _ in range(len(self._postponed)):
            self._postponed.popleft().handle_postponed()
            if self._is_turn_running and time.monotonic_ns() >= self._turn_ends:
                break
        if self._postponed and not self._is_turn_running:
            self.begin_share()
