"""[THESIS Fig. 10.1.12]: subscriptions stored at each of 100 brokers."""

from __future__ import annotations

from collections.abc import Iterable

from experiments.figures.figure import PROTOCOLS, Claim, Figure, Panel, Point, Row, Scale, Shape
from experiments.figures.setups.hundred_brokers import SETTING, SHARE, hundred_brokers_point
from experiments.figures.thesis.fig_10_1_11 import PUBLICATIONS, RATE
from experiments.sweeps.sweep import RunOutcome

STORED = "stored"


def points(scale: Scale) -> list[Point]:
    return [
        hundred_brokers_point(
            protocol, scale, 0, rate=RATE, share=SHARE, settings={"workload.publications": PUBLICATIONS}
        )
        for protocol in PROTOCOLS
    ]


def rows(point: Point, outcome: RunOutcome) -> Iterable[Row]:
    stored = sorted(float(count) for count in outcome.lists["broker_state.stored_subscriptions"])
    for rank, count in enumerate(stored, start=1):
        yield Row(STORED, point.series, rank, count)


WHY = {
    "FBR": "3,000 subscriptions, 60 advertisements, 2.8 hops between: 5,040 copies at a broker on average.",
    "D-DBR": "3,000 subscriptions at each of the 60 brokers with matching advertisements, and 30 own ones at all.",
    "MERC": "As D-DBR; edge brokers hold a table for each of their clusters.",
}


def _claim(series: str, paper: float) -> Claim:
    return Claim(f"{series}: mean of a broker", paper, lambda results: results.mean(STORED, series), why=WHY[series])


FIGURE = Figure(
    name="fig-10.1.12",
    title="Subscriptions stored by broker on 100 brokers",
    reference="[THESIS 10.1.1, Fig. 10.1.12]",
    claim="A broker stores 5,005 subscriptions under FBR, 1,800 under D-DBR and 1,945 under MERC.",
    setting=SETTING,
    points=points,
    rows=rows,
    tables=("broker_state",),
    panels=(Panel(STORED, "Subscriptions stored", "brokers, sorted by what they store", "subscriptions, with copies"),),
    claims=(_claim("FBR", 5_005), _claim("D-DBR", 1_800), _claim("MERC", 1_945)),
    shapes=(
        Shape(
            "FBR stores most, MERC a little more than D-DBR",
            lambda results: (
                (results.mean(STORED, "FBR") or 0)
                > (results.mean(STORED, "MERC") or 0)
                > (results.mean(STORED, "D-DBR") or 0)
            ),
        ),
    ),
    minutes={"quick": 0.2, "paper": 6},
    has_generated_quotes=True,
)
