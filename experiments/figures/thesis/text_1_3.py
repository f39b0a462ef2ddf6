"""[THESIS 1.3]: the example of the introduction, an overlay of 70 brokers of degree 3 with 35 destinations."""

from __future__ import annotations

from collections.abc import Iterable

from experiments.figures.figure import Claim, Figure, Panel, PaperPoint, Point, Row, Rows, Scale, Shape
from experiments.figures.setups.destination_lists import MEAN, MODEL, SETTING, count_lists_point
from experiments.sweeps.sweep import RunOutcome

BROKERS, DEGREE, SHARE = 70, 3, 0.5
PUBLICATIONS: dict[Scale, int] = {"quick": 500, "paper": 10_000}
SEEDS: dict[Scale, tuple[int, ...]] = {"quick": (1, 2), "paper": tuple(range(1, 11))}
SIZES = "list sizes"


def points(scale: Scale) -> list[Point]:
    return [
        count_lists_point(
            "d-dbr",
            brokers=BROKERS,
            degree=DEGREE,
            interested=SHARE,
            publications=PUBLICATIONS[scale],
            seed=seed,
            x=seed,
        )
        for seed in SEEDS[scale]
    ]


def rows(point: Point, outcome: RunOutcome) -> Iterable[Row]:
    yield Row(MEAN, point.series, point.x, outcome.numbers["mean"])
    if point.x == 1:
        for size, count in enumerate(outcome.lists["histogram"], start=1):
            yield Row(SIZES, point.series, size, 100 * float(count) / outcome.numbers["messages"])


def _mean(results: Rows) -> float | None:
    return results.mean(MEAN, "D-DBR")


FIGURE = Figure(
    name="text-1.3",
    title="The example of 70 brokers: mean destination list",
    reference="[THESIS 1.3]",
    claim="With 70 brokers of degree 3 and 35 destinations, a message lists 2.51 destinations on average.",
    setting=f"Ten random overlays of degree 3, 10,000 publications for 35 random brokers each. {SETTING} {MODEL}",
    points=points,
    rows=rows,
    panels=(
        Panel(
            MEAN,
            "Mean destination list",
            "seed of the overlay",
            "destinations in a message",
            kind="points",
            paper=(PaperPoint("D-DBR", 0, 2.51),),
        ),
        Panel(SIZES, "Sizes of lists, first overlay", "destinations in a message", "% of messages", kind="bars"),
    ),
    claims=(
        Claim(
            "mean destination list",
            2.51,
            _mean,
            why=(
                "Lists are as long as ways are: half the brokers interested gives two to three. Uniform random graphs "
                "of this size have means of 2.7 to 3.1, depending on the draw; the paper's own graph is not stated, "
                "and shorter ways, as in a graph of even degrees, give shorter lists."
            ),
        ),
    ),
    shapes=(
        Shape(
            "a message lists a few of the 35 destinations only",
            lambda results: None if _mean(results) is None else (_mean(results) or 0) < 5,
        ),
    ),
    minutes={"quick": 0.1, "paper": 0.1},
)
