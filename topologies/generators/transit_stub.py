"""Transit-stub overlays like GT-ITM's: transit domains in the middle, stub domains around them.

T transit domains of Nt nodes and K stub domains of Ns nodes at each transit node make T · Nt · (1 + K · Ns) brokers.
One link connects each stub domain to its transit node. Extra links may join stubs to further transit nodes, and stubs
to stubs. The overlay of [THESIS 10.1] is one domain of 10 transit nodes, each with one stub domain of 9, degree 6.

Links carry policy weights. A shortest path by weight between two brokers of a domain never leaves the domain. It passes
through no stub domain but those of its ends: stubs carry no transit traffic. See `_policy_weights`. Labels are GT-ITM's
names: `T:domain.node` and `S:domain.node/stub.node`.
"""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

from topologies.build import MS_PER_UNIT, Pair, Position, build_overlay, check_count
from topologies.errors import ParameterError
from topologies.generators.domains import draw_domain, share_links
from topologies.generators.edge_models import EdgeModel, draw_connected, grid_points
from topologies.generators.random_links import links_for_degree
from topologies.graph import adjacency, pairs_by_hops
from topologies.overlay import Overlay
from topologies.random_streams import stream

TOP_ALPHA = 0.6
TRANSIT_ALPHA = 0.6
STUB_ALPHA = 0.4


@dataclass(frozen=True, slots=True)
class TransitStubShape:
    """The numbers of domains, of their nodes, and of extra links between domains."""

    transit_domains: int = 1
    transit_nodes: int = 10
    stubs: int = 1
    stub_nodes: int = 9
    extra_transit_stub: int = 0
    extra_stub_stub: int = 0

    def __post_init__(self) -> None:
        for field in fields(self):
            smallest = 0 if field.name.startswith("extra") or field.name == "stubs" else 1
            check_count(field.name, getattr(self, field.name), smallest)

    @property
    def transits(self) -> int:
        return self.transit_domains * self.transit_nodes

    @property
    def brokers(self) -> int:
        return self.transits * (1 + self.stubs * self.stub_nodes)


@dataclass(frozen=True, slots=True)
class _Domain:
    """Consecutive nodes first, first + 1, … drawn as one graph. `home` is the transit node of a stub domain."""

    first: int
    positions: list[Position]
    links: list[Pair]
    home: int | None = None

    @property
    def nodes(self) -> range:
        return range(self.first, self.first + len(self.positions))


@dataclass(frozen=True, slots=True)
class _LinksByKind:
    """The links between domains by kind. Policy weights depend on the kind."""

    transit_transit: list[Pair]
    transit_stub: list[Pair]
    stub_stub: list[Pair]

    @property
    def outside(self) -> list[Pair]:
        return self.transit_transit + self.transit_stub + self.stub_stub


def transit_stub(
    shape: TransitStubShape,
    *,
    seed: int,
    transit_edges: EdgeModel | None = None,
    stub_edges: EdgeModel | None = None,
    degree: float | None = None,
    ms_per_unit: float = MS_PER_UNIT,
) -> Overlay:
    """Returns a transit-stub overlay with domains drawn by edge models or, with `degree`, at random.

    With `degree` the whole overlay has exactly this mean degree: the links that are not between domains are distributed
    among the domains.
    """
    if degree is not None and (transit_edges is not None or stub_edges is not None):
        raise ParameterError("give edge models for the domains or degree, not both")
    between = _draw_between(shape, stream(seed, "transit-stub between domains"))
    edges = _edges_of_domains(shape, len(between.outside), transit_edges, stub_edges, degree)
    domains = _draw_domains(shape, edges, stream(seed, "transit-stub domains"))
    inside = [link for domain in domains for link in domain.links]
    return build_overlay(
        f"transit-stub-{shape.brokers}",
        shape.brokers,
        between.outside + inside,
        positions=[position for domain in domains for position in domain.positions],
        labels=_labels(shape),
        policy_weights=_policy_weights(shape, domains, between),
        ms_per_unit=ms_per_unit,
    )


def _draw_between(shape: TransitStubShape, rng: random.Random) -> _LinksByKind:
    top = draw_connected(EdgeModel("pure-random", TOP_ALPHA), shape.transit_domains, rng)
    size = shape.transit_nodes
    transit_transit = [(a * size + rng.randrange(size), b * size + rng.randrange(size)) for a, b in top.links]
    transit_stub = [(transit, first + rng.randrange(shape.stub_nodes)) for transit, first in _stub_domains(shape)]
    home_of = {
        first + node: (transit, first) for transit, first in _stub_domains(shape) for node in range(shape.stub_nodes)
    }
    more_homes = (
        (transit, node) for node in home_of for transit in range(shape.transits) if transit != home_of[node][0]
    )
    transit_stub += _extra("extra_transit_stub", shape.extra_transit_stub, more_homes, rng)
    across = ((a, b) for b in home_of for a in home_of if a < b and home_of[a] != home_of[b])
    return _LinksByKind(transit_transit, transit_stub, _extra("extra_stub_stub", shape.extra_stub_stub, across, rng))


def _extra(name: str, count: int, candidates: Iterable[Pair], rng: random.Random) -> list[Pair]:
    if not count:
        return []
    pairs = list(candidates)
    if count > len(pairs):
        raise ParameterError(f"{name} = {count} is too many: the domains leave room for {len(pairs)} such links")
    return sorted(rng.sample(pairs, count))


def _stub_domains(shape: TransitStubShape) -> list[Pair]:
    """Returns, for each stub domain, its transit node and its first node. Transit nodes have the lowest numbers."""
    places = [(transit, stub) for transit in range(shape.transits) for stub in range(shape.stubs)]
    return [(transit, shape.transits + number * shape.stub_nodes) for number, (transit, _) in enumerate(places)]


