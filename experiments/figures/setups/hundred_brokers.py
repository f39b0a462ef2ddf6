"""100 brokers of degree 6, each with a publisher and a subscriber. MERC has a transit-stub overlay [THESIS 10.1.1]."""

from __future__ import annotations

from experiments.figures.figure import PROTOCOLS, Point, Scale, X
from experiments.figures.points import simulation_spec
from experiments.sweeps.sweep import Value

BROKERS: dict[Scale, int] = {"quick": 30, "paper": 100}
SUBSCRIPTIONS_EACH: dict[Scale, int] = {"quick": 10, "paper": 30}
SHARE = 0.6
_SMALLER: dict[str, Value] = {
    "overlay.brokers": 30,
    "overlay.degree": 4,
    "overlay.merc.transit_nodes": 5,
    "overlay.merc.stub_nodes": 5,
    "overlay.merc.degree": 4,
    "clients.subscriptions_each": 10,
    "workload.symbols": 9,
}
SETTINGS: dict[Scale, dict[str, Value]] = {
    "quick": _SMALLER,
    "paper": {"clients.subscriptions_each": 30, "workload.symbols": 25},
}
SETTING = (
    "100 brokers of degree 6 (MERC: transit-stub, 10 transit nodes as edge brokers with 8 cores, 90 stub nodes, 11 "
    "clusters), a publisher and a subscriber with 30 subscriptions at each, by Zipf 0.5. Not stated and ours: a "
    "publication interests about half of the brokers; 1 ms for each link, in transit-stub overlays by their length; "
    "60% of the brokers have matching advertisements, as in Fig. 10.1.12."
)


def hundred_brokers_point(
    protocol: str, scale: Scale, x: X, *, rate: float, share: float = SHARE, settings: dict[str, Value] | None = None
) -> Point:
    """A simulation of 100 brokers with this rate of publications."""
    overrides: dict[str, Value] = {
        **SETTINGS[scale],
        "workload.rate": rate,
        "clients.advertised_share": share,
        "run.drain_s": 1_800,
        **(settings or {}),
    }
    return Point(PROTOCOLS[protocol], x, simulation_spec("gtitm-100", protocol, overrides))
