"""An overlay as data: brokers, the links between them, and the clusters of MERC [THESIS 5].

An `Overlay` is checked when it is created and never changes, so it always satisfies the rules in `validation`. It has a
canonical order, brokers by id and links by their ends. So two overlays with the same content are equal, in whatever
order they were written. Ids are compared as plain strings: generators pad their numbers with zeros, so that the
smallest id is also the first one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import combinations

from topologies.broker_and_link import Broker, Link
from topologies.errors import OverlayError, nearest
from topologies.validation import check_brokers, check_clusters, check_connected, check_links


@dataclass(frozen=True, slots=True)
class Overlay:
    """Brokers, links and clusters that satisfy the rules. Others raise `OverlayError`."""

    name: str
    brokers: tuple[Broker, ...]
    links: tuple[Link, ...]
    _broker_of: dict[str, Broker] = field(init=False, repr=False, compare=False)
    _link_of: dict[tuple[str, str], Link] = field(init=False, repr=False, compare=False)
    _neighbours: dict[str, tuple[str, ...]] = field(init=False, repr=False, compare=False)
    _members: dict[str, tuple[str, ...]] = field(init=False, repr=False, compare=False)
    _edges: tuple[str, ...] = field(init=False, repr=False, compare=False)
    _edges_between: dict[tuple[str, str], tuple[str, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        brokers = tuple(sorted(self.brokers, key=lambda broker: broker.id))
        links = tuple(sorted(self.links, key=lambda link: link.ends))
        check_brokers(brokers)
        check_links(brokers, links)
        neighbours: dict[str, list[str]] = {broker.id: [] for broker in brokers}
        for link in links:
            neighbours[link.a].append(link.b)
            neighbours[link.b].append(link.a)
        sorted_neighbours = {id: tuple(sorted(others)) for id, others in neighbours.items()}
        check_connected(sorted_neighbours)
        members = _members_by_cluster(brokers)
        check_clusters(brokers, links, members, sorted_neighbours)
        values = {
            "brokers": brokers,
            "links": links,
            "_broker_of": {broker.id: broker for broker in brokers},
            "_link_of": {link.ends: link for link in links},
            "_neighbours": sorted_neighbours,
            "_members": members,
            "_edges": tuple(broker.id for broker in brokers if len(broker.clusters) > 1),
            "_edges_between": _edges_by_pair(brokers),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def ids(self) -> tuple[str, ...]:
        """All brokers' ids, ascending."""
        return tuple(self._broker_of)

    @property
    def clusters(self) -> tuple[str, ...]:
        """The clusters' names, ascending. Empty when the overlay has no clusters."""
        return tuple(self._members)

    @property
    def edge_brokers(self) -> tuple[str, ...]:
        """The ids of the brokers in several clusters, ascending."""
        return self._edges

    @property
    def neighbouring_clusters(self) -> tuple[tuple[str, str], ...]:
        """The pairs of clusters that share an edge broker, each pair and all pairs ascending."""
        return tuple(self._edges_between)

    def broker(self, id: str) -> Broker:
        """Returns the broker with this id."""
        try:
            return self._broker_of[id]
        except KeyError:
            raise self._unknown_broker(id) from None

    def has_link(self, a: str, b: str) -> bool:
        """Whether the two brokers are neighbours."""
        return (min(a, b), max(a, b)) in self._link_of

    def link(self, a: str, b: str) -> Link:
        """Returns the link between two brokers, given in either order."""
        try:
            return self._link_of[min(a, b), max(a, b)]
        except KeyError:
            raise OverlayError(f"overlay {self.name!r} has no link between {a!r} and {b!r}") from None

    def neighbours(self, id: str) -> tuple[str, ...]:
        """Returns the ids of the broker's neighbours, ascending."""
        try:
            return self._neighbours[id]
        except KeyError:
            raise self._unknown_broker(id) from None

    def members(self, cluster: str) -> tuple[str, ...]:
        """Returns the ids of the cluster's brokers, including its edge brokers, ascending."""
        try:
            return self._members[cluster]
        except KeyError:
            raise OverlayError(
                f"overlay {self.name!r} has no cluster {cluster!r}; {nearest(cluster, self._members)}"
            ) from None

    def is_edge(self, id: str) -> bool:
        """Whether the broker belongs to several clusters."""
        return len(self.broker(id).clusters) > 1

    def edges_between(self, one: str, other: str) -> tuple[str, ...]:
        """Returns the ids of the edge brokers that both clusters share, ascending."""
        self.members(one)
        self.members(other)
        if one == other:
            raise OverlayError(f"edge brokers join two different clusters, not {one!r} with itself")
        return self._edges_between.get((min(one, other), max(one, other)), ())

    def with_clusters(self, clusters_of: Mapping[str, Iterable[str]]) -> Overlay:
        """Returns this overlay with each broker in the clusters that the table gives it."""
        brokers = tuple(
            Broker(broker.id, tuple(clusters_of[broker.id]), broker.position, broker.label) for broker in self.brokers
        )
        return Overlay(self.name, brokers, self.links)

    def _unknown_broker(self, id: str) -> OverlayError:
        return OverlayError(f"overlay {self.name!r} has no broker {id!r}; {nearest(id, self._broker_of)}")


def _members_by_cluster(brokers: tuple[Broker, ...]) -> dict[str, tuple[str, ...]]:
    members: dict[str, list[str]] = {}
    for broker in brokers:
        for cluster in broker.clusters:
            members.setdefault(cluster, []).append(broker.id)
    return {cluster: tuple(members[cluster]) for cluster in sorted(members)}


def _edges_by_pair(brokers: tuple[Broker, ...]) -> dict[tuple[str, str], tuple[str, ...]]:
    edges: dict[tuple[str, str], list[str]] = {}
    for broker in brokers:
        for one, other in combinations(broker.clusters, 2):
            edges.setdefault((one, other), []).append(broker.id)
    return {pair: tuple(edges[pair]) for pair in sorted(edges)}
