"""Builds an overlay from a generator's numbered nodes: padded ids, latencies from distances.

Random values are rounded before they are stored. So the last bit of a square root or an exponential, which may differ
between machines, never changes an overlay.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from topologies.broker_and_link import Broker, Link
from topologies.errors import ParameterError
from topologies.overlay import Overlay

LATENCY_MS = 1.0
MS_PER_UNIT = 0.1
LATENCY_MS_MIN = 0.1

Position = tuple[float, float]
Pair = tuple[int, int]


def padded_ids(count: int) -> list[str]:
    """Returns b001, b002, …, padded so that the order of the ids is the order of their numbers."""
    width = max(3, len(str(count)))
    return [f"b{number:0{width}d}" for number in range(1, count + 1)]


def distance(one: Position, other: Position) -> float:
    """Returns the Euclidean distance. For grid points it is the same on every machine."""
    dx, dy = one[0] - other[0], one[1] - other[1]
    return math.sqrt(dx * dx + dy * dy)


def latency_of_length(length: float, ms_per_unit: float) -> float:
    """Returns the latency of a link of this length: at least 0.1 ms, rounded to microseconds."""
    return max(LATENCY_MS_MIN, round(length * ms_per_unit, 3))


def build_overlay(
    name: str,
    count: int,
    links: Sequence[Pair],
    *,
    positions: Sequence[Position] | None = None,
    labels: Sequence[str] | None = None,
    policy_weights: Mapping[Pair, int] | None = None,
    latency_ms: float = LATENCY_MS,
    ms_per_unit: float = MS_PER_UNIT,
) -> Overlay:
    """Returns the overlay of the nodes 0 to count - 1. With positions, latencies are proportional to distances."""
    check_latencies(latency_ms, ms_per_unit)
    ids = padded_ids(count)
    brokers = tuple(
        Broker(ids[node], position=positions[node] if positions else None, label=labels[node] if labels else None)
        for node in range(count)
    )
    built = []
    for a, b in links:
        latency = latency_of_length(distance(positions[a], positions[b]), ms_per_unit) if positions else latency_ms
        weight = policy_weights[a, b] if policy_weights else None
        built.append(Link(ids[a], ids[b], latency_ms=latency, policy_weight=weight))
    return Overlay(name, brokers, tuple(built))


def check_latencies(latency_ms: float, ms_per_unit: float) -> None:
    """Raises ParameterError for latencies that no link can have."""
    if not (math.isfinite(latency_ms) and latency_ms >= 0):
        raise ParameterError(f"latency_ms must be zero or more, not {latency_ms}")
    if not (math.isfinite(ms_per_unit) and ms_per_unit > 0):
        raise ParameterError(f"ms_per_unit must be above zero, not {ms_per_unit}")


def check_count(name: str, value: int, smallest: int = 1) -> None:
    """Raises ParameterError for a count below `smallest`."""
    if value < smallest:
        raise ParameterError(f"{name} must be at least {smallest}, not {value}")
