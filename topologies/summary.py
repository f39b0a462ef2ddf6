"""An overlay in numbers."""

from __future__ import annotations

from dataclasses import dataclass

from topologies.graph import pairs_by_hops
from topologies.overlay import Overlay


@dataclass(frozen=True, slots=True)
class ClusterSummary:
    """One cluster: the numbers of its brokers and edge brokers, and its diameter."""

    name: str
    brokers: int
    edge_brokers: int
    diameter_hops: int


@dataclass(frozen=True, slots=True)
class SinglePair:
    """Two clusters that only one edge broker joins: a single point of failure between them."""

    clusters: tuple[str, str]
    edge_broker: str


@dataclass(frozen=True, slots=True)
class Summary:
    """Sizes, degrees, distances in hops and, if there are clusters, the edge brokers between them."""

    name: str
    brokers: int
    links: int
    degree_min: int
    degree_mean: float
    degree_max: int
    diameter_hops: int
    path_hops_mean: float
    latency_ms_mean: float
    clusters: tuple[ClusterSummary, ...]
    edge_brokers: tuple[str, ...]
    single_edge_pairs: tuple[SinglePair, ...]


def summarise(overlay: Overlay) -> Summary:
    """Returns the overlay's numbers. Means are rounded to four digits after the point."""
    degrees = [len(overlay.neighbours(id)) for id in overlay.ids]
    pairs = pairs_by_hops({id: overlay.neighbours(id) for id in overlay.ids})
    total_hops = sum(hops * count for hops, count in enumerate(pairs, start=1))
    total_ms = sum(link.latency_ms for link in overlay.links)
    return Summary(
        name=overlay.name,
        brokers=len(overlay.ids),
        links=len(overlay.links),
        degree_min=min(degrees),
        degree_mean=round(sum(degrees) / len(degrees), 4),
        degree_max=max(degrees),
        diameter_hops=len(pairs),
        path_hops_mean=round(total_hops / max(1, sum(pairs)), 4),
        latency_ms_mean=round(total_ms / max(1, len(overlay.links)), 4),
        clusters=tuple(_summarise_cluster(overlay, cluster) for cluster in overlay.clusters),
        edge_brokers=overlay.edge_brokers,
        single_edge_pairs=_single_edge_pairs(overlay),
    )


def _summarise_cluster(overlay: Overlay, cluster: str) -> ClusterSummary:
    members = overlay.members(cluster)
    inside = set(members)
    neighbours = {id: [other for other in overlay.neighbours(id) if other in inside] for id in members}
    edges = sum(overlay.is_edge(id) for id in members)
    return ClusterSummary(cluster, len(members), edges, len(pairs_by_hops(neighbours)))


def _single_edge_pairs(overlay: Overlay) -> tuple[SinglePair, ...]:
    singles = []
    for one, other in overlay.neighbouring_clusters:
        edges = overlay.edges_between(one, other)
        if len(edges) == 1:
            singles.append(SinglePair((one, other), edges[0]))
    return tuple(singles)
