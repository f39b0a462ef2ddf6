"""N-level hierarchies like GT-ITM's: each node of a graph is replaced by a graph, level after level.

A link between two replaced nodes becomes a link between a random node of the one graph and a random node of the other.
`joins` sets the number of such links for each link of the newest level (GT-ITM: one). With two or more, the graphs can
be clusters with more than one edge broker between them. A broker's label is its path from the top, such as `3.17`: node
17 of the graph that replaced node 3.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from topologies.build import MS_PER_UNIT, Pair, Position, build_overlay, check_count
from topologies.errors import ParameterError
from topologies.generators.domains import draw_domain, share_links
from topologies.generators.edge_models import EdgeModel
from topologies.generators.random_links import links_for_degree
from topologies.overlay import Overlay
from topologies.random_streams import stream


@dataclass(frozen=True, slots=True)
class _Level:
    """All nodes of the hierarchy down to some level."""

    paths: list[str]
    positions: list[Position]
    links: list[Pair]
    fresh: frozenset[Pair]
    """The links that were drawn on this level, without those from higher levels."""


def hierarchy(
    levels: Sequence[int],
    *,
    seed: int,
    models: Sequence[EdgeModel] = (),
    degree: float | None = None,
    upper_degree: float = 3.0,
    joins: int = 1,
    ms_per_unit: float = MS_PER_UNIT,
) -> Overlay:
    """Returns a hierarchy with levels[0] nodes on top, each replaced by levels[1] nodes, and so on.

    The graphs of each level are drawn by its edge model, or, with `degree`, at random with exact numbers of links: the
    whole overlay has this mean degree, and graphs above the lowest level have the mean degree `upper_degree` if they
    have enough nodes.
    """
    _check(levels, models, degree, joins)
    rng = stream(seed, "hierarchy graph")
    current = _Level([""], [(0.0, 0.0)], [], frozenset())
    for depth, size in enumerate(levels):
        resolved = _resolve_links(current, size, joins, rng)
        edges: list[EdgeModel | int]
        if degree is None:
            edges = [models[depth]] * len(current.paths)
        elif depth + 1 < len(levels):
            edges = [_upper_links(size, upper_degree)] * len(current.paths)
        else:
            inside = links_for_degree(math.prod(levels), degree) - len(resolved)
            edges = [*share_links(inside, [size] * len(current.paths), f"degree {degree:g}")]
        current = _replace_nodes(current, size, resolved, edges, rng)
    labels = [path.lstrip(".") for path in current.paths]
    name = f"hierarchy-{'x'.join(map(str, levels))}"
    return build_overlay(
        name, len(labels), current.links, positions=current.positions, labels=labels, ms_per_unit=ms_per_unit
    )


def _check(levels: Sequence[int], models: Sequence[EdgeModel], degree: float | None, joins: int) -> None:
    if not levels:
        raise ParameterError("a hierarchy needs at least one level, for example levels = 10x10")
    for size in levels:
        check_count("levels' sizes", size)
    check_count("joins", joins)
    smallest = min(levels[1:], default=joins)
    if joins > smallest:
        raise ParameterError(f"joins = {joins} needs as many brokers in each graph, and a level has only {smallest}")
    if degree is None and len(models) != len(levels):
        raise ParameterError(f"{len(levels)} levels need as many edge models, not {len(models)}; or give degree")
    if degree is None and any(model.alpha is None for model in models):
        raise ParameterError("a hierarchy needs alpha or degree, for example degree = 4")
    if degree is not None and models:
        raise ParameterError("give edge models (model, alpha, beta, gamma) or degree, not both")


def _upper_links(size: int, upper_degree: float) -> int:
    """Returns the number of links of a graph above the lowest level: for `upper_degree`, within the possible range."""
    wanted = round(size * upper_degree / 2)
    return min(max(wanted, size - 1), size * (size - 1) // 2)


def _resolve_links(level: _Level, size: int, joins: int, rng: random.Random) -> list[Pair]:
    """Returns the level's links as links between the nodes that replace its nodes."""
    resolved: list[Pair] = []
    for a, b in level.links:
        count = joins if (a, b) in level.fresh else 1
        ends = zip(rng.sample(range(size), count), rng.sample(range(size), count), strict=True)
        resolved += [(a * size + end_a, b * size + end_b) for end_a, end_b in ends]
    return resolved


def _replace_nodes(
    level: _Level, size: int, resolved: list[Pair], edges: Sequence[EdgeModel | int], rng: random.Random
) -> _Level:
    scale = math.isqrt(8 * size - 1) + 1
    paths: list[str] = []
    positions: list[Position] = []
    drawn: list[Pair] = []
    for number, (x, y) in enumerate(level.positions):
        graph = draw_domain(size, scale, edges[number], rng)
        paths += [f"{level.paths[number]}.{node}" for node in range(size)]
        positions += [(x * scale + dx, y * scale + dy) for dx, dy in graph.positions]
        drawn += [(number * size + a, number * size + b) for a, b in graph.links]
    return _Level(paths, positions, resolved + drawn, frozenset(drawn))
