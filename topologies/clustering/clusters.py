"""Clusters for MERC [THESIS 5], and the edge brokers between them.

- `cluster_by_domain`: the domains of a transit-stub overlay or of a hierarchy, read from the brokers' labels.
- `cluster_by_size`: balanced, connected clusters of any overlay.
- `join_unshared_links`: adds edge brokers to the clusters of an overlay file.

All end with the same step. If the ends of a link share no cluster, one end joins a cluster of the other and becomes an
edge broker. It has a neighbour in the cluster that it joins, so clusters stay connected.
"""

from __future__ import annotations

import heapq
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations

from topologies.broker_and_link import Broker, Link
from topologies.build import check_count
from topologies.clustering.partition import balanced_parts
from topologies.errors import ParameterError
from topologies.graph import adjacency
from topologies.overlay import Overlay

BACKBONE = "backbone"
_TRANSIT_LABEL = re.compile(r"T:(\d+\.\d+)")
_STUB_LABEL = re.compile(r"S:(\d+\.\d+)/\d+\.\d+")
_HIERARCHY_LABEL = re.compile(r"(\d+)(?:\.\d+)+")
_Step = tuple[int, bool, int, str, str]


def cluster_by_domain(overlay: Overlay) -> Overlay:
    """Returns the overlay with its domains as clusters.

    In a transit-stub overlay each transit node and its stub nodes are a cluster, and all transit nodes together are the
    cluster `backbone`, so every transit node is an edge broker. In a hierarchy the graph that replaces each node of the
    top level is a cluster, and ends of the links between clusters become edge brokers.
    """
    labels = {broker.id: broker.label or "" for broker in overlay.brokers}
    if all(_TRANSIT_LABEL.fullmatch(label) or _STUB_LABEL.fullmatch(label) for label in labels.values()):
        return overlay.with_clusters(_Membership(overlay, _transit_clusters(labels)).join_unshared_ends())
    if all(_HIERARCHY_LABEL.fullmatch(label) for label in labels.values()):
        tops = {id: label.partition(".")[0] for id, label in labels.items()}
        names = _names(sorted(set(tops.values()), key=int))
        membership = _Membership(overlay, {id: [names[top]] for id, top in tops.items()})
        membership.join_unshared_ends()
        return overlay.with_clusters(membership.add_second_edges())
    raise ParameterError(
        f"overlay {overlay.name!r} has no domains to make clusters of: its brokers carry no labels of a transit-stub "
        "overlay or a hierarchy; give a cluster size instead (--clusters N, or topology cluster --size N)"
    )


def cluster_by_size(overlay: Overlay, size: int) -> Overlay:
    """Returns the overlay in balanced, connected clusters of about `size` brokers, counting edge brokers once.

    Neighbouring clusters get two or more edge brokers wherever a second one would still join them without the first. An
    overlay with many links between its clusters has many edge brokers; its clusters then have more members than `size`.
    """
    check_count("cluster size", size)
    neighbours = {id: overlay.neighbours(id) for id in overlay.ids}
    parts = balanced_parts(neighbours, math.ceil(len(overlay.ids) / size))
    clusters_of: dict[str, list[str]] = {id: [] for id in overlay.ids}
    names = _names([str(number) for number in range(len(parts))])
    for number, part in enumerate(parts):
        for id in (*part.brokers, *part.guests):
            clusters_of[id].append(names[str(number)])
    membership = _Membership(overlay, clusters_of)
    membership.join_unshared_ends()
    return overlay.with_clusters(membership.add_second_edges())


def join_unshared_links(brokers: Sequence[Broker], links: Sequence[Link]) -> tuple[Broker, ...]:
    """Returns the brokers after one end of each link whose ends share no cluster became an edge broker."""
    overlay = Overlay("unclustered", tuple(Broker(broker.id) for broker in brokers), tuple(links))
    clusters_of = _Membership(overlay, {broker.id: list(broker.clusters) for broker in brokers}).join_unshared_ends()
    return tuple(
        Broker(broker.id, tuple(clusters_of[broker.id]), broker.position, broker.label, broker.edge)
        for broker in brokers
    )


def _transit_clusters(labels: Mapping[str, str]) -> dict[str, list[str]]:
    home_of = {}
    for id, label in labels.items():
        match = _TRANSIT_LABEL.fullmatch(label) or _STUB_LABEL.fullmatch(label)
        assert match is not None
        home_of[id] = match[1]
    transits = {home_of[id] for id, label in labels.items() if label.startswith("T")}
    for id, label in labels.items():
        if home_of[id] not in transits:
            raise ParameterError(f"broker {id!r} is labelled {label!r}, but no broker is labelled 'T:{home_of[id]}'")
    names = _names(sorted(transits, key=lambda home: tuple(map(int, home.split(".")))))
    return {id: [names[home_of[id]]] + ([BACKBONE] if label.startswith("T") else []) for id, label in labels.items()}


