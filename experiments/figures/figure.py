"""What an experiment is: runs at two scales, rows made of them, a plot, the paper's numbers and the expected shape.

A row belongs to a measure (what a panel of the plot shows) and to a series (a line or a bar's colour in it). A claim is
something that the paper says, put beside what the rows say. A number agrees when it is within `TOLERANCE` of the
paper's: one rule for all, fixed before anything was measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeAlias

from experiments.sweeps.sweep import RunOutcome, RunSpec

Scale: TypeAlias = Literal["quick", "paper"]
X: TypeAlias = float | str

SCALES: tuple[Scale, ...] = ("quick", "paper")
TOLERANCE = 0.15
PROTOCOLS = {"fbr": "FBR", "d-dbr": "D-DBR", "merc": "MERC"}
"""As the paper writes them."""


@dataclass(frozen=True, slots=True)
class Point:
    """A run, and where it stands in the figure."""

    series: str
    x: X
    spec: RunSpec
    measure: str = ""
    """Where an error of this run is shown."""


@dataclass(frozen=True, slots=True)
class Row:
    measure: str
    series: str
    x: X
    y: float | None
    """None for a run that failed."""
    error: str = ""


class Rows:
    """The rows of an entry, looked up by claims and plots. What failed, or is not there, is None."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.all = tuple(rows)
        self._by_place = {(row.measure, row.series, row.x): row for row in self.all}

    def y(self, measure: str, series: str, x: X) -> float | None:
        row = self._by_place.get((measure, series, x))
        return None if row is None else row.y

    def series(self, measure: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(row.series for row in self.all if row.measure == measure))

    def line(self, measure: str, series: str) -> list[tuple[X, float]]:
        """The points of a series that have a value, in their order."""
        return [
            (row.x, row.y) for row in self.all if (row.measure, row.series) == (measure, series) and row.y is not None
        ]

    def values(self, measure: str, series: str) -> list[float]:
        return [y for _, y in self.line(measure, series)]

    @property
    def errors(self) -> tuple[Row, ...]:
        return tuple(row for row in self.all if row.error)


Ours: TypeAlias = Callable[[Rows], float | None]


@dataclass(frozen=True, slots=True)
class Claim:
    """A number of the paper."""

    what: str
    paper: float
    ours: Ours
    unit: str = ""
    relation: Literal["about", "at least", "at most", "more than", "less than"] = "about"
    why: str = ""
    """Where the number comes from, or why ours is another."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What the paper says without a number, or between its numbers; it should hold at every scale."""

    what: str
    holds: Callable[[Rows], bool | None]
    why: str = ""


@dataclass(frozen=True, slots=True)
class PaperPoint:
    """A number of the paper, to be drawn into a panel."""

    series: str
    x: X
    y: float


@dataclass(frozen=True, slots=True)
class Panel:
    measure: str
    title: str
    x: str
    y: str
    kind: Literal["lines", "bars", "points"] = "lines"
    is_log: bool = False
    paper: tuple[PaperPoint, ...] = ()


RowMaker: TypeAlias = Callable[[Point, RunOutcome], Iterable[Row]]


@dataclass(frozen=True, slots=True)
class Figure:
    name: str
    title: str
    reference: str
    claim: str
    """What the paper reports."""
    setting: str
    """What is run, and where that is our own choice because the paper does not say."""
    points: Callable[[Scale], Sequence[Point]]
    rows: RowMaker
    panels: tuple[Panel, ...]
    claims: tuple[Claim, ...]
    shapes: tuple[Shape, ...]
    minutes: Mapping[Scale, float]
    """About how long all runs take on one core."""
    seed: int = 1
    tables: tuple[str, ...] = ()
    """Tables of the Spark analysis that rows are made of."""
    step_s: float = 10.0
    """The step of tables over time."""
    has_generated_quotes: bool = False
    """Said wherever results are shown: the papers' quotes are not public here."""


def rows_of(entry: Figure, points: Sequence[Point], outcomes: Mapping[str, RunOutcome]) -> Rows:
    """The entry's rows, from the outcomes by folder name. A run that failed is a row with its error."""
    rows: list[Row] = []
    for point in points:
        outcome = outcomes[point.spec.folder_name]
        if outcome.error:
            measure = point.measure or entry.panels[0].measure
            rows.append(Row(measure, point.series, point.x, None, outcome.error))
        else:
            rows += entry.rows(point, outcome)
    return Rows(rows)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A claim, the paper's number and ours beside it. `agrees` is None where the scale allows no comparison."""

    what: str
    paper: str
    ours: str
    agrees: bool | None
    why: str


def verdicts(entry: Figure, rows: Rows, scale: Scale) -> list[Verdict]:
    return [
        *(_judged_number(claim, rows, scale) for claim in entry.claims),
        *(_judged_shape(shape, rows) for shape in entry.shapes),
    ]


def overall(found: Sequence[Verdict]) -> str:
    judged = [verdict.agrees for verdict in found if verdict.agrees is not None]
    if not judged:
        return "not comparable"
    if all(judged):
        return "agrees" if len(judged) == len(found) else "agrees in shape"
    return "agrees in part" if any(judged) else "differs"


def _judged_number(claim: Claim, rows: Rows, scale: Scale) -> Verdict:
    ours = claim.ours(rows)
    prefix = "" if claim.relation == "about" else f"{claim.relation} "
    agrees = None if ours is None or scale != "paper" else _holds(claim, ours)
    return Verdict(
        claim.what,
        f"{prefix}{number_text(claim.paper)}{claim.unit}",
        "no value" if ours is None else f"{number_text(ours)}{claim.unit}",
        agrees,
        claim.why,
    )


def _holds(claim: Claim, ours: float) -> bool:
    match claim.relation:
        case "about":
            return abs(ours - claim.paper) <= TOLERANCE * abs(claim.paper)
        case "at least":
            return ours >= claim.paper
        case "at most":
            return ours <= claim.paper
        case "more than":
            return ours > claim.paper
        case _:
            return ours < claim.paper


def _judged_shape(shape: Shape, rows: Rows) -> Verdict:
    holds = shape.holds(rows)
    ours = {True: "holds", False: "does not hold", None: "no value"}[holds]
    return Verdict(shape.what, "holds", ours, holds, shape.why)


def number_text(value: float) -> str:
    if value == round(value) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 1 else f"{value:.2f}" if abs(value) < 100 else f"{value:.1f}"


def is_rising(values: Sequence[float], slack: float = 0.02) -> bool:
    """From each value to the next, but for so small a share; and from the first to the last."""
    is_steady = all(later >= earlier * (1 - slack) for earlier, later in pairwise(values))
    return len(values) > 1 and values[-1] > values[0] and is_steady
