"""Publication frames for one neighbour, as many as it has room for.

The neighbour says up to which frame it has taken in; at most `credit` frames may be beyond that. The rest waits here,
up to a limit. Control frames never pass through: they have their own lane and are always read, so that a saturated
neighbour is not taken for dead and acknowledgements cannot be stuck behind what they acknowledge.

Frames are numbered. A number that never arrives is covered by a later one, so a lossy link loses no credit.
"""

from __future__ import annotations

from collections import deque

from routing.messages import Publish


class Outbox:
    def __init__(self, credit: int, limit: int) -> None:
        self._credit = credit
        self._limit = limit
        self._sent = 0
        self._taken = 0
        self._waiting: deque[Publish] = deque()

    def offer(self, message: Publish) -> tuple[Publish, int] | None:
        """The frame and its number when it may go at once. None: it waits, or `is_full` was true."""
        if self._waiting or self._sent - self._taken >= self._credit:
            self._waiting.append(message)
            return None
        self._sent += 1
        return message, self._sent

    def acknowledge(self, through: int) -> list[tuple[Publish, int]]:
        """The neighbour has room again; what may go now."""
        self._taken = max(self._taken, min(through, self._sent))
        return self._release()

    def assume_lost(self) -> list[tuple[Publish, int]]:
        """Nothing was heard for long: the frames in flight, or the news of them, are taken as lost."""
        self._taken = self._sent
        return self._release()

    def _release(self) -> list[tuple[Publish, int]]:
        released: list[tuple[Publish, int]] = []
        while self._waiting and self._sent - self._taken < self._credit:
            self._sent += 1
            released.append((self._waiting.popleft(), self._sent))
        return released

    @property
    def is_full(self) -> bool:
        return len(self._waiting) >= self._limit

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def in_flight(self) -> int:
        return self._sent - self._taken

    @property
    def acknowledged_through(self) -> int:
        return self._taken


class Inbox:
    """The receiving side of an outbox: when to say that there is room again."""

    def __init__(self, credit: int) -> None:
        self._every = max(1, credit // 4)
        self._taken = 0
        self._told = 0

    def receive(self, sequence: int) -> int | None:
        """The number to tell the sender, now and then."""
        self._taken = max(self._taken, sequence)
        if self._taken - self._told < self._every:
            return None
        return self.acknowledge()

    def acknowledge(self) -> int:
        self._told = self._taken
        return self._taken

    @property
    def has_unacknowledged(self) -> bool:
        return self._taken > self._told
