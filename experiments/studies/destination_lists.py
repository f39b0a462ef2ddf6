"""Counts destination lists without simulating time: 10,000 publications on 1,000 brokers take seconds.

A broker's next hop towards a destination is its smallest neighbour that is nearer (see `routing.shortest_paths`). So
the path from a source to a destination is the first of all shortest paths in alphabetical order. The paths from one
source to all destinations are a tree: the tree of a breadth-first search that visits neighbours in ascending order. The
message over a link of the tree lists the destinations below that link. In preorder, the brokers below a link are a
slice, and the number of destinations among them is a difference of two running sums.

Under MERC this holds inside each cluster, from the broker by which a publication enters it. The clusters of an overlay
must form a tree with one edge broker between neighbouring clusters, as in transit-stub overlays. With several paths
between clusters, the choice depends on the updates that brokers have received from each other.

The counts for a publication equal those of a simulation's trace [THESIS 10.1.2].
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from experiments.errors import CountingError
from routing.registry import info
from topologies.overlay import Overlay

Flags: TypeAlias = NDArray[np.bool_]
Numbers: TypeAlias = NDArray[np.int64]

CHUNK = 1_000


@dataclass(frozen=True, slots=True)
class Publications:
    """Many publications with their source brokers and interested brokers."""

    sources: Numbers
    interested: Flags
    """One row for each publication and one column for each broker, in the order of the overlay's ids."""


def draw_publications(brokers: int, count: int, interested: int, seed: int) -> Iterator[Publications]:
    """Draws random sources, each with `interested` random brokers, in chunks.

    It draws raw bits only: numpy guarantees that they are the same in all versions, unlike its distributions. Every
    broker draws a number, and the brokers with the smallest numbers are interested.
    """
    if not 1 <= interested <= brokers:
        raise CountingError(f"{interested} interested brokers of {brokers}; it must be 1 to {brokers}")
    name = f"counting/{brokers}/{interested}/{seed}"
    bits = np.random.PCG64(int.from_bytes(hashlib.sha256(name.encode()).digest()[:16], "big"))
    for start in range(0, count, CHUNK):
        rows = min(CHUNK, count - start)
        sources = (bits.random_raw(rows) % np.uint64(brokers)).astype(np.int64)
        drawn = bits.random_raw(rows * brokers).reshape(rows, brokers)
        largest = np.partition(drawn, interested - 1, axis=1)[:, interested - 1]
        yield Publications(sources, drawn <= largest[:, None])


class ListCounts:
    """Histograms of the destinations in a message: of all messages, and of those that sources send."""

    def __init__(self) -> None:
        self._all: Numbers = np.zeros(1, dtype=np.int64)
        self._at_source: Numbers = np.zeros(1, dtype=np.int64)

    def add(self, sizes: Numbers) -> None:
        self._all = _add_counts(self._all, sizes)

    def add_at_source(self, sizes: Numbers) -> None:
        self._at_source = _add_counts(self._at_source, sizes)

    @property
    def histogram(self) -> tuple[int, ...]:
        """Numbers of messages with 1, 2, 3, … destinations."""
        return tuple(int(count) for count in self._all[1:])

    @property
    def histogram_at_source(self) -> tuple[int, ...]:
        return tuple(int(count) for count in self._at_source[1:])

    @property
    def messages(self) -> int:
        return sum(self.histogram)

    @property
    def mean(self) -> float:
        return _mean(self.histogram)

    @property
    def mean_at_source(self) -> float:
        return _mean(self.histogram_at_source)

    def share_below(self, size: int) -> float:
        """The share of lists shorter than `size`."""
        return sum(self.histogram[: size - 1]) / max(1, self.messages)


def _add_counts(counts: Numbers, sizes: Numbers) -> Numbers:
    more = np.bincount(sizes, minlength=len(counts))
    more[0] = 0
    more[: len(counts)] += counts
    return more


def _mean(histogram: Sequence[int]) -> float:
    total = sum(size * count for size, count in enumerate(histogram, start=1))
    return total / max(1, sum(histogram))


@dataclass(frozen=True, slots=True)
class _Tree:
    """The paths from one broker as a tree in preorder: the source first, each broker before the brokers below it."""

    preorder: Numbers
    ends: Numbers
    """For each position, the end of the slice of brokers below it."""
    children: Numbers
    """Positions of the source's children."""


class _Trees:
    """The trees of all brokers of a domain, computed on first use."""

    def __init__(self, neighbours: Sequence[Sequence[int]]) -> None:
        """`neighbours` must be in ascending order."""
        self._neighbours = neighbours
        self._trees: dict[int, _Tree] = {}

    def from_source(self, source: int) -> _Tree:
        if source not in self._trees:
            self._trees[source] = _tree(source, self._neighbours)
        return self._trees[source]


def _tree(source: int, neighbours: Sequence[Sequence[int]]) -> _Tree:
    parent = [-1] * len(neighbours)
    parent[source] = source
    reached = [source]
    for broker in reached:
        for other in neighbours[broker]:
            if parent[other] < 0:
                parent[other] = broker
                reached.append(other)
    below = [1] * len(neighbours)
    for broker in reversed(reached[1:]):
        below[parent[broker]] += below[broker]
    position, free = [0] * len(neighbours), [1] * len(neighbours)
    for broker in reached[1:]:
        above = parent[broker]
        position[broker] = position[above] + free[above]
        free[above] += below[broker]
    preorder = np.zeros(len(reached), dtype=np.int64)
    ends = np.zeros(len(reached), dtype=np.int64)
    for broker in reached:
        preorder[position[broker]] = broker
        ends[position[broker]] = position[broker] + below[broker]
    children = [position[broker] for broker in reached[1:] if parent[broker] == source]
    return _Tree(preorder, ends, np.array(children, dtype=np.int64))


