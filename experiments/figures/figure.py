"""A figure of a paper as an experiment: runs at two scales, rows, panels, claims and verdicts.

A row belongs to a measure and to a series. A measure is the quantity that a panel shows. A series is a line in the
panel, or the colour of its bars. A claim is a statement of the paper that the rows are compared with. A number agrees
when it is within `TOLERANCE` of the paper's number. This rule holds for all numbers and was fixed before the first
measurement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeAlias

from experiments.sweeps.sweep import RunOutcome, RunSpec

Scale: TypeAlias = Literal["quick", "paper"]
"""The size of an experiment: `quick` for a check, `paper` for the size of the paper."""
X: TypeAlias = float | str

SCALES: tuple[Scale, ...] = ("quick", "paper")
TOLERANCE = 0.15
PROTOCOLS = {"fbr": "FBR", "d-dbr": "D-DBR", "merc": "MERC"}
"""Protocol names as the paper writes them."""


@dataclass(frozen=True, slots=True)
class Point:
    """A run and its position in the figure: series and x."""

    series: str
    x: X
    spec: RunSpec
    measure: str = ""
    """The measure under which an error of this run is shown; empty means the first panel's."""


@dataclass(frozen=True, slots=True)
class Row:
    """One value of a figure."""

    measure: str
    series: str
    x: X
    y: float | None
    """None if the run failed."""
    error: str = ""


class Rows:
    """The rows of a figure, for lookup by claims and plots. The value of a failed or missing row is None."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.all = tuple(rows)
        self._by_place = {(row.measure, row.series, row.x): row for row in self.all}

    def y(self, measure: str, series: str, x: X) -> float | None:
        row = self._by_place.get((measure, series, x))
        return None if row is None else row.y

    def series(self, measure: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(row.series for row in self.all if row.measure == measure))

    def line(self, measure: str, series: str) -> list[tuple[X, float]]:
        """The x and y of the rows of a series that have a value, in their order."""
        return [
            (row.x, row.y) for row in self.all if (row.measure, row.series) == (measure, series) and row.y is not None
        ]

    def values(self, measure: str, series: str) -> list[float]:
        return [y for _, y in self.line(measure, series)]

    def mean(self, measure: str, series: str) -> float | None:
        """The mean of a series. None if it has no value."""
        values = self.values(measure, series)
        return sum(values) / len(values) if values else None

    @property
    def errors(self) -> tuple[Row, ...]:
        return tuple(row for row in self.all if row.error)


ClaimValue: TypeAlias = Callable[[Rows], float | None]


@dataclass(frozen=True, slots=True)
class Claim:
    """A number that the paper states, and the function that computes ours from the rows."""

    what: str
    paper: float
    ours: ClaimValue
    unit: str = ""
    relation: Literal["about", "at least", "at most", "more than", "less than"] = "about"
    why: str = ""
    """The origin of the number, or the reason why ours differs."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A statement of the paper without a number, or about a relation of numbers. It should hold at every scale."""

    what: str
    holds: Callable[[Rows], bool | None]
    why: str = ""


@dataclass(frozen=True, slots=True)
class PaperPoint:
    """A number of the paper that is drawn into a panel."""

    series: str
    x: X
    y: float


@dataclass(frozen=True, slots=True)
class Panel:
    """One plot of a figure: a measure over x."""

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
    """A figure or table of a paper as data. `run_figure` runs it."""

    name: str
    title: str
    reference: str
    claim: str
    """The paper's report in one or two sentences."""
    setting: str
    """The parameters of the runs. Names those that are our own choice because the paper does not state them."""
    points: Callable[[Scale], Sequence[Point]]
    rows: RowMaker
    panels: tuple[Panel, ...]
    claims: tuple[Claim, ...]
    shapes: tuple[Shape, ...]
    minutes: Mapping[Scale, float]
    """Approximate duration of all runs on one core."""
    seed: int = 1
    tables: tuple[str, ...] = ()
    """Tables of the Spark analysis that the rows need."""
    step_s: float = 10.0
    """The step of tables over time."""
    has_generated_quotes: bool = False
    """Whether the quotes are generated: the papers' quotes are not public. Every display of results says so."""


def rows_of(figure: Figure, points: Sequence[Point], outcomes: Mapping[str, RunOutcome]) -> Rows:
    """The figure's rows. `outcomes` has the names of run folders as keys. A failed run gives a row with its error."""
    rows: list[Row] = []
    for point in points:
        outcome = outcomes[point.spec.folder_name]
        if outcome.error:
            measure = point.measure or figure.panels[0].measure
            rows.append(Row(measure, point.series, point.x, None, outcome.error))
        else:
            rows += figure.rows(point, outcome)
    return Rows(rows)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A claim with the paper's number and ours. `agrees` is None if the scale allows no comparison."""

    what: str
    paper: str
    ours: str
    agrees: bool | None
    why: str


def verdicts(figure: Figure, rows: Rows, scale: Scale) -> list[Verdict]:
    """Compares the rows with each of the figure's claims."""
    return [
        *(_number_verdict(claim, rows, scale) for claim in figure.claims),
        *(_shape_verdict(shape, rows) for shape in figure.shapes),
    ]


def overall(figure_verdicts: Sequence[Verdict]) -> str:
    """Sums up a figure's verdicts in one phrase."""
    comparable = [verdict.agrees for verdict in figure_verdicts if verdict.agrees is not None]
    if not comparable:
        return "not comparable"
    if all(comparable):
        return "agrees" if len(comparable) == len(figure_verdicts) else "agrees in shape"
    return "agrees in part" if any(comparable) else "differs"


def _number_verdict(claim: Claim, rows: Rows, scale: Scale) -> Verdict:
    ours = claim.ours(rows)
    prefix = "" if claim.relation == "about" else f"{claim.relation} "
    agrees = None if ours is None or scale != "paper" else _agrees(claim, ours)
    return Verdict(
        claim.what,
        f"{prefix}{number_text(claim.paper)}{claim.unit}",
        "no value" if ours is None else f"{number_text(ours)}{claim.unit}",
        agrees,
        claim.why,
    )


def _agrees(claim: Claim, ours: float) -> bool:
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


def _shape_verdict(shape: Shape, rows: Rows) -> Verdict:
    holds = shape.holds(rows)
    ours = {True: "holds", False: "does not hold", None: "no value"}[holds]
    return Verdict(shape.what, "holds", ours, holds, shape.why)


def number_text(value: float) -> str:
    if value == round(value) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 1 else f"{value:.2f}" if abs(value) < 100 else f"{value:.1f}"


def is_rising(values: Sequence[float], slack: float = 0.02) -> bool:
    """Whether values rise from first to last, and no value is below the previous one by more than the share `slack`."""
    is_steady = all(later >= earlier * (1 - slack) for earlier, later in pairwise(values))
    return len(values) > 1 and values[-1] > values[0] and is_steady
