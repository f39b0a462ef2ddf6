"""Flat overlays: fixed shapes, random graphs with an exact degree, and GT-ITM's flat models.

Fixed shapes and exact random graphs have no positions, and one latency for all links. GT-ITM's models place brokers
on a grid (see `edge_models`), and a link's latency is proportional to its length.
"""

from __future__ import annotations

from topologies.build import LATENCY_MS, MS_PER_UNIT, build_overlay, check_count
from topologies.generators.edge_models import SCALE, EdgeModel, draw_connected
from topologies.generators.random_links import connected_links, links_for_degree, regular_links
from topologies.overlay import Overlay
from topologies.random_streams import stream


def line(brokers: int, *, latency_ms: float = LATENCY_MS) -> Overlay:
    """Returns brokers in a row, as in [THESIS 10.1]."""
    check_count("brokers", brokers)
    links = [(node, node + 1) for node in range(brokers - 1)]
    return build_overlay(f"line-{brokers}", brokers, links, latency_ms=latency_ms)


def ring(brokers: int, *, latency_ms: float = LATENCY_MS) -> Overlay:
    """Returns brokers in a circle: the overlay with the fewest links that has no single point of failure."""
    check_count("brokers of a ring", brokers, smallest=3)
    links = [(node, node + 1) for node in range(brokers - 1)] + [(0, brokers - 1)]
    return build_overlay(f"ring-{brokers}", brokers, links, latency_ms=latency_ms)


def star(brokers: int, *, latency_ms: float = LATENCY_MS) -> Overlay:
    """Returns a star: b001 is in the middle, and all others link to it."""
    check_count("brokers", brokers)
    links = [(0, node) for node in range(1, brokers)]
    return build_overlay(f"star-{brokers}", brokers, links, latency_ms=latency_ms)


def tree(brokers: int, *, branching: int = 2, latency_ms: float = LATENCY_MS) -> Overlay:
    """Returns a tree filled level by level, each broker with at most `branching` children; b001 is the root."""
    check_count("brokers", brokers)
    check_count("branching", branching)
    links = [((node - 1) // branching, node) for node in range(1, brokers)]
    return build_overlay(f"tree-{brokers}", brokers, links, latency_ms=latency_ms)


def random_regular(brokers: int, *, degree: int, seed: int, latency_ms: float = LATENCY_MS) -> Overlay:
    """Returns a random connected overlay where every broker has exactly `degree` neighbours."""
    check_count("brokers", brokers)
    links = regular_links(brokers, degree, stream(seed, "random-regular links"))
    return build_overlay(f"random-regular-{brokers}", brokers, links, latency_ms=latency_ms)


def random_degree(brokers: int, *, degree: float, seed: int, latency_ms: float = LATENCY_MS) -> Overlay:
    """Returns a random connected overlay with exactly round(brokers · degree / 2) links."""
    links = connected_links(brokers, links_for_degree(brokers, degree), stream(seed, "random links"))
    return build_overlay(f"random-{brokers}", brokers, links, latency_ms=latency_ms)


def gtitm_flat(
    brokers: int,
    model: EdgeModel,
    *,
    seed: int,
    degree: float | None = None,
    scale: int = SCALE,
    ms_per_unit: float = MS_PER_UNIT,
) -> Overlay:
    """Returns a connected overlay of one of GT-ITM's flat models. A `degree` sets the model's alpha."""
    drawing = draw_connected(model, brokers, stream(seed, f"{model.name} graph"), scale=scale, degree=degree)
    return build_overlay(
        f"{model.name}-{brokers}", brokers, drawing.links, positions=drawing.positions, ms_per_unit=ms_per_unit
    )
