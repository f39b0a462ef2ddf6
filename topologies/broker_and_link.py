"""What an overlay is made of: one broker, one link. The rules for them together are in `validation`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

Metric = Literal["hops", "latency", "policy"]
"""What the shortest path is the shortest of."""
METRICS: tuple[Metric, ...] = get_args(Metric)


@dataclass(frozen=True, slots=True)
class Broker:
    """One broker: its id, its clusters (several make it an edge broker), and where it stands.

    `label` keeps the name that a generator or a GT-ITM file gave it. `edge` is a statement to be checked, not a
    switch: True demands several clusters, False at most one, None takes what the clusters say.
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
    """A link between two brokers, the smaller id first. It carries frames both ways."""

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
        return self.a, self.b

    def cost(self, metric: Metric) -> int:
        """Of a path over it: at least 1; in microseconds if latency counts."""
        if metric == "latency":
            return max(1, round(1_000 * self.latency_ms))
        if metric == "policy":
            return self.policy_weight or 1
        return 1
