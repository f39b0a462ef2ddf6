"""20 brokers of degree 3 with 20 publishers and 30 subscribers. Self-reorganisation is on [THESIS 10.1.1]."""

from __future__ import annotations

from collections.abc import Iterable

from experiments.figures.figure import PROTOCOLS, Point, Row, RowMaker, Scale
from experiments.figures.points import simulation_spec
from experiments.sweeps.sweep import RunOutcome, Value

COMPARED = ("fbr", "d-dbr")
ZIPF, UNIFORM = 0.5, 0.0
LATENCY = "latency"
STEP_S = 5.0
SETTINGS: dict[Scale, dict[str, Value]] = {
    # A quarter of the subscriptions and four times the rate keep brokers as busy in a shorter run.
    "quick": {
        "clients.subscriptions_each": 25,
        "workload.symbols": 25,
        "workload.rate": 1_800,
        "workload.duration_s": 20,
    },
    "paper": {
        "clients.subscriptions_each": 100,
        "workload.symbols": 100,
        "workload.rate": 450,
        "workload.duration_s": 300,
    },
}
SETTING = (
    "20 brokers of degree 3, 20 publishers and 30 subscribers at random brokers, 100 subscriptions each, five minutes; "
    "D-DBR reorganises every 5 s with MaxDegree 6. Not stated and ours: the publishing rate, 450 a minute in all, "
    "chosen once so that FBR's busiest broker is about as busy as in Fig. 10.1.6; 100 symbols; 1 ms for each link."
)


def points(scale: Scale, zipf: float, series: str = "{protocol}") -> list[Point]:
    settings = {**SETTINGS[scale], "workload.zipf": zipf, "run.drain_s": 600}
    return [
        Point(series.format(protocol=PROTOCOLS[protocol]), 0, simulation_spec("gtitm-20", protocol, settings))
        for protocol in COMPARED
    ]


def over_time(point: Point, outcome: RunOutcome) -> Iterable[Row]:
    """Rows of latency over the time of publishing, counted from the start of publishing."""
    moments = [float(at) for at in outcome.lists["latency_over_time.at_s"]]
    latencies = outcome.lists["latency_over_time.latency_ms_mean"]
    for at, latency in zip(moments, latencies, strict=True):
        yield Row(LATENCY, point.series, round(at - moments[0], 3), float(latency))


def by_broker(measure: str, table: str, column: str, factor: float = 1.0) -> RowMaker:
    """A row maker: one row for each broker, with its value in the column of the table, times `factor`."""

    def rows(point: Point, outcome: RunOutcome) -> Iterable[Row]:
        for number, value in enumerate(outcome.lists[f"{table}.{column}"], start=1):
            yield Row(measure, point.series, number, factor * float(value))

    return rows
