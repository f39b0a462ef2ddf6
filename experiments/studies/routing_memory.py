"""Memory of routing tables, and messages for a change of the overlay [THESIS 10.1.2]."""

from __future__ import annotations

from dataclasses import dataclass

from routing.registry import info
from routing.shortest_paths import TopologyTable
from topologies.overlay import Overlay


@dataclass(frozen=True, slots=True)
class RoutingMemory:
    """The largest memory of a broker for TRT and SPRT, and the messages of a change in the largest domain."""

    bytes_inside: int
    bytes_at_edges: int
    """Memory of edge brokers, which have the tables of all their clusters; 0 without clusters."""
    messages_multicast: int
    """Messages along a shortest-path tree: each broker but the first receives one."""
    messages_flooded: int
    """Messages of a flood: every broker forwards to all neighbours but the sender."""


def measure(overlay: Overlay, protocol: str) -> RoutingMemory:
    """Measures the memory of the routing tables of every broker in the overlay."""
    is_clustered = info(protocol).needs_clusters
    domains = [overlay.members(name) for name in overlay.clusters] if is_clustered else [overlay.ids]
    bytes_of = dict.fromkeys(overlay.ids, 0)
    multicast = flooded = 0
    for members in domains:
        inside = set(members)
        links = [link.ends for link in overlay.links if inside.issuperset(link.ends)]
        table = TopologyTable.of({id: _costs(id, links) for id in members})
        for id in members:
            bytes_of[id] += table.size_bytes
        multicast = max(multicast, len(members) - 1)
        flooded = max(flooded, 2 * len(links) - (len(members) - 1))
    edges = set(overlay.edge_brokers) if is_clustered else set()
    return RoutingMemory(
        bytes_inside=max((size for id, size in bytes_of.items() if id not in edges), default=0),
        bytes_at_edges=max((size for id, size in bytes_of.items() if id in edges), default=0),
        messages_multicast=multicast,
        messages_flooded=flooded,
    )


def _costs(id: str, links: list[tuple[str, str]]) -> dict[str, int]:
    return {b if a == id else a: 1 for a, b in links if id in (a, b)}
