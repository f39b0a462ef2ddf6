"""What a run owes its subscribers, from what the simulation knows and no broker does.

A pair of publication and client is *expected* when a subscription of the client that was there when the publication
was accepted matches it. It is *owed* when, besides, the subscription had been in place long enough for every broker
that must know of it, was not withdrawn before the publication could arrive, and publisher's and subscriber's brokers
stayed connected in the protocol's own sense: by any path under D-DBR and flooding, by the links of the advertisement's
tree under FBR, by clusters that are connected inside under MERC.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import matching
from matching import Expression
from matching.values import Value
from routing.messages import PublicationId
from topologies import Overlay

FOREVER = 2**62


@dataclass(slots=True)
class _Subscription:
    client: str
    broker: str
    added: int
    removed: int = FOREVER


@dataclass(frozen=True, slots=True)
class _Publication:
    id: PublicationId
    broker: str
    at: int
    wanted: tuple[int, ...]
    """Numbers of the subscriptions that match, of those that were there."""
    paths: Mapping[str, tuple[tuple[str, str], ...] | None]
    """Under FBR, the tree's links to each broker with such a subscription; None where there is no way."""


@dataclass(frozen=True, slots=True)
class Expectation:
    publication: PublicationId
    client: str
    is_owed: bool


@dataclass(slots=True)
class _Outages:
    """When a link or broker was down: pairs of start and end, in order."""

    spans: list[tuple[int, int]] = field(default_factory=list)

    def started(self, at: int) -> None:
        if not self.spans or self.spans[-1][1] != FOREVER:
            self.spans.append((at, FOREVER))

    def ended(self, at: int) -> None:
        if self.spans and self.spans[-1][1] == FOREVER:
            self.spans[-1] = (self.spans[-1][0], at)

    def overlap(self, start: int, end: int) -> bool:
        return any(begin < end and stop > start for begin, stop in self.spans)

    def is_down(self, at: int) -> bool:
        position = bisect_right(self.spans, (at, FOREVER + 1)) - 1
        return position >= 0 and self.spans[position][1] > at


