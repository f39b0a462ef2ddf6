"""[THESIS Fig. 10.1.10]: mean destination list by broker on 100 brokers."""

from __future__ import annotations

from collections.abc import Iterable

from experiments.figures.figure import Claim, Figure, Panel, PaperPoint, Point, Row, Scale, Shape
from experiments.figures.setups.hundred_brokers import SETTING, hundred_brokers_point
from experiments.figures.thesis.fig_10_1_9 import PARAMETERS
from experiments.sweeps.sweep import RunOutcome

RATE: dict[Scale, int] = {"quick": 3_000, "paper": 2_000}
BY_BROKER, WHOLE = "by broker", "whole"
SYSTEM = "whole system"


def points(scale: Scale) -> list[Point]:
    duration = {"workload.duration_s": PARAMETERS[scale].duration_s}
    return [
        hundred_brokers_point(protocol, scale, SYSTEM, rate=RATE[scale], settings=dict(duration))
        for protocol in ("d-dbr", "merc")
    ]


def rows(point: Point, outcome: RunOutcome) -> Iterable[Row]:
    yield Row(WHOLE, point.series, SYSTEM, outcome.numbers["destinations_mean"])
    means = sorted(float(mean) for mean in outcome.lists["destinations_by_broker.destinations_mean"])
    for rank, mean in enumerate(means, start=1):
        yield Row(BY_BROKER, point.series, rank, mean)


MERC_WHY = (
    "Lists inside our clusters of ten are longer than the paper's. With half of the brokers interested, a publication "
    "that enters a cluster has about five destinations there, of which the first message lists all. The paper's mean "
    "of 1.18 needs fewer interested brokers in each cluster; how many there were is not stated."
)

FIGURE = Figure(
    name="fig-10.1.10",
    title="Mean destination list by broker on 100 brokers",
    reference="[THESIS 10.1.1, Fig. 10.1.10]",
    claim="Mean lists by broker are 1 to 5 under D-DBR and 1 to 1.6 under MERC; over all, 2.12 and 1.18.",
    setting=f"{SETTING} 2,000 publications a minute for 20 s. A broker's mean is over the messages that it sends.",
    points=points,
    rows=rows,
    tables=("destinations_by_broker",),
    panels=(
        Panel(BY_BROKER, "Mean list of each broker", "brokers, sorted by their mean", "destinations in a message"),
        Panel(
            WHOLE,
            "Over all brokers",
            "",
            "destinations in a message",
            kind="bars",
            paper=(PaperPoint("D-DBR", SYSTEM, 2.12), PaperPoint("MERC", SYSTEM, 1.18)),
        ),
    ),
    claims=(
        Claim(
            "D-DBR: whole system",
            2.12,
            lambda results: results.y(WHOLE, "D-DBR", SYSTEM),
            why="No independent evidence: that about half of the brokers are interested was chosen by this number.",
        ),
        Claim("MERC: whole system", 1.18, lambda results: results.y(WHOLE, "MERC", SYSTEM), why=MERC_WHY),
        Claim(
            "D-DBR: largest mean of a broker",
            5,
            lambda results: max(results.values(BY_BROKER, "D-DBR"), default=None),
            relation="at most",
            why=(
                "A broker with a single link sends what its own publisher publishes with all destinations in one list, "
                "and little else. A uniform random graph has such brokers; the paper's range says that its graph had "
                "none."
            ),
        ),
        Claim(
            "MERC: largest mean of a broker",
            1.6,
            lambda results: max(results.values(BY_BROKER, "MERC"), default=None),
            relation="at most",
            why=MERC_WHY,
        ),
    ),
    shapes=(
        Shape(
            "MERC's lists are shorter than D-DBR's",
            lambda results: (results.y(WHOLE, "MERC", SYSTEM) or 9) < (results.y(WHOLE, "D-DBR", SYSTEM) or 0),
        ),
    ),
    minutes={"quick": 0.2, "paper": 3},
    has_generated_quotes=True,
)
