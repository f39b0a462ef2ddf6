"""[THESIS Fig. 10.1.15]: distribution of destination lists, 700 brokers of degree 6, 10% interested."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate, pairwise

from experiments.figures.figure import Claim, Figure, Panel, PaperPoint, Point, Row, Scale, Shape
from experiments.figures.setups.destination_lists import MODEL, SETTING, ListParameters, count_lists_point
from experiments.sweeps.sweep import RunOutcome

DEGREE = 6
PARAMETERS: dict[Scale, ListParameters] = {
    "quick": ListParameters((150,), (0.1,), 500),
    "paper": ListParameters((700,), (0.1,), 10_000),
}
SHARE, CUMULATIVE = "share", "cumulative"
SHOWN = 20
"""The largest size in the rows. Longer lists are the difference of the last cumulative row from 100%."""


def points(scale: Scale) -> list[Point]:
    chosen = PARAMETERS[scale]
    return [
        count_lists_point("d-dbr", brokers=brokers, degree=DEGREE, interested=share, publications=chosen.publications)
        for brokers in chosen.brokers
        for share in chosen.interested
    ]


def rows(point: Point, outcome: RunOutcome) -> Iterable[Row]:
    histogram = [float(count) for count in outcome.lists["histogram"]]
    total = outcome.numbers["messages"]
    for size, (count, below) in enumerate(zip(histogram, accumulate(histogram), strict=True), start=1):
        if size <= SHOWN:
            yield Row(SHARE, point.series, size, 100 * count / total)
            yield Row(CUMULATIVE, point.series, size, 100 * below / total)


NEAR_MISS = (
    "A uniform random graph has brokers of degree 1 and 2, behind which few others lie, and a few with very many: its "
    "sources send some longer lists. Both numbers miss the paper's by a percent; the paper's graph is not stated."
)

FIGURE = Figure(
    name="fig-10.1.15",
    title="Distribution of destination lists of D-DBR, 700 brokers",
    reference="[THESIS 10.1.2, Fig. 10.1.15]",
    claim="More than 95% of lists are shorter than 5, more than 99% shorter than 12.",
    setting=f"700 brokers of degree 6, 10% interested, 10,000 publications. {SETTING} {MODEL}",
    points=points,
    rows=rows,
    panels=(
        Panel(SHARE, "Sizes of destination lists", "destinations in a message", "% of messages", kind="bars"),
        Panel(
            CUMULATIVE,
            "At most so many destinations",
            "destinations in a message",
            "% of messages",
            paper=(PaperPoint("D-DBR", 4, 95), PaperPoint("D-DBR", 11, 99)),
        ),
    ),
    claims=(
        Claim(
            "lists shorter than 5",
            95,
            lambda results: results.y(CUMULATIVE, "D-DBR", 4),
            unit="%",
            relation="more than",
            why=NEAR_MISS,
        ),
        Claim(
            "lists shorter than 12",
            99,
            lambda results: results.y(CUMULATIVE, "D-DBR", 11),
            unit="%",
            relation="more than",
            why=NEAR_MISS,
        ),
    ),
    shapes=(
        Shape(
            "most lists have one destination, and longer ones are ever rarer",
            lambda results: _falls(results.values(SHARE, "D-DBR")[:8]),
        ),
    ),
    minutes={"quick": 0.1, "paper": 0.1},
)


def _falls(values: list[float]) -> bool:
    return len(values) > 1 and values[0] > 50 and all(a > b for a, b in pairwise(values))
