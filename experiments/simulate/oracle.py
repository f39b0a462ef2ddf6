"""The deliveries that a run owes its subscribers, from knowledge of the whole simulation that no broker has.

A pair of publication and client is *expected* under two conditions. The client's broker confirmed a matching
subscription before the publication was accepted, and the client had not left by then. The order of the brokers' answers
decides. There is no grace period. Each expected pair has exactly one fate:

- delivered;
- withdrawn: the client left after the publication was accepted, and before it arrived;
- lost with a broker: the subscriber's broker was killed, or the only broker that was responsible for the publication
  on its path to the subscriber's broker. Simulated brokers keep their state in memory only;
- dropped: a broker dropped the publication for good, and the drop names it (see `drop_reasons`);
- missed: none of these, which is a defect.

A pair is *owed* when it was delivered or missed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import matching
from broker.core.broker import Broker
from matching import Expression
from matching.expressions.values import Value
from routing.messages import PublicationId


class Fate(StrEnum):
    DELIVERED = "delivered"
    WITHDRAWN = "withdrawn"
    LOST = "lost with a broker"
    DROPPED = "dropped"
    MISSED = "missed"

    @property
    def is_owed(self) -> bool:
        return self is Fate.DELIVERED or self is Fate.MISSED


@dataclass(slots=True)
class _Subscription:
    client: str
    name: str
    broker: str
    end: Fate | None = None
    """WITHDRAWN or LOST; None while the subscription is active."""


@dataclass(slots=True)
class AcceptedPublication:
    """A publication that a broker accepted and whose pairs have no fate yet."""

    id: PublicationId
    at: int
    """The time of publishing."""
    subscriptions: tuple[_Subscription, ...]
    """The matching subscriptions that were active at that time."""
    lost_for: set[str] = field(default_factory=set)
    """Subscribers' brokers that the publication cannot reach: the only broker responsible for it was killed."""

    def fates(self, delivered: Collection[str], *, is_dropped: bool) -> dict[str, Fate]:
        """The fate of each expected pair, by client. A client counts once even if several subscriptions match.

        `delivered` are the clients that received the publication.
        """
        fates: dict[str, Fate] = {}
        for subscription in self.subscriptions:
            client = subscription.client
            if client in delivered:
                fates[client] = Fate.DELIVERED
            elif subscription.end is not None:
                fates.setdefault(client, subscription.end)
            elif subscription.broker in self.lost_for:
                fates[client] = Fate.LOST
            else:
                fates[client] = Fate.DROPPED if is_dropped else Fate.MISSED
        return dict(sorted(fates.items()))

    def is_accounted_for(self, delivered: Collection[str], *, is_dropped: bool) -> bool:
        """Whether every expected pair has a fate other than missed."""
        return is_dropped or all(
            each.end is not None or each.client in delivered or each.broker in self.lost_for
            for each in self.subscriptions
        )


class Oracle:
    """Records requests, answers, departures and crashes of a run, and keeps publications until they are evaluated."""

    def __init__(self) -> None:
        self._index = matching.create("auto")
        self._requested: dict[tuple[str, str], tuple[str, Expression]] = {}
        """Subscriptions without an answer. Maps client and name to broker and expression."""
        self._active: dict[int, _Subscription] = {}
        self._numbers: dict[str, list[int]] = {}
        """Numbers of the active subscriptions, by client."""
        self._next_number = 0
        self._publications: deque[AcceptedPublication] = deque()
        self._deferred: list[AcceptedPublication] = []

    def add_request(self, client: str, name: str, broker: str, expression: Expression) -> None:
        """Adds a subscription that the client requests from its broker. It is not active before the answer."""
        self._requested[client, name] = (broker, expression)

    def confirm(self, client: str, name: str) -> None:
        """Makes a requested subscription active. Ignores answers to other requests."""
        request = self._requested.pop((client, name), None)
        if request is None:
            return
        broker, expression = request
        number, self._next_number = self._next_number, self._next_number + 1
        self._active[number] = _Subscription(client, name, broker)
        self._numbers.setdefault(client, []).append(number)
        self._index.add(number, expression)

    def remove_client(self, client: str) -> None:
        """Ends the subscriptions of a client that leaves its broker."""
        self._end(self._numbers.get(client, ()), Fate.WITHDRAWN)
        for key in [key for key in self._requested if key[0] == client]:
            del self._requested[key]

    def kill_broker(self, broker: str, is_lost_for: Callable[[PublicationId, str], bool]) -> None:
        """Ends the subscriptions at a killed broker, and marks publications as lost.

        `is_lost_for` answers whether the broker was responsible for a publication on its path to a subscriber's broker
        and no live broker is.
        """
        self._end([number for number, each in self._active.items() if each.broker == broker], Fate.LOST)
        for key in [key for key, (home, _) in self._requested.items() if home == broker]:
            del self._requested[key]
        for publication in self:
            homes = {each.broker for each in publication.subscriptions} - publication.lost_for
            publication.lost_for.update(home for home in homes if is_lost_for(publication.id, home))

    def _end(self, numbers: Collection[int], end: Fate) -> None:
        for number in list(numbers):
            subscription = self._active.pop(number)
            subscription.end = end
            self._numbers[subscription.client].remove(number)
            self._index.remove(number)

    def add_publication(self, id: PublicationId, attributes: Mapping[str, Value], at: int) -> None:
        """Adds a publication that a broker accepted, with the active subscriptions that match."""
        subscriptions = tuple(self._active[number] for number in self._index.match(attributes).ids)
        self._publications.append(AcceptedPublication(id, at, subscriptions))

    def __iter__(self) -> Iterator[AcceptedPublication]:
        """Publications that were not evaluated, deferred ones first."""
        yield from self._deferred
        yield from self._publications

    def __len__(self) -> int:
        return len(self._deferred) + len(self._publications)

    @property
    def oldest(self) -> AcceptedPublication | None:
        """The oldest publication that was neither evaluated nor deferred."""
        return self._publications[0] if self._publications else None

    def defer_oldest(self) -> None:
        """Defers a publication to the end of the run, because a missing delivery may still arrive."""
        self._deferred.append(self._publications.popleft())

    def remove_oldest(self) -> None:
        """Removes a publication that was evaluated."""
        self._publications.popleft()

    def remove_all(self) -> Iterator[AcceptedPublication]:
        """Removes all publications that were not evaluated and returns them in order. For the end of a run."""
        rest = [*self]
        self._deferred.clear()
        self._publications.clear()
        return iter(rest)


def is_lost_for(home: str, id: PublicationId, killed: Broker, others: Sequence[Broker]) -> bool:
    """Whether a publication is lost for a subscriber's broker `home` if `killed` crashes and `others` stay alive.

    The brokers keep their state in memory only. A durable broker does not lose what it has accepted.
    """
    waiting = {other.me: other.awaits(id) for other in others if other.answers_for(id)}
    if any(killed.me in each for each in waiting.values()):
        # Another broker sends it again after the killed one restarts.
        return False
    if killed.unknown_interest(id):
        # Only the killed broker kept the publication for unreachable brokers.
        return True
    if not killed.answers_for(id):
        return killed.retains(id) and not any(other.answers_for(id) or other.retains(id) for other in others)
    if waiting and killed.awaits(id) <= waiting.keys():
        # All brokers that the killed one sent it to are responsible for it now.
        return False
    return not any(home in each for each in waiting.values())
