"""[THESIS Fig. 10.1.17]: self-reorganisation of 70 brokers under a random load between all pairs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from experiments.figures.figure import Claim, Figure, Panel, PaperPoint, Point, Row, Rows, Scale, Shape
from experiments.sweeps.sweep import RunOutcome, RunSpec


@dataclass(frozen=True, slots=True)
class ReorganiseParameters:
    brokers: int
    most_links: tuple[int, ...]
    cycles: int


DEGREE, MOST_MESSAGES = 3, 100
PARAMETERS: dict[Scale, ReorganiseParameters] = {
    "quick": ReorganiseParameters(30, (3, 4, 6), 8),
    "paper": ReorganiseParameters(70, (3, 4, 5, 6, 8), 30),
}
LAST = PARAMETERS["paper"].cycles
HOPS, ACCURACY = "hops", "accuracy"


def series_of(most_links: int) -> str:
    return f"MaxDegree {most_links}"


def points(scale: Scale) -> list[Point]:
    chosen = PARAMETERS[scale]
    return [
        Point(
            series_of(most_links),
            0,
            RunSpec(
                "reorganise",
                {
                    "brokers": chosen.brokers,
                    "degree": DEGREE,
                    "most_links": most_links,
                    "most_messages": MOST_MESSAGES,
                    "cycles": chosen.cycles,
                    "seed": 1,
                },
            ),
        )
        for most_links in chosen.most_links
    ]


def rows(point: Point, outcome: RunOutcome) -> Iterable[Row]:
    for cycle, hops in enumerate(map(float, outcome.lists["hops"])):
        yield Row(HOPS, point.series, cycle, hops)
        yield Row(ACCURACY, point.series, cycle, 1 / hops)


def _first(results: Rows) -> float | None:
    return results.y(HOPS, results.series(HOPS)[0], 0) if results.series(HOPS) else None


def _last(results: Rows, most_links: int) -> float | None:
    values = results.values(HOPS, series_of(most_links))
    return values[-1] if values else None


def _gain(results: Rows, most_links: int) -> float | None:
    """The share by which the mean number of hops falls."""
    first, last = _first(results), _last(results, most_links)
    return None if first is None or last is None else 1 - last / first


def _all_improve(results: Rows) -> bool | None:
    lines = [results.values(HOPS, series) for series in results.series(HOPS)]
    return all(values[-1] < values[0] for values in lines) if lines and all(lines) else None


PAPER_GAIN = 1 - 3.51 / 3.97


def _paper_is_between(results: Rows) -> bool | None:
    least, more = _gain(results, 3), _gain(results, 4)
    return None if least is None or more is None else least < PAPER_GAIN < more


FIGURE = Figure(
    name="fig-10.1.17",
    title="Hops before and after self-reorganisation",
    reference="[THESIS 4.3, 10.1.2, Fig. 10.1.17]",
    claim="Mean hops fall from 3.97 to 3.51 (-12%); routing accuracy, 1 over hops, rises from 0.252 to 0.285.",
    setting=(
        "70 brokers, 1 to 100 messages a minute between any two; every broker decides by gain and loss with the code "
        "that it runs anywhere, cycle by cycle, without simulated time. Not stated and ours: degree 3 (which fits 3.97 "
        "hops), several MaxDegrees, 30 cycles of a minute."
    ),
    points=points,
    rows=rows,
    panels=(
        Panel(
            HOPS,
            "Hops of a message",
            "cycles of reorganisation",
            "mean hops",
            paper=(PaperPoint(series_of(3), 0, 3.97), PaperPoint(series_of(3), LAST, 3.51)),
        ),
        Panel(
            ACCURACY,
            "Routing accuracy",
            "cycles of reorganisation",
            "1 / mean hops",
            paper=(PaperPoint(series_of(3), 0, 0.252), PaperPoint(series_of(3), LAST, 0.285)),
        ),
    ),
    claims=(
        Claim("mean hops before", 3.97, _first, why="A random graph of 70 brokers and degree 3."),
        Claim(
            "mean hops after, MaxDegree 3",
            3.51,
            lambda results: _last(results, 3),
            why=(
                "MaxDegree is not stated. 3 is the degree that the overlay has: nearly all brokers have all links "
                "that they may have. Hops fall to 3.6 within five cycles and rise again: exchanges of links that gain "
                "for two brokers lengthen the ways of others, which gain and loss do not see."
            ),
        ),
        Claim(
            "mean hops after, MaxDegree 4",
            3.51,
            lambda results: _last(results, 4),
            why="With room for one more link each, hops fall further than in the paper.",
        ),
    ),
    shapes=(
        Shape("hops become fewer, whatever the MaxDegree", _all_improve),
        Shape("the paper's gain of 12% lies between those of MaxDegree 3 and 4", _paper_is_between),
    ),
    minutes={"quick": 0.1, "paper": 1},
)
