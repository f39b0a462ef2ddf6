"""Graph functions on plain adjacency tables. Nodes are brokers' ids or a generator's numbers.

An adjacency table maps each node to its neighbours. Results never depend on the order of a set: nodes are in the order
of the table or of the argument.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import TypeVar

Node = TypeVar("Node", int, str)


def adjacency(nodes: Iterable[Node], links: Iterable[tuple[Node, Node]]) -> dict[Node, list[Node]]:
    """Returns each node's neighbours, in the order of the links."""
    neighbours: dict[Node, list[Node]] = {node: [] for node in nodes}
    for a, b in links:
        neighbours[a].append(b)
        neighbours[b].append(a)
    return neighbours


def components(
    nodes: Iterable[Node], neighbours: Mapping[Node, Sequence[Node]], inside: Container[Node] | None = None
) -> list[list[Node]]:
    """Returns the connected components of the graph that `nodes` induce, each in the order of traversal.

    `inside` contains the members of `nodes`. Without it every node of the table is a member.
    """
    pieces: list[list[Node]] = []
    seen: set[Node] = set()
    for start in nodes:
        if start in seen:
            continue
        seen.add(start)
        piece = [start]
        for node in piece:
            for other in neighbours[node]:
                if other not in seen and (inside is None or other in inside):
                    seen.add(other)
                    piece.append(other)
        pieces.append(piece)
    return pieces


def is_connected(count: int, links: Iterable[tuple[int, int]]) -> bool:
    """Whether the links connect the nodes 0 to count - 1."""
    return len(components(range(count), adjacency(range(count), links))) == 1


def hops_from(start: Node, neighbours: Mapping[Node, Sequence[Node]]) -> dict[Node, int]:
    """Returns the hops from `start` to each reachable node, nearest first."""
    hops = {start: 0}
    queue = [start]
    for node in queue:
        for other in neighbours[node]:
            if other not in hops:
                hops[other] = hops[node] + 1
                queue.append(other)
    return hops


def pairs_by_hops(neighbours: Mapping[Node, Sequence[Node]]) -> list[int]:
    """Returns how many ordered pairs of distinct nodes are 1, 2, 3, … hops apart, without pairs that have no path.

    All sources advance together. The nodes that a node reaches are one integer with a bit for each; one more hop is the
    union of the neighbours' integers. A thousand nodes take hundredths of a second.
    """
    numbers = {node: number for number, node in enumerate(neighbours)}
    table = [[numbers[other] for other in others] for others in neighbours.values()]
    reach = [1 << number for number in range(len(table))]
    reached = len(table)
    counts: list[int] = []
    while True:
        wider = list(reach)
        for number, others in enumerate(table):
            for other in others:
                wider[number] |= reach[other]
        total = sum(bits.bit_count() for bits in wider)
        if total == reached:
            return counts
        counts.append(total - reached)
        reach, reached = wider, total