def _labels(shape: TransitStubShape) -> list[str]:
    transits = [f"{domain}.{node}" for domain in range(shape.transit_domains) for node in range(shape.transit_nodes)]
    stubs = [
        f"S:{transit}/{stub}.{node}"
        for transit in transits
        for stub in range(shape.stubs)
        for node in range(shape.stub_nodes)
    ]
    return [f"T:{transit}" for transit in transits] + stubs


def _edges_of_domains(
    shape: TransitStubShape,
    outside: int,
    transit_edges: EdgeModel | None,
    stub_edges: EdgeModel | None,
    degree: float | None,
) -> Sequence[EdgeModel | int]:
    stub_domains = shape.transits * shape.stubs
    if degree is None:
        transit = transit_edges or EdgeModel("pure-random", TRANSIT_ALPHA)
        stub = stub_edges or EdgeModel("pure-random", STUB_ALPHA)
        return [transit] * shape.transit_domains + [stub] * stub_domains
    sizes = [shape.transit_nodes] * shape.transit_domains + [shape.stub_nodes] * stub_domains
    total = links_for_degree(shape.brokers, degree)
    return share_links(total - outside, sizes, f"degree {degree:g} with {outside} links between domains")


def _draw_domains(shape: TransitStubShape, edges: Sequence[EdgeModel | int], rng: random.Random) -> list[_Domain]:
    """Draws transit domains around points of the whole square, and stub domains near their transit nodes.

    The squares' sides are GT-ITM's: √(80 · brokers) for the whole, half of it for a transit domain, √(16 · nodes) for a
    stub domain.
    """
    whole = math.isqrt(80 * shape.brokers)
    half = max(whole // 2, math.isqrt(shape.transit_nodes - 1) + 1)
    centres = grid_points(shape.transit_domains, whole, rng)
    domains: list[_Domain] = []
    for number, centre in enumerate(centres):
        domains.append(
            _draw_placed(number * shape.transit_nodes, shape.transit_nodes, half, centre, edges[number], rng)
        )
    transit_positions = [position for domain in domains for position in domain.positions]
    side = math.isqrt(16 * shape.stub_nodes)
    for number, (transit, first) in enumerate(_stub_domains(shape), start=shape.transit_domains):
        x, y = transit_positions[transit]
        near = (x + rng.randint(-side, side), y + rng.randint(-side, side))
        domains.append(_draw_placed(first, shape.stub_nodes, side, near, edges[number], rng, home=transit))
    return domains


def _draw_placed(
    first: int,
    count: int,
    side: int,
    centre: Position,
    edges: EdgeModel | int,
    rng: random.Random,
    home: int | None = None,
) -> _Domain:
    graph = draw_domain(count, side, edges, rng)
    positions = [(centre[0] - side // 2 + x, centre[1] - side // 2 + y) for x, y in graph.positions]
    return _Domain(first, positions, [(first + a, first + b) for a, b in graph.links], home)


def _policy_weights(shape: TransitStubShape, domains: Sequence[_Domain], between: _LinksByKind) -> dict[Pair, int]:
    """Returns weights that keep paths in the domains that the policy allows, each as small as the argument below
    permits.

    Inside a domain a link weighs 1. Let Dt and Ds be the widest diameters of transit and stub domains.
    - transit-transit > Dt / 2: leaving a transit domain and coming back takes two of them, more than any path inside.
      M is then the greatest distance between transit nodes over transit links alone.
    - transit-stub > max(M, Ds) / 2: two of them cost more than any path between transit nodes, or inside a stub.
    - stub-stub: the path over transit nodes between two stubs costs at most W = M + 2 · Ds in addition to the two
      transit-stub links at its ends. If one stub-stub link > W, a path that enters a foreign stub from a transit node
      and leaves it to a stub costs more. If two > W + 2 · transit-stub, a path that enters it from a stub and leaves
      it to another costs more.
    """
    transit_diameter = _widest(domain for domain in domains if domain.home is None)
    stub_diameter = _widest(domain for domain in domains if domain.home is not None)
    weights = {link: 1 for domain in domains for link in domain.links}
    transit_transit = transit_diameter // 2 + 1
    weights |= dict.fromkeys(between.transit_transit, transit_transit)
    across = _weighted_diameter(shape.transits, weights)
    transit_stub = max(transit_transit, max(across, stub_diameter) // 2) + 1
    weights |= dict.fromkeys(between.transit_stub, transit_stub)
    transit_path = across + 2 * stub_diameter
    weights |= dict.fromkeys(between.stub_stub, max(transit_path, transit_path // 2 + transit_stub) + 1)
    return weights


def _widest(domains: Iterable[_Domain]) -> int:
    return max((len(pairs_by_hops(adjacency(domain.nodes, domain.links))) for domain in domains), default=0)


def _weighted_diameter(count: int, weights: dict[Pair, int]) -> int:
    """Returns the greatest distance between the nodes 0 to count - 1 over the links among them."""
    neighbours: list[list[Pair]] = [[] for _ in range(count)]
    for (a, b), weight in weights.items():
        if a < count and b < count:
            neighbours[a].append((b, weight))
            neighbours[b].append((a, weight))
    return max(max(_distances(start, neighbours)) for start in range(count))


def _distances(start: int, neighbours: Sequence[Sequence[Pair]]) -> list[int]:
    distances: dict[int, int] = {}
    queue = [(0, start)]
    while queue:
        so_far, node = heapq.heappop(queue)
        if node in distances:
            continue
        distances[node] = so_far
        for other, weight in neighbours[node]:
            if other not in distances:
                heapq.heappush(queue, (so_far + weight, other))
    return list(distances.values())
