"""The broker's links: its neighbours, when each last sent a frame, and the flow control of each.

Flow control of publication frames is by credit. The neighbour acknowledges the number of the last frame that it
received. At most `credit` frames may be in flight after that one. The other frames wait here, up to a limit. Control
frames bypass the outbox and are always read. So a saturated neighbour is not considered dead, and acknowledgements are
not delayed by the frames that they acknowledge.

Frames are numbered. A later number covers one that never arrives, so a lossy link loses no credit.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from broker.core.effects import Effect, Send
from broker.core.settings import Settings
from routing.messages import Credit, Publish


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


@dataclass(slots=True)
class _Link:
    outbox: Outbox
    inbox: Inbox
    last_received: int
    acknowledged_at_tick: int | None = None
    """The last acknowledged frame at the last tick; None if no frames were in flight then."""


class Links:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._links: dict[str, _Link] = {}

    def add(self, peer: str, now: int) -> None:
        outbox = Outbox(self._settings.credit, self._settings.outbox_frames)
        self._links[peer] = _Link(outbox, Inbox(self._settings.credit), now)

    def remove(self, peer: str) -> bool:
        """Removes the link. Returns False if there was none."""
        return self._links.pop(peer, None) is not None

    def is_up(self, peer: str) -> bool:
        return peer in self._links

    def peers(self) -> tuple[str, ...]:
        return tuple(sorted(self._links))

    def mark_alive(self, peer: str, now: int) -> bool:
        """Records that the neighbour sent a frame. Returns False if there is no link to it."""
        link = self._links.get(peer)
        if link is None:
            return False
        link.last_received = now
        return True

    def timed_out(self, now: int) -> list[str]:
        return [
            peer for peer, link in sorted(self._links.items()) if now - link.last_received > self._settings.dead_after
        ]

    def offer(self, peer: str, message: Publish, effects: list[Effect]) -> str | None:
        """Sends or queues the frame. Returns the reason if it was dropped, otherwise None."""
        link = self._links.get(peer)
        if link is None:
            return "no link"
        if link.outbox.is_full:
            return "queue full"
        offered = link.outbox.offer(message)
        if offered is not None:
            effects.append(Send(peer, *offered))
        return None

    def receive_frame(self, peer: str, sequence: int) -> int | None:
        return self._links[peer].inbox.receive(sequence)

    def receive_credit(self, peer: str, through: int) -> list[Effect]:
        return [Send(peer, *frame) for frame in self._links[peer].outbox.acknowledge(through)]

    def tick(self) -> list[Effect]:
        """Acknowledges received frames, and frees the credit of frames that were lost.

        Frames count as lost if the neighbour acknowledged none since the last tick.
        """
        effects: list[Effect] = []
        for peer, link in sorted(self._links.items()):
            if link.inbox.has_unacknowledged:
                effects.append(Send(peer, Credit(link.inbox.acknowledge())))
            if link.outbox.in_flight and link.acknowledged_at_tick == link.outbox.acknowledged_through:
                effects += [Send(peer, *frame) for frame in link.outbox.assume_lost()]
            link.acknowledged_at_tick = link.outbox.acknowledged_through if link.outbox.in_flight else None
        return effects

    @property
    def is_idle(self) -> bool:
        """Whether no publication frame waits, is in flight or is unacknowledged."""
        for link in self._links.values():
            if link.inbox.has_unacknowledged or link.outbox.in_flight or link.outbox.waiting:
                return False
        return True

    def last_received(self, peer: str) -> int:
        """Returns the time of the neighbour's last frame."""
        return self._links[peer].last_received

    def queues(self) -> dict[str, tuple[int, int]]:
        """The numbers of waiting publications and of those in flight, by neighbour."""
        return {peer: (link.outbox.waiting, link.outbox.in_flight) for peer, link in sorted(self._links.items())}

    @property
    def is_congested(self) -> bool:
        for link in self._links.values():
            if link.outbox.is_full:
                return True
        return False
