"""What a run owes its subscribers, from what the simulation knows and no broker does.

A pair of publication and client is *expected* when a matching subscription of the client was confirmed by its broker
before the publication was accepted, and the client had not left by then. The order of the brokers' answers decides.
There is no time of grace. Each expected pair has exactly one fate:

- delivered;
- withdrawn: the client left after the publication was accepted, and before it arrived;
- lost with a broker: the subscriber's broker was killed, or one that alone answered for the publication on its way to
  the subscriber's broker. Simulated brokers keep everything in memory;
- dropped: a broker dropped the publication for good, and the drop names it (see `drop_reasons`);
- missed: none of these, which is a defect.

A pair is *owed* when it was delivered or missed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import matching
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
    """WITHDRAWN or LOST; None while it stands."""


@dataclass(slots=True)
class Accepted:
    """A publication that was accepted and not judged."""

    id: PublicationId
    at: int
    """When it was published."""
    wanted: tuple[_Subscription, ...]
    """The subscriptions that match, of those that stood."""
    lost_for: set[str] = field(default_factory=set)
    """Subscribers' brokers: one was killed that alone answered for it on its way to them."""

    def fates(self, delivered: Collection[str], *, is_dropped: bool) -> dict[str, Fate]:
        """The fate of each expected pair, by client; a client counts once however many subscriptions match.

        `delivered` are the clients that got the publication.
        """
        fates: dict[str, Fate] = {}
        for subscription in self.wanted:
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
        """Whether no pair would be missed if the publication were judged now."""
        return is_dropped or all(
            each.end is not None or each.client in delivered or each.broker in self.lost_for for each in self.wanted
        )


class Oracle:
    def __init__(self) -> None:
        self._index = matching.create("auto")
        self._requested: dict[tuple[str, str], tuple[str, Expression]] = {}
        """Subscriptions without an answer: broker and expression, by client and name."""
        self._standing: dict[int, _Subscription] = {}
        self._numbers: dict[str, list[int]] = {}
        """Of the subscriptions that stand, by client."""
        self._next_number = 0
        self._publications: deque[Accepted] = deque()
        self._aside: list[Accepted] = []

    def requested(self, client: str, name: str, broker: str, expression: Expression) -> None:
        """The client asked its broker for a subscription, and has no answer yet."""
        self._requested[client, name] = (broker, expression)

    def confirmed(self, client: str, name: str) -> None:
        """The broker answers for the subscription. An answer to any other request is ignored."""
        found = self._requested.pop((client, name), None)
        if found is None:
            return
        broker, expression = found
        number, self._next_number = self._next_number, self._next_number + 1
        self._standing[number] = _Subscription(client, name, broker)
        self._numbers.setdefault(client, []).append(number)
        self._index.add(number, expression)

    def left(self, client: str) -> None:
        """The client told its broker that it leaves."""
        self._end(self._numbers.get(client, ()), Fate.WITHDRAWN)
        for key in [key for key in self._requested if key[0] == client]:
            del self._requested[key]

    def killed(self, broker: str, alone_answered: Callable[[PublicationId, str], bool]) -> None:
        """`alone_answered`: the broker answered for the publication on its way to a subscriber's broker, and no other
        that lives did."""
        self._end([number for number, each in self._standing.items() if each.broker == broker], Fate.LOST)
        for key in [key for key, (home, _) in self._requested.items() if home == broker]:
            del self._requested[key]
        for publication in self:
            homes = {each.broker for each in publication.wanted} - publication.lost_for
            publication.lost_for.update(home for home in homes if alone_answered(publication.id, home))

    def _end(self, numbers: Collection[int], end: Fate) -> None:
        for number in list(numbers):
            subscription = self._standing.pop(number)
            subscription.end = end
            self._numbers[subscription.client].remove(number)
            self._index.remove(number)

    def published(self, id: PublicationId, attributes: Mapping[str, Value], at: int) -> None:
        """A broker accepted the publication."""
        wanted = tuple(self._standing[number] for number in self._index.match(attributes).ids)
        self._publications.append(Accepted(id, at, wanted))

    def __iter__(self) -> Iterator[Accepted]:
        """Publications that were not judged, those that were put aside first."""
        yield from self._aside
        yield from self._publications

    def __len__(self) -> int:
        return len(self._aside) + len(self._publications)

    @property
    def oldest(self) -> Accepted | None:
        """Of the publications that were neither judged nor put aside."""
        return self._publications[0] if self._publications else None

    def put_oldest_aside(self) -> None:
        """It lacks a delivery that may still come: it is judged at the end of the run."""
        self._aside.append(self._publications.popleft())

    def forget_oldest(self) -> None:
        """It was judged."""
        self._publications.popleft()

    def take_rest(self) -> Iterator[Accepted]:
        """At the end of a run: what was not judged, in order; it is forgotten."""
        rest = [*self]
        self._aside.clear()
        self._publications.clear()
        return iter(rest)
