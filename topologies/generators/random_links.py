"""Random connected graphs with an exact number of links, or an exact degree.

`connected_links` draws uniformly among all graphs with that many links. A connected draw is kept unchanged. Another is
repaired: random links that close a cycle are removed, and as many are added to join the components. So the number of
links stays exact. Only sparse graphs (a mean degree below about ln n) need repairs. Only for these the result is not
exactly uniform among connected graphs. Cost: O(links) for `connected_links`; a few redraws of O(links) for
`regular_links`.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable

from topologies.build import Pair, check_count
from topologies.errors import ParameterError
from topologies.graph import is_connected

TRIES = 1000


def links_for_degree(count: int, degree: float) -> int:
    """Returns the number of links that give `count` brokers this mean degree. Raises ParameterError for an impossible
    degree."""
    check_count("brokers", count)
    if not degree < count:
        raise ParameterError(
            f"degree {degree:g} is impossible with brokers = {count}: a broker has at most {count - 1} neighbours"
        )
    if count * degree / 2 < count - 1 - 1e-9:
        raise ParameterError(
            f"degree {degree:g} leaves {count} brokers disconnected: a connected overlay needs a mean degree of at "
            f"least 2 - 2/{count} = {2 - 2 / count:.4g}"
        )
    return round(count * degree / 2)


def connected_links(count: int, links: int, rng: random.Random) -> list[Pair]:
    """Returns exactly `links` links that connect the nodes 0 to count - 1, ascending."""
    most = count * (count - 1) // 2
    if not count - 1 <= links <= most:
        raise ParameterError(
            f"{links} links cannot connect {count} brokers: it takes from {count - 1} to {most} of them"
        )
    drawn = [_pair_of_number(number) for number in rng.sample(range(most), links)]
    pieces = _Pieces(count)
    kept: list[Pair] = []
    cycle_closing: list[Pair] = []
    for a, b in drawn:
        (kept if pieces.join(a, b) else cycle_closing).append((a, b))
    groups = pieces.groups()
    rng.shuffle(groups)
    rng.shuffle(cycle_closing)
    joined = groups[0]
    for group in groups[1:]:
        a, b = rng.choice(joined), rng.choice(group)
        kept.append((min(a, b), max(a, b)))
        joined.extend(group)
        cycle_closing.pop()
    return sorted(kept + cycle_closing)


def regular_links(count: int, degree: int, rng: random.Random) -> list[Pair]:
    """Returns the links of a connected graph where each of the nodes 0 to count - 1 has exactly `degree` neighbours."""
    if degree != int(degree):
        raise ParameterError(f"degree {degree:g} is impossible for a regular overlay: it must be a whole number")
    if count * degree % 2:
        raise ParameterError(
            f"degree {degree} is impossible with brokers = {count} in a regular overlay: their product, twice the "
            "number of links, must be even"
        )
    links_for_degree(count, degree)
    if degree == 2 and count > 2:
        order = list(range(count))
        rng.shuffle(order)
        return sorted((min(a, b), max(a, b)) for a, b in zip(order, order[1:] + order[:1], strict=True))
    everything = [(a, b) for b in range(count) for a in range(b)]
    if 2 * degree > count - 1:
        # Pairing stubs fails more often in dense graphs, so the missing links are drawn instead. At such a degree any
        # two brokers without a link have a common neighbour, so the graph is connected.
        left_out = set(_paired_stubs(count, count - 1 - degree, rng))
        return sorted(pair for pair in everything if pair not in left_out)
    for _ in range(TRIES):
        links = _paired_stubs(count, degree, rng)
        if is_connected(count, links):
            return links
    raise ParameterError(
        f"no connected regular overlay in {TRIES} draws with brokers = {count}, degree = {degree}; try another seed"
    )


def _paired_stubs(count: int, degree: int, rng: random.Random) -> list[Pair]:
    """Pairs `degree` stubs of each node at random. Stubs that would repeat a link are paired again in the next
    round."""
    for _ in range(TRIES):
        links: set[Pair] = set()
        stubs = [node for node in range(count) for _ in range(degree)]
        stuck = False
        while stubs and not stuck:
            rng.shuffle(stubs)
            left: list[int] = []
            for a, b in zip(stubs[::2], stubs[1::2], strict=True):
                pair = (min(a, b), max(a, b))
                if a == b or pair in links:
                    left += [a, b]
                else:
                    links.add(pair)
            stuck = len(left) == len(stubs) and not _can_pair(left, links)
            stubs = left
        if not stuck:
            return sorted(links)
    raise ParameterError(f"no regular graph in {TRIES} draws with brokers = {count}, degree = {degree}")


def _can_pair(stubs: Iterable[int], links: set[Pair]) -> bool:
    nodes = sorted(set(stubs))
    return any((a, b) not in links for number, b in enumerate(nodes) for a in nodes[:number])


def _pair_of_number(number: int) -> Pair:
    """Returns the pair with this number in the order (0, 1), (0, 2), (1, 2), (0, 3), …"""
    b = (1 + math.isqrt(1 + 8 * number)) // 2
    return number - b * (b - 1) // 2, b


class _Pieces:
    """The components so far (union-find with path halving)."""

    def __init__(self, count: int) -> None:
        self._parent = list(range(count))

    def join(self, a: int, b: int) -> bool:
        """Joins the components of two nodes. Returns False if they were already one."""
        a, b = self._find_root(a), self._find_root(b)
        self._parent[b] = a
        return a != b

    def groups(self) -> list[list[int]]:
        """Returns the components, ordered by their smallest node."""
        groups: dict[int, list[int]] = {}
        for node in range(len(self._parent)):
            groups.setdefault(self._find_root(node), []).append(node)
        return list(groups.values())

    def _find_root(self, node: int) -> int:
        while self._parent[node] != node:
            self._parent[node] = self._parent[self._parent[node]]
            node = self._parent[node]
        return node