class Oracle:
    def __init__(self, overlay: Overlay, protocol: str, *, settled_after: int, reach: int) -> None:
        """`settled_after`: how long until a subscription is everywhere. `reach`: how long a publication may take."""
        self._overlay = overlay
        self._protocol = protocol
        self._settled_after = settled_after
        self._reach = reach
        self._index = matching.create("auto")
        self._subscriptions: dict[int, _Subscription] = {}
        self._numbers: dict[tuple[str, str], int] = {}
        self._publications: deque[_Publication] = deque()
        self._next_number = 0
        self._withdrawn: deque[int] = deque()
        self._links = {_ends(link.a, link.b): _Outages() for link in overlay.links}
        self._brokers = {broker.id: _Outages() for broker in overlay.brokers}
        self._changes: list[int] = []
        self._reached: dict[tuple[int, str], frozenset[str]] = {}

    def subscribed(self, client: str, name: str, broker: str, expression: Expression, at: int) -> None:
        number, self._next_number = self._next_number, self._next_number + 1
        self._subscriptions[number] = _Subscription(client, broker, at)
        self._numbers[client, name] = number
        self._index.add(number, expression)

    def unsubscribed(self, client: str, name: str, at: int) -> None:
        number = self._numbers.pop((client, name))
        self._subscriptions[number].removed = at
        self._withdrawn.append(number)
        self._index.remove(number)

    def published(
        self,
        id: PublicationId,
        broker: str,
        attributes: Mapping[str, Value],
        at: int,
        path: Callable[[str], tuple[tuple[str, str], ...] | None] | None = None,
    ) -> None:
        """`path` gives, under FBR, the links of the publication's tree to a broker."""
        wanted = tuple(self._index.match(attributes).ids)
        homes = {self._subscriptions[number].broker for number in wanted}
        paths = {home: path(home) for home in sorted(homes)} if path is not None else {}
        self._publications.append(_Publication(id, broker, at, wanted, paths))

    def link_went(self, first: str, second: str, at: int, *, is_up: bool) -> None:
        outages = self._links.setdefault(_ends(first, second), _Outages())
        (outages.ended if is_up else outages.started)(at)
        self._changed(at)

    def broker_went(self, name: str, at: int, *, is_up: bool) -> None:
        (self._brokers[name].ended if is_up else self._brokers[name].started)(at)
        if not is_up:
            for (client, entry), number in list(self._numbers.items()):
                if self._subscriptions[number].broker == name:
                    self.unsubscribed(client, entry, at)
        self._changed(at)

    def _changed(self, at: int) -> None:
        if not self._changes or self._changes[-1] != at:
            self._changes.append(at)

    def __len__(self) -> int:
        """Publications that were not judged."""
        return len(self._publications)

    @property
    def oldest(self) -> tuple[PublicationId, int] | None:
        """Of the publications that were not judged: its id, and when it was accepted."""
        return (self._publications[0].id, self._publications[0].at) if self._publications else None

    def judge_oldest(self) -> list[Expectation]:
        """Its expected pairs; a client counts once however many subscriptions match. Then it is forgotten.

        What happened up to `reach` after it decides, so it is not to be asked for earlier than that.
        """
        publication = self._publications.popleft()
        owed: dict[str, bool] = {}
        for number in publication.wanted:
            subscription = self._subscriptions[number]
            is_owed = owed.get(subscription.client, False) or self._is_owed(publication, subscription)
            owed[subscription.client] = is_owed
        self._forget_withdrawn(publication.at)
        return [Expectation(publication.id, client, is_owed) for client, is_owed in sorted(owed.items())]

    def _forget_withdrawn(self, before: int) -> None:
        """Publications accepted later than that do not want what was gone by then."""
        while self._withdrawn and self._subscriptions[self._withdrawn[0]].removed < before:
            del self._subscriptions[self._withdrawn.popleft()]

    def _is_owed(self, publication: _Publication, subscription: _Subscription) -> bool:
        end = publication.at + self._reach
        in_place_since = publication.at - self._settled_after
        if subscription.added > in_place_since or subscription.removed < end:
            return False
        for name in (publication.broker, subscription.broker):
            if self._brokers[name].overlap(in_place_since, end):
                return False
        if self._protocol == "fbr":
            links = publication.paths.get(subscription.broker)
            return links is not None and not any(self._links[link].overlap(0, end) for link in links)
        moments = [in_place_since, *(each for each in self._changes if in_place_since < each < end)]
        return all(subscription.broker in self._reachable(moment, publication.broker) for moment in moments)

    def _reachable(self, moment: int, start: str) -> frozenset[str]:
        key = (bisect_right(self._changes, moment), start)
        if key not in self._reached:
            live = [link for link, outages in self._links.items() if not outages.is_down(moment)]
            reached = self._by_clusters(start, live) if self._protocol == "merc" else _component(start, live)
            self._reached[key] = frozenset(reached)
        return self._reached[key]

    def _by_clusters(self, start: str, live: list[tuple[str, str]]) -> set[str]:
        linked = {end for link in live for end in link}
        whole: list[set[str]] = []
        for cluster in self._overlay.clusters:
            members = {name for name in self._overlay.members(cluster) if name in linked or name == start}
            inside = [link for link in live if set(link) <= members]
            if members and _component(min(members), inside) >= members:
                whole.append(members)
        reached, is_growing = {start}, True
        while is_growing:
            joined = [members for members in whole if members & reached and not members <= reached]
            is_growing = bool(joined)
            reached.update(*joined)
        return reached


def _ends(first: str, second: str) -> tuple[str, str]:
    return (first, second) if first < second else (second, first)


def _component(start: str, links: list[tuple[str, str]]) -> set[str]:
    neighbours: dict[str, list[str]] = {}
    for first, second in links:
        neighbours.setdefault(first, []).append(second)
        neighbours.setdefault(second, []).append(first)
    reached, pending = {start}, [start]
    while pending:
        for other in neighbours.get(pending.pop(), ()):
            if other not in reached:
                reached.add(other)
                pending.append(other)
    return reached
