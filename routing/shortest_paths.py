"""TRT and SPRT: the links between brokers, and the next hop towards each destination [THESIS 4.2].

A topology routing table is an immutable value. Brokers of one process that know the same links share one object. So a
simulation of a thousand brokers has one table instead of a thousand. The next hops from a broker are computed on first
use.

Of equal shortest paths, the one with the smallest broker id is used, so that a run is repeatable. All brokers that
share a table agree on distances, and every next hop is nearer to the destination. So no message loops between them.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from typing import ClassVar, NamedTuple, TypeAlias
from weakref import WeakValueDictionary

_Graph: TypeAlias = tuple[tuple[str, tuple[tuple[str, int], ...]], ...]


class Route(NamedTuple):
    next_hop: str
    distance: int


class TopologyTable:
    """The TRT: an undirected graph of brokers with the cost of each link."""

    __slots__ = ("__weakref__", "_links", "_routes")

    _shared: ClassVar[WeakValueDictionary[_Graph, TopologyTable]] = WeakValueDictionary()

    def __init__(self, links: dict[str, dict[str, int]]) -> None:
        self._links = links
        self._routes: dict[str, Mapping[str, Route]] = {}

    @classmethod
    def of(cls, links: Mapping[str, Mapping[str, int]]) -> TopologyTable:
        """Returns the table of these brokers, with their neighbours and the links' costs. Equal tables are one
        object."""
        key = tuple(sorted((broker, tuple(sorted(neighbours.items()))) for broker, neighbours in links.items()))
        table = cls._shared.get(key)
        if table is None:
            table = cls({broker: dict(neighbours) for broker, neighbours in key})
            cls._shared[key] = table
        return table

    @classmethod
    def of_links(cls, links: Iterable[tuple[str, str]]) -> TopologyTable:
        graph: dict[str, dict[str, int]] = {}
        for first, second in links:
            graph.setdefault(first, {})[second] = 1
            graph.setdefault(second, {})[first] = 1
        return cls.of(graph)

    @property
    def brokers(self) -> tuple[str, ...]:
        return tuple(self._links)

    def neighbours(self, broker: str) -> tuple[str, ...]:
        return tuple(self._links.get(broker, ()))

    def routes_from(self, broker: str) -> Mapping[str, Route]:
        """Returns the SPRT of a broker: next hop and distance of every reachable broker."""
        if broker not in self._routes:
            self._routes[broker] = self._shortest_paths(broker)
        return self._routes[broker]

    def distance(self, first: str, second: str) -> int | None:
        """Returns the distance, or None if there is no path."""
        if first == second:
            return 0
        route = self.routes_from(first).get(second)
        return None if route is None else route.distance

    def without_link(self, first: str, second: str) -> TopologyTable:
        links = {broker: dict(neighbours) for broker, neighbours in self._links.items()}
        for one, other in ((first, second), (second, first)):
            # An end that has left is not in the table.
            links.get(one, {}).pop(other, None)
        return TopologyTable.of(links)

    @property
    def size_bytes(self) -> int:
        """The modelled size: 1 byte for each matrix entry and 8 for each SPRT record. It fits [THESIS Fig. 10.1.20]."""
        brokers = len(self._links)
        return brokers * brokers + 8 * brokers

    def _shortest_paths(self, source: str) -> dict[str, Route]:
        routes: dict[str, Route] = {}
        # Ordered by distance, then by first hop: a broker is reached by the smallest first hop.
        frontier = [(cost, neighbour, neighbour) for neighbour, cost in self._links.get(source, {}).items()]
        heapq.heapify(frontier)
        while frontier:
            distance, first_hop, broker = heapq.heappop(frontier)
            if broker in routes or broker == source:
                continue
            routes[broker] = Route(first_hop, distance)
            for neighbour, cost in self._links[broker].items():
                if neighbour not in routes:
                    heapq.heappush(frontier, (distance + cost, first_hop, neighbour))
        return routes
