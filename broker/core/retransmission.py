"""Publications that this broker answers for, until every broker that it sent them to has settled them.

A broker that starts a stretch keeps the publication until each destination says that it is settled, there and behind
it. It sends it again when the way was lost, when a destination can be reached again, and after a long silence.
Destinations recognise what they have seen, so sending again is always safe.

A destination has two duties: to serve its own clients, and to pass the publication on. It may be asked for the second
later than for the first, and its answers say which one it has done.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from routing.messages import PASS_ON, SERVE, PublicationId, Publish
from routing.multicast import narrowed


@dataclass(slots=True)
class _Leg:
    message: Publish
    waiting: dict[str, int]
    """Destinations that have not settled, with the time at which they were last reachable."""
    missed: set[str] = field(default_factory=set)
    """Destinations that could not be reached when it was last sent."""

    def duties_of(self, broker: str) -> int:
        return (SERVE if broker in self.message.local else 0) | (PASS_ON if broker in self.message.transit else 0)


@dataclass(slots=True)
class PendingPublication:
    id: PublicationId
    legs: list[_Leg]
    sent: int
    patience: int

    @property
    def is_settled(self) -> bool:
        return not any(leg.waiting for leg in self.legs)


@dataclass(frozen=True, slots=True)
class GivenUpDestination:
    publication: PublicationId
    broker: str


class Retransmission:
    def __init__(self, patience: int, longest_patience: int, hold_unreachable: int) -> None:
        """Times in nanoseconds: how long until the first repetition, between repetitions at most, and how long a
        publication is kept for a destination that cannot be reached."""
        self._patience = patience
        self._longest_patience = longest_patience
        self._hold_unreachable = hold_unreachable
        self._held: dict[PublicationId, PendingPublication] = {}

    def __contains__(self, publication: object) -> bool:
        return publication in self._held

    def __len__(self) -> int:
        return len(self._held)

    def add(
        self, id: PublicationId, messages: Sequence[Publish], now: int, is_reachable: Callable[[str, str], bool]
    ) -> None:
        """Keeps the messages, beside what is held of the publication already. Destinations that cannot be reached now
        are served as soon as they can be."""
        held = self._held.get(id)
        if held is None:
            held = self._held[id] = PendingPublication(id, [], now, self._patience)
        for message in messages:
            leg = _Leg(message, dict.fromkeys(message.destinations, now))
            leg.missed = {broker for broker in leg.waiting if not is_reachable(message.domain, broker)}
            held.legs.append(leg)

    def reroute(self, id: PublicationId, message: Publish, now: int) -> None:
        """The same duty of the same destinations, by another way."""
        self._held[id].legs.append(_Leg(message, dict.fromkeys(message.destinations, now)))

    def awaited(self, id: PublicationId) -> frozenset[str]:
        """Destinations that have yet to settle; none for a publication that is not held."""
        held = self._held.get(id)
        return frozenset(broker for each in held.legs for broker in each.waiting) if held else frozenset()

    def is_pass_on_pending(self, id: PublicationId, domain: str, broker: str) -> bool:
        """The destination has yet to settle that it passed the publication on."""
        held = self._held.get(id)
        return held is not None and any(
            broker in each.waiting and broker in each.message.transit and each.message.domain == domain
            for each in held.legs
        )

    def settle(self, id: PublicationId, broker: str, duties: int) -> bool:
        """One destination has done these duties, whichever way it was reached. Returns True if everything is settled,
        and the publication is not held any more."""
        held = self._held.get(id)
        if held is None:
            return False
        is_settled = True
        for leg in held.legs:
            if broker in leg.waiting and not leg.duties_of(broker) & ~duties:
                del leg.waiting[broker]
            if leg.waiting:
                is_settled = False
        if is_settled:
            del self._held[id]
        return is_settled

    def retry_now(self) -> None:
        """A link was lost: what is under way may be lost with it, and is sent again with the next `due`."""
        for held in self._held.values():
            held.sent = min(held.sent, -held.patience)

    def due(
        self, now: int, is_reachable: Callable[[str, str], bool]
    ) -> tuple[list[Publish], list[tuple[PendingPublication, Publish, str]], list[GivenUpDestination]]:
        """What to send now, whom to find a substitute for, and which destinations were given up."""
        again: list[Publish] = []
        lost: list[tuple[PendingPublication, Publish, str]] = []
        given_up: list[GivenUpDestination] = []
        for held in list(self._held.values()):
            is_overdue = now - held.sent >= held.patience
            for leg in held.legs:
                chosen = self._choose(leg, is_overdue, now, is_reachable)
                if is_overdue:
                    # A broker that passes on may itself have lost the way further on, and another may have one.
                    passing_on = {*leg.missed, *leg.message.transit}
                    lost += [(held, leg.message, broker) for broker in leg.waiting if broker in passing_on]
                for broker in [each for each in leg.waiting if now - leg.waiting[each] > self._hold_unreachable]:
                    del leg.waiting[broker]
                    given_up.append(GivenUpDestination(held.id, broker))
                if chosen:
                    again.append(narrowed(leg.message, chosen))
            if is_overdue:
                held.sent = now
                held.patience = min(2 * held.patience, self._longest_patience)
        return again, lost, given_up

    def _choose(self, leg: _Leg, is_overdue: bool, now: int, is_reachable: Callable[[str, str], bool]) -> list[str]:
        chosen: list[str] = []
        for broker in leg.waiting:
            if is_reachable(leg.message.domain, broker):
                leg.waiting[broker] = now
                if is_overdue or broker in leg.missed:
                    chosen.append(broker)
                leg.missed.discard(broker)
            else:
                leg.missed.add(broker)
        return chosen

    def pop_settled(self) -> list[PublicationId]:
        """Lets go of publications that have nothing left to wait for, after destinations were given up."""
        settled = [held.id for held in self._held.values() if held.is_settled]
        for id in settled:
            del self._held[id]
        return settled

    def is_unreachable(self, id: PublicationId, is_reachable: Callable[[str, str], bool]) -> bool:
        """The publication waits for none but unreachable destinations."""
        held = self._held[id]
        return not any(is_reachable(leg.message.domain, broker) for leg in held.legs for broker in leg.waiting)

    def remove(self, id: PublicationId) -> None:
        del self._held[id]
