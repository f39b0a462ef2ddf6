"""Flow control of publication frames on a link, by credit.

The neighbour acknowledges the number of the last frame that it received. At most `credit` frames may be in flight
after that one. The other frames wait here, up to a limit. Control frames bypass the outbox and are always read. So a
saturated neighbour is not considered dead, and acknowledgements are not delayed by the frames that they acknowledge.

Frames are numbered. A later number covers one that never arrives, so a lossy link loses no credit.
"""

from __future__ import annotations

from collections import deque

from routing.messages import Publish


class Outbox:
    """The sending side: numbers frames, and queues those that exceed the credit."""

    def __init__(self, credit: int, limit: int) -> None:
        self._credit = credit
        self._limit = limit
        self._sent = 0
        self._acknowledged = 0
        self._waiting: deque[Publish] = deque()

    def offer(self, message: Publish) -> tuple[Publish, int] | None:
        """Returns the frame and its number if it may be sent at once. None: the frame is queued."""
        if self._waiting or self._sent - self._acknowledged >= self._credit:
            self._waiting.append(message)
            return None
        self._sent += 1
        return message, self._sent

    def acknowledge(self, through: int) -> list[tuple[Publish, int]]:
        """Records that the neighbour received the frames up to this number. Returns the frames to send now."""
        self._acknowledged = max(self._acknowledged, min(through, self._sent))
        return self._release()

    def assume_lost(self) -> list[tuple[Publish, int]]:
        """Treats the frames in flight, or their acknowledgements, as lost. Returns the frames to send now."""
        self._acknowledged = self._sent
        return self._release()

    def _release(self) -> list[tuple[Publish, int]]:
        released: list[tuple[Publish, int]] = []
        while self._waiting and self._sent - self._acknowledged < self._credit:
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
        return self._sent - self._acknowledged

    @property
    def acknowledged_through(self) -> int:
        return self._acknowledged


class Inbox:
    """The receiving side: decides when to acknowledge frames, after every quarter of the credit."""

    def __init__(self, credit: int) -> None:
        self._acknowledge_every = max(1, credit // 4)
        self._received = 0
        self._acknowledged = 0

    def receive(self, sequence: int) -> int | None:
        """Records a received frame. Returns the number to acknowledge, or None if no acknowledgement is due."""
        self._received = max(self._received, sequence)
        if self._received - self._acknowledged < self._acknowledge_every:
            return None
        return self.acknowledge()

    def acknowledge(self) -> int:
        """Marks all received frames as acknowledged. Returns the number to send to the neighbour."""
        self._acknowledged = self._received
        return self._received

    @property
    def has_unacknowledged(self) -> bool:
        return self._received > self._acknowledged
