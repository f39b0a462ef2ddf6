"""[THESIS Fig. 10.1.13]: mean destination list of D-DBR, degree 6, by brokers and share of interested brokers."""

from __future__ import annotations

from experiments.figures.figure import Claim, Figure, Panel, PaperPoint, Point, Rows, Scale, Shape, is_rising
from experiments.figures.setups.destination_lists import (
    MEAN,
    MODEL,
    SETTING,
    ListParameters,
    count_lists_point,
    mean_row,
    percent,
)

DEGREE = 6
PARAMETERS: dict[Scale, ListParameters] = {
    "quick": ListParameters((50, 100, 200), (0.1, 0.5, 1.0), 500),
    "paper": ListParameters(tuple(range(100, 701, 100)), tuple(tenth / 10 for tenth in range(1, 11)), 10_000),
}
ALL = percent(1.0)


def points(scale: Scale) -> list[Point]:
    chosen = PARAMETERS[scale]
    return [
        count_lists_point(
            "d-dbr",
            brokers=brokers,
            degree=DEGREE,
            interested=share,
            publications=chosen.publications,
            series=percent(share),
        )
        for share in chosen.interested
        for brokers in chosen.brokers
    ]


def _more_interest_makes_longer_lists(rows: Rows) -> bool:
    largest = max(row.x for row in rows.all if not isinstance(row.x, str))
    at_largest = [rows.y(MEAN, series, largest) for series in rows.series(MEAN)]
    return is_rising([mean for mean in at_largest if mean is not None])


FIGURE = Figure(
    name="fig-10.1.13",
    title="Mean destination list of D-DBR, degree 6",
    reference="[THESIS 10.1.2, Fig. 10.1.13]",
    claim="The list grows with brokers and with interest, and stays short: at most 3.8 at 700 brokers, all interested.",
    setting=f"Degree 6, 100 to 700 brokers, 10% to 100% interested, 10,000 publications each. {SETTING} {MODEL}",
    points=points,
    rows=mean_row,
    panels=(
        Panel(
            MEAN, "Mean destination list", "brokers", "destinations in a message", paper=(PaperPoint(ALL, 700, 3.8),)
        ),
    ),
    claims=(
        Claim(
            "mean list at 700 brokers, all interested",
            3.8,
            lambda rows: rows.y(MEAN, ALL, 700),
            why="With all interested the mean list is the mean distance from the source, about ln 700 / ln 6 = 3.7.",
        ),
    ),
    shapes=(
        Shape(
            "the list grows with brokers", lambda rows: all(is_rising(rows.values(MEAN, s)) for s in rows.series(MEAN))
        ),
        Shape("the list grows with the share of interested brokers", _more_interest_makes_longer_lists),
    ),
    minutes={"quick": 0.1, "paper": 1},
)
