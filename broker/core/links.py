"""The broker's links: its neighbours, when each last sent a frame, and the flow control of each."""

from __future__ import annotations

from dataclasses import dataclass

from broker.core.effects import Effect, Send
from broker.core.flow_control import Inbox, Outbox
from broker.core.settings import Settings
from routing.messages import Credit, Publish


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

    def queues(self) -> dict[str, tuple[int, int]]:
        """The numbers of waiting publications and of those in flight, by neighbour."""
        return {peer: (link.outbox.waiting, link.outbox.in_flight) for peer, link in sorted(self._links.items())}

    @property
    def is_congested(self) -> bool:
        for link in self._links.values():
            if link.outbox.is_full:
                return True
        return False