def _count_legs(tree: _Tree, destinations: Flags, counts: ListCounts, *, is_source: bool) -> None:
    """Counts the lists of publications that start at the tree's source, which is not a destination."""
    running = np.zeros((len(destinations), len(tree.preorder) + 1), dtype=np.int64)
    np.cumsum(destinations[:, tree.preorder], axis=1, out=running[:, 1:])
    sizes = running[:, tree.ends] - running[:, :-1]
    counts.add(sizes[:, 1:].ravel())
    if is_source:
        counts.add_at_source(sizes[:, tree.children].ravel())


class FlatCounter:
    """Counts under D-DBR: the overlay is one domain."""

    def __init__(self, overlay: Overlay) -> None:
        numbers = {broker: number for number, broker in enumerate(overlay.ids)}
        self._trees = _Trees([[numbers[other] for other in overlay.neighbours(id)] for id in overlay.ids])

    def count(self, publications: Publications, counts: ListCounts) -> None:
        for source in np.unique(publications.sources):
            destinations = publications.interested[publications.sources == source]
            destinations[:, source] = False
            _count_legs(self._trees.from_source(int(source)), destinations, counts, is_source=True)


class _Cluster:
    def __init__(self, name: str, overlay: Overlay) -> None:
        self.name = name
        numbers = {broker: number for number, broker in enumerate(overlay.ids)}
        self.ids = overlay.members(name)
        self.members = np.array([numbers[id] for id in self.ids], dtype=np.int64)
        inside = {id: number for number, id in enumerate(self.ids)}
        self.edges = [(inside[id], id) for id in self.ids if overlay.is_edge(id)]
        self.trees = _Trees([[inside[other] for other in overlay.neighbours(id) if other in inside] for id in self.ids])


class ClusteredCounter:
    """Counts under MERC on clusters that form a tree."""

    def __init__(self, overlay: Overlay) -> None:
        joints = sum(len(overlay.broker(id).clusters) for id in overlay.edge_brokers)
        if joints != len(overlay.clusters) + len(overlay.edge_brokers) - 1:
            raise CountingError(
                f"overlay {overlay.name!r} has several ways between some of its {len(overlay.clusters)} clusters; MERC "
                "is counted only on a tree of clusters with one edge broker between neighbours: simulate it instead"
            )
        self._overlay = overlay
        self._clusters = [_Cluster(name, overlay) for name in overlay.clusters]
        number_of = {broker: number for number, broker in enumerate(overlay.ids)}
        self._behind: dict[tuple[str, int], Numbers] = {}
        """For a cluster and the position of one of its edge brokers, the brokers beyond that edge broker."""
        self._entrance: dict[str, Numbers] = {}
        """For a cluster, the position of the broker by which each broker's publications enter it. For members of the
        cluster it is their own position."""
        for cluster in self._clusters:
            entrance = np.full(len(overlay.ids), -1, dtype=np.int64)
            entrance[cluster.members] = np.arange(len(cluster.members))
            for position, id in cluster.edges:
                beyond = np.array([number_of[other] for other in self._beyond(cluster.name, id)], dtype=np.int64)
                self._behind[cluster.name, position] = beyond
                entrance[beyond] = position
            self._entrance[cluster.name] = entrance

    def _beyond(self, cluster: str, edge: str) -> list[str]:
        """All brokers that a publication from the cluster reaches through this edge broker, without the edge broker."""
        found: list[str] = []
        pending = [(cluster, edge)]
        while pending:
            origin, through = pending.pop()
            for name in self._overlay.broker(through).clusters:
                if name != origin:
                    others = [id for id in self._overlay.members(name) if id != through]
                    found += others
                    pending += [(name, id) for id in others if self._overlay.is_edge(id)]
        return found

    def count(self, publications: Publications, counts: ListCounts) -> None:
        for cluster in self._clusters:
            destinations = publications.interested[:, cluster.members]
            for position, _ in cluster.edges:
                behind = self._behind[cluster.name, position]
                destinations[:, position] |= publications.interested[:, behind].any(axis=1)
            starts = self._entrance[cluster.name][publications.sources]
            own = np.isin(publications.sources, cluster.members)
            for start in np.unique(starts):
                for is_source in (True, False):
                    chosen = (starts == start) & (own == is_source)
                    if chosen.any():
                        wanted = destinations[chosen]
                        wanted[:, start] = False
                        _count_legs(cluster.trees.from_source(int(start)), wanted, counts, is_source=is_source)


def count_lists(overlay: Overlay, protocol: str, publications: Iterator[Publications]) -> ListCounts:
    """The destination lists of all messages that D-DBR or MERC would send for these publications."""
    if not info(protocol).names_destinations:
        raise CountingError(f"lists are counted for d-dbr and merc, not for {protocol!r}")
    counter = ClusteredCounter(overlay) if info(protocol).needs_clusters else FlatCounter(overlay)
    counts = ListCounts()
    for portion in publications:
        counter.count(portion, counts)
    return counts
