"""A broker's place in the simulation: what it runs on, and what waits for it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from broker.core.broker import Broker
from broker.core.inputs import Input
from broker.simulation.links import SimulatedLink


@dataclass(slots=True)
class BrokerNode:
    name: str
    clusters: tuple[str, ...]
    cores: int
    queue_limit: int
    broker: Broker | None = None
    incarnation: int = 0
    working: int = 0
    busy_ns: int = 0
    queue: deque[tuple[int, Input]] = field(default_factory=deque)
    timers: dict[str, int] = field(default_factory=dict)
    store: dict[tuple[str, ...], object] = field(default_factory=dict)
    links: dict[str, SimulatedLink] = field(default_factory=dict)
    """By neighbour, also those that are down."""