def _names(keys: Sequence[str]) -> dict[str, str]:
    """Returns c01, c02, … for the keys, in their order."""
    width = max(2, len(str(len(keys))))
    return {key: f"c{number:0{width}d}" for number, key in enumerate(keys, start=1)}


class _StepQueue:
    """A priority queue of steps. It holds each pair of broker and cluster once, with the highest priority it was pushed
    with."""

    def __init__(self) -> None:
        self._heap: list[_Step] = []
        self._queued: dict[tuple[str, str], _Step] = {}

    def push(self, step: _Step) -> None:
        key = step[3], step[4]
        queued = self._queued.get(key)
        if queued is None or step < queued:
            self._queued[key] = step
            heapq.heappush(self._heap, step)

    def pop(self) -> _Step | None:
        """Removes and returns the step with the highest priority. The priority may have become outdated since the
        push."""
        while self._heap:
            step = heapq.heappop(self._heap)
            if self._queued.get((step[3], step[4])) == step:
                del self._queued[step[3], step[4]]
                return step
        return None


class _Membership:
    """The clusters of each broker during the choice of edge brokers."""

    def __init__(self, overlay: Overlay, clusters_of: Mapping[str, Sequence[str]]) -> None:
        self._neighbours = adjacency(overlay.ids, [link.ends for link in overlay.links])
        self._clusters_of = {id: list(clusters_of[id]) for id in overlay.ids}
        self._sizes = Counter(cluster for clusters in self._clusters_of.values() for cluster in clusters)

    def join_unshared_ends(self) -> dict[str, Sequence[str]]:
        """Lets brokers join clusters until the ends of every link share one. Returns each broker's clusters.

        The choice is greedy. Steps are ordered by the number of links they resolve, then whether they need no new edge
        broker, then by the smallest cluster, then by the smallest id. Brokers without a cluster do not change.
        """
        queue = _StepQueue()
        for id in self._clusters_of:
            self._push_steps(id, queue)
        while (step := queue.pop()) is not None:
            *_, id, cluster = step
            resolved = self._resolved_links(id).get(cluster, 0)
            if not resolved:
                continue
            current = self._step(id, cluster, resolved)
            if current != step:
                queue.push(current)
                continue
            self._join(id, cluster)
            for affected in (id, *self._neighbours[id]):
                self._push_steps(affected, queue)
        return dict(self._clusters_of)

    def add_second_edges(self) -> dict[str, Sequence[str]]:
        """Gives pairs of clusters with one edge broker a second one, if a link joins the clusters without the first.
        Returns each broker's clusters."""
        has_changed = True
        while has_changed:
            has_changed = False
            for pair, edges in self._edges_by_pair().items():
                step = self._second_edge(pair, edges[0]) if len(edges) == 1 else None
                if step is not None:
                    self._join(*step)
                    has_changed = True
                    break
        return dict(self._clusters_of)

    def _join(self, id: str, cluster: str) -> None:
        self._clusters_of[id].append(cluster)
        self._sizes[cluster] += 1

    def _resolved_links(self, id: str) -> dict[str, int]:
        """Returns, for each cluster that the broker could join, how many of its unshared links that would resolve."""
        own = self._clusters_of[id]
        resolved: dict[str, int] = {}
        for other in self._neighbours[id]:
            clusters = self._clusters_of[other]
            if own and not set(own).intersection(clusters):
                for cluster in clusters:
                    resolved[cluster] = resolved.get(cluster, 0) + 1
        return resolved

    def _push_steps(self, id: str, queue: _StepQueue) -> None:
        for cluster, resolved in self._resolved_links(id).items():
            queue.push(self._step(id, cluster, resolved))

    def _step(self, id: str, cluster: str, resolved: int) -> _Step:
        return -resolved, len(self._clusters_of[id]) == 1, self._sizes[cluster], id, cluster

    def _edges_by_pair(self) -> dict[tuple[str, str], list[str]]:
        edges: dict[tuple[str, str], list[str]] = {}
        for id, clusters in self._clusters_of.items():
            for pair in combinations(sorted(clusters), 2):
                edges.setdefault(pair, []).append(id)
        return {pair: edges[pair] for pair in sorted(edges)}

    def _second_edge(self, pair: tuple[str, str], first: str) -> tuple[str, str] | None:
        """Returns a broker and the cluster of the pair that it may join, by a link that does not end at the first edge
        broker."""
        best: tuple[int, str, str] | None = None
        for id, clusters in self._clusters_of.items():
            for inside, beyond in (pair, pair[::-1]):
                if id == first or inside not in clusters:
                    continue
                if any(other != first and beyond in self._clusters_of[other] for other in self._neighbours[id]):
                    best = min(best or (len(clusters), id, beyond), (len(clusters), id, beyond))
        return best and best[1:]
