"""Broker and link: the parts of an overlay. `validation` has the rules for their combination."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

Metric = Literal["hops", "latency", "policy"]
"""The cost that a shortest path minimises."""
METRICS: tuple[Metric, ...] = get_args(Metric)


@dataclass(frozen=True, slots=True)
class Broker:
    """One broker: its id, its clusters and its position. A broker in several clusters is an edge broker.

    `label` is the name from a generator or a GT-ITM file. `edge` is checked against the clusters and changes nothing:
    True requires several clusters, False at most one, None allows any number.
    """

    id: str
    clusters: tuple[str, ...] = ()
    position: tuple[float, float] | None = None
    label: str | None = None
    edge: bool | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "clusters", tuple(sorted(self.clusters)))


@dataclass(frozen=True, slots=True)
class Link:
    """A link between two brokers, the smaller id first. It carries frames in both directions."""

    a: str
    b: str
    latency_ms: float = 1.0
    bandwidth_mbit: float | None = None
    policy_weight: int | None = None

    def __post_init__(self) -> None:
        if self.b < self.a:
            a, b = self.a, self.b
            object.__setattr__(self, "a", b)
            object.__setattr__(self, "b", a)

    @property
    def ends(self) -> tuple[str, str]:
        """The ids of the two brokers."""
        return self.a, self.b

    def cost(self, metric: Metric) -> int:
        """Returns the cost of the link in a path: at least 1. For the metric latency it is in microseconds."""
        if metric == "latency":
            return max(1, round(1_000 * self.latency_ms))
        if metric == "policy":
            return self.policy_weight or 1
        return 1
