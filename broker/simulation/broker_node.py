"""A simulated machine: its broker, cores, input queue, timers, store, links and recorder."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from broker.core.broker import Broker
from broker.core.inputs import Input
from broker.simulation.links import SimulatedLink
from broker.trace.recorder import TraceRecorder


@dataclass(slots=True)
class BrokerNode:
    name: str
    clusters: tuple[str, ...]
    cores: int
    queue_limit: int
    recorder: TraceRecorder
    broker: Broker | None = None
    incarnation: int = 0
    busy_cores: int = 0
    busy_ns: int = 0
    queue: deque[tuple[int, Input]] = field(default_factory=deque)
    timers: dict[str, int] = field(default_factory=dict)
    store: dict[tuple[str, ...], object] = field(default_factory=dict)
    links: dict[str, SimulatedLink] = field(default_factory=dict)
    """Links by neighbour, including those that are down."""
