"""The small connected graphs that hierarchies and transit-stub overlays consist of."""

from __future__ import annotations

import heapq
import random
from collections.abc import Sequence

from topologies.errors import ParameterError
from topologies.generators.edge_models import Drawing, EdgeModel, draw_connected, grid_points
from topologies.generators.random_links import connected_links


def draw_domain(count: int, scale: int, edges: EdgeModel | int, rng: random.Random) -> Drawing:
    """Draws one domain on a square with side `scale`: by an edge model, or with an exact number of random links."""
    if isinstance(edges, EdgeModel):
        return draw_connected(edges, count, rng, scale=scale)
    return Drawing(grid_points(count, scale, rng), connected_links(count, edges, rng))


def share_links(total: int, sizes: Sequence[int], whole: str) -> list[int]:
    """Distributes links among domains of these sizes, so that their mean degrees are as equal as possible.

    Each domain gets enough links to be connected and at most one for each pair. Errors name the request by `whole`.
    """
    shares = [size - 1 for size in sizes]
    room = [size * (size - 1) // 2 for size in sizes]
    if not sum(shares) <= total <= sum(room):
        raise ParameterError(
            f"{whole} leaves {total} links for the inside of {len(sizes)} domains, which take from {sum(shares)} "
            f"to {sum(room)}; change degree or the domains' sizes"
        )
    emptiest = [(shares[number] / size, number) for number, size in enumerate(sizes) if shares[number] < room[number]]
    heapq.heapify(emptiest)
    for _ in range(total - sum(shares)):
        _, number = heapq.heappop(emptiest)
        shares[number] += 1
        if shares[number] < room[number]:
            heapq.heappush(emptiest, (shares[number] / sizes[number], number))
    return shares
