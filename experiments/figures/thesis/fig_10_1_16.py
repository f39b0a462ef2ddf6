"""[THESIS Fig. 10.1.16]: mean destination list of the messages that source brokers send."""

from __future__ import annotations

from experiments.figures.figure import Claim, Figure, Panel, PaperPoint, Point, Rows, Scale, Shape, X
from experiments.figures.setups.destination_lists import (
    AT_SOURCE,
    MODEL,
    SETTING,
    ListParameters,
    at_source_row,
    count_lists_point,
    percent,
)

DEGREE, MERC_SHARE = 6, 0.5
PARAMETERS: dict[Scale, ListParameters] = {
    "quick": ListParameters((60, 120, 240), (0.5, 1.0), 500),
    "paper": ListParameters(tuple(range(100, 1001, 100)), (0.1, 0.25, 0.5, 0.75, 1.0), 10_000),
}
CLUSTER_SIZE: dict[Scale, int] = {"quick": 30, "paper": 100}
MERC = "MERC, 50% interested"


def points(scale: Scale) -> list[Point]:
    chosen = PARAMETERS[scale]
    flat = [
        count_lists_point(
            "d-dbr",
            brokers=brokers,
            degree=DEGREE,
            interested=share,
            publications=chosen.publications,
            series=f"D-DBR, {percent(share)}",
        )
        for share in chosen.interested
        for brokers in chosen.brokers
    ]
    clustered = [
        count_lists_point(
            "merc",
            brokers=brokers,
            degree=DEGREE,
            interested=MERC_SHARE,
            publications=chosen.publications,
            cluster_size=CLUSTER_SIZE[scale],
            series=MERC,
        )
        for brokers in chosen.brokers
    ]
    return flat + clustered


def _is_linear(rows: Rows) -> bool:
    """Whether the second half of each of D-DBR's lines is as steep as the first: 0.8 to 1.25 times its slope."""
    for series in rows.series(AT_SOURCE):
        line = rows.line(AT_SOURCE, series)
        if series == MERC or len(line) < 3:
            continue
        middle = len(line) // 2
        first, second = _slope(line[0], line[middle]), _slope(line[middle], line[-1])
        if not 0.8 < second / first < 1.25:
            return False
    return True


def _slope(start: tuple[X, float], end: tuple[X, float]) -> float:
    return (end[1] - start[1]) / (float(end[0]) - float(start[0]))


def _merc_does_not_grow(rows: Rows) -> bool | None:
    values = rows.values(AT_SOURCE, MERC)
    return max(values) < 1.25 * min(values) if len(values) > 1 else None


FIGURE = Figure(
    name="fig-10.1.16",
    title="Mean destination list at source brokers",
    reference="[THESIS 10.1.2, Fig. 10.1.16]",
    claim="D-DBR's list at the source grows linearly with brokers and with interest; MERC's is 8.6 at 1,000 brokers.",
    setting=(
        "Degree 6, 100 to 1,000 brokers, 10,000 publications each; the mean over the messages that a source sends. "
        f"MERC with clusters of 100, half of the brokers interested. {SETTING} {MODEL}"
    ),
    points=points,
    rows=at_source_row,
    panels=(
        Panel(
            AT_SOURCE,
            "Mean list of a source's messages",
            "brokers",
            "destinations in a message",
            paper=(PaperPoint(MERC, 1000, 8.6),),
        ),
    ),
    claims=(
        Claim(
            "MERC at 1,000 brokers, half interested",
            8.6,
            lambda rows: rows.y(AT_SOURCE, MERC, 1000),
            why="A source shares some 50 destinations of its cluster among about 6 links.",
        ),
    ),
    shapes=(
        Shape("D-DBR's list is linear in brokers", _is_linear),
        Shape("MERC's list does not grow with brokers", _merc_does_not_grow),
    ),
    minutes={"quick": 0.1, "paper": 1},
)
