"""The broker's links: who is there, when they were last heard, and the room they have."""

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
    """With frames in flight at the last tick: up to which frame the neighbour had taken them in."""


class Links:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._links: dict[str, _Link] = {}

    def add(self, peer: str, now: int) -> None:
        outbox = Outbox(self._settings.credit, self._settings.outbox_frames)
        self._links[peer] = _Link(outbox, Inbox(self._settings.credit), now)

    def remove(self, peer: str) -> bool:
        """Was it up?"""
        return self._links.pop(peer, None) is not None

    def is_up(self, peer: str) -> bool:
        return peer in self._links

    def peers(self) -> tuple[str, ...]:
        return tuple(sorted(self._links))

    def mark_alive(self, peer: str, now: int) -> bool:
        """Is this a neighbour? Then it is alive."""
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
        """Sends the frame or lets it wait. Returns why it was dropped, if it was."""
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

    def receive_credit(self, peer: str, taken: int) -> list[Effect]:
        return [Send(peer, *frame) for frame in self._links[peer].outbox.acknowledge(taken)]

    def tick(self) -> list[Effect]:
        """Tells senders of room that they were not told of, and frees credit that was lost with its frames."""
        effects: list[Effect] = []
        for peer, link in sorted(self._links.items()):
            if link.inbox.has_unacknowledged:
                effects.append(Send(peer, Credit(link.inbox.acknowledge())))
            if link.outbox.in_flight and link.acknowledged_at_tick == link.outbox.acknowledged_through:
                effects += [Send(peer, *frame) for frame in link.outbox.assume_lost()]
            link.acknowledged_at_tick = link.outbox.acknowledged_through if link.outbox.in_flight else None
        return effects

    def queues(self) -> dict[str, tuple[int, int]]:
        """For each neighbour: the publications that wait for it, and those in flight."""
        return {peer: (link.outbox.waiting, link.outbox.in_flight) for peer, link in sorted(self._links.items())}

    @property
    def is_congested(self) -> bool:
        for link in self._links.values():
            if link.outbox.is_full:
                return True
        return False
