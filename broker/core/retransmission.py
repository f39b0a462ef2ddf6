"""Retransmission: keeps a publication until every destination has settled it, and sends it again where needed.

A broker that starts a leg keeps the publication until each destination reports that it is settled, there and further
on. It sends the publication again when the route was lost, when a destination becomes reachable again, and after a long
silence. Destinations recognise publications that they have seen, so sending again is always safe.

A destination has two duties: to serve its own clients, and to pass the publication on. It may receive the second duty
later than the first. Its answers say which duty it has done.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from broker.core.settings import FOREVER
from routing.messages import PASS_ON, SERVE, PublicationId, Publish
from routing.multicast import destinations_of, narrowed


@dataclass(slots=True)
class _Leg:
    message: Publish
    waiting: dict[str, int]
    """Destinations that have not settled, with the time at which each was last reachable."""
    missed: set[str] = field(default_factory=set)
    """Destinations that were unreachable when the publication was last sent."""

    def duties_of(self, broker: str) -> int:
        return (SERVE if broker in self.message.local else 0) | (PASS_ON if broker in self.message.transit else 0)


@dataclass(slots=True)
class PendingPublication:
    """A publication that some destinations have yet to settle."""

    id: PublicationId
    legs: list[_Leg]
    sent: int
    patience: int

    @property
    def is_settled(self) -> bool:
        return not any(leg.waiting for leg in self.legs)


@dataclass(frozen=True, slots=True)
class GivenUpDestination:
    """A destination that was unreachable for too long. The publication is dropped for it."""

    publication: PublicationId
    broker: str


class Retransmission:
    def __init__(self, patience: int, longest_patience: int, unreachable_timeout: int) -> None:
        """Times in nanoseconds: until the first retransmission, at most between two retransmissions, and how long a
        publication is kept for an unreachable destination."""
        self._patience = patience
        self._longest_patience = longest_patience
        self._unreachable_timeout = unreachable_timeout
        self._pending: dict[PublicationId, PendingPublication] = {}

    def __contains__(self, publication: object) -> bool:
        return publication in self._pending

    def __len__(self) -> int:
        return len(self._pending)

    def add(
        self, id: PublicationId, messages: Sequence[Publish], now: int, is_reachable: Callable[[str, str], bool]
    ) -> None:
        """Adds messages of a publication, which may have others already. A destination that is unreachable now receives
        its message as soon as it is reachable."""
        pending = self._pending.get(id)
        if pending is None:
            pending = self._pending[id] = PendingPublication(id, [], now, self._patience)
        for message in messages:
            leg = _Leg(message, dict.fromkeys(destinations_of(message), now))
            leg.missed = {broker for broker in leg.waiting if not is_reachable(message.domain, broker)}
            pending.legs.append(leg)

    def reroute(self, id: PublicationId, message: Publish, now: int) -> None:
        """Adds a message that gives the same duty to the same destinations by another route."""
        self._pending[id].legs.append(_Leg(message, dict.fromkeys(destinations_of(message), now)))

    def awaited(self, id: PublicationId) -> frozenset[str]:
        """Destinations that have yet to settle; none for a publication that is not pending."""
        pending = self._pending.get(id)
        return frozenset(broker for each in pending.legs for broker in each.waiting) if pending else frozenset()

    def is_pass_on_pending(self, id: PublicationId, domain: str, broker: str) -> bool:
        """Whether the destination has yet to settle its duty to pass the publication on."""
        pending = self._pending.get(id)
        return pending is not None and any(
            broker in each.waiting and broker in each.message.transit and each.message.domain == domain
            for each in pending.legs
        )

    def settle(self, id: PublicationId, broker: str, duties: int) -> bool:
        """Records that a destination has done these duties, by any route.

        Returns True if all destinations have settled. Then the publication is removed.
        """
        pending = self._pending.get(id)
        if pending is None:
            return False
        is_settled = True
        for leg in pending.legs:
            if broker in leg.waiting and not leg.duties_of(broker) & ~duties:
                del leg.waiting[broker]
            if leg.waiting:
                is_settled = False
        if is_settled:
            del self._pending[id]
        return is_settled

    def retry_now(self) -> None:
        """Makes all publications due for retransmission with the next `collect_due`. A lost link may have lost them."""
        for pending in self._pending.values():
            pending.sent = min(pending.sent, -pending.patience)

    def collect_due(
        self, now: int, is_reachable: Callable[[str, str], bool]
    ) -> tuple[list[Publish], list[tuple[PendingPublication, Publish, str]], list[GivenUpDestination]]:
        """Collects the messages to send now, the destinations that need a substitute, and the destinations to give up.

        Counts the messages as sent, and removes the destinations to give up.
        """
        again: list[Publish] = []
        lost: list[tuple[PendingPublication, Publish, str]] = []
        given_up: list[GivenUpDestination] = []
        for pending in list(self._pending.values()):
            is_overdue = now - pending.sent >= pending.patience
            for leg in pending.legs:
                chosen = self._choose(leg, is_overdue, now, is_reachable)
                if is_overdue:
                    # A broker that passes on may have lost its own route further on, and another broker may have one.
                    passing_on = {*leg.missed, *leg.message.transit}
                    lost += [(pending, leg.message, broker) for broker in leg.waiting if broker in passing_on]
                for broker in [each for each in leg.waiting if now - leg.waiting[each] > self._unreachable_timeout]:
                    del leg.waiting[broker]
                    given_up.append(GivenUpDestination(pending.id, broker))
                if chosen:
                    again.append(narrowed(leg.message, chosen))
            if is_overdue:
                pending.sent = now
                pending.patience = min(2 * pending.patience, self._longest_patience)
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

    def idle_until(self, now: int, is_reachable: Callable[[str, str], bool]) -> int:
        """Returns the last time at which `collect_due` would collect nothing, if routes do not change until then."""
        until = FOREVER
        for pending in self._pending.values():
            until = min(until, pending.sent + pending.patience - 1)
            for leg in pending.legs:
                for broker, reached in leg.waiting.items():
                    if not is_reachable(leg.message.domain, broker):
                        until = min(until, reached + self._unreachable_timeout)
                    elif broker in leg.missed:
                        return now
        return until

    def skip(self, now: int, is_reachable: Callable[[str, str], bool]) -> None:
        """Records which destinations are reachable, as `collect_due` does when nothing is due."""
        for pending in self._pending.values():
            for leg in pending.legs:
                for broker in leg.waiting:
                    if is_reachable(leg.message.domain, broker):
                        leg.waiting[broker] = now

    def pop_settled(self) -> list[PublicationId]:
        """Removes and returns the publications without unsettled destinations, after destinations were given up."""
        settled = [pending.id for pending in self._pending.values() if pending.is_settled]
        for id in settled:
            del self._pending[id]
        return settled

    def is_unreachable(self, id: PublicationId, is_reachable: Callable[[str, str], bool]) -> bool:
        """Whether all destinations that have yet to settle are unreachable."""
        pending = self._pending[id]
        return not any(is_reachable(leg.message.domain, broker) for leg in pending.legs for broker in leg.waiting)

    def remove(self, id: PublicationId) -> None:
        del self._pending[id]
