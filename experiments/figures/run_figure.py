"""Runs a figure: its runs first, then rows, plot and provenance in a folder of results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from broker.progress import ShowProgress
from experiments.figures.figure import Figure, Point, Rows, Scale, Verdict, overall, rows_of, verdicts
from experiments.figures.panels import draw
from experiments.figures.results import Provenance, provenance_of, write_rows
from experiments.figures.spark_columns import has_spark_columns, with_spark_columns
from experiments.sweeps.sweep import RunOutcome, RunSpec, Submit, read_outcome, sweep


@dataclass(frozen=True, slots=True)
class RunOutcomes:
    """The points of a figure and the outcomes of their runs."""

    points: tuple[Point, ...]
    outcomes: Mapping[str, RunOutcome]
    """Keys are the names of the runs' folders."""
    new_runs: int


@dataclass(frozen=True, slots=True)
class FigureRun:
    """The result of a figure: rows, verdicts and provenance."""

    provenance: Provenance
    rows: Rows
    verdicts: tuple[Verdict, ...]
    new_runs: int

    @property
    def overall(self) -> str:
        return overall(self.verdicts)


def run_points(
    figure: Figure, scale: Scale, *, runs: Path, submit: Submit, progress: ShowProgress, force: bool = False
) -> RunOutcomes:
    """Executes the figure's runs, except those that are finished."""
    points = tuple(figure.points(scale))
    outcomes: dict[str, RunOutcome] = {}
    total = len({point.spec.folder_name for point in points})
    new = 0
    for step in sweep([point.spec for point in points], runs, submit, force=force):
        outcomes[step.spec.folder_name] = step.outcome
        new += step.is_new
        progress(f"{figure.name}: runs", len(outcomes), total)
    return RunOutcomes(points, outcomes, new)


def needs_spark(figure: Figure, scale: Scale, runs: Path, *, force: bool) -> bool:
    """Whether traces must be analysed. It is False if the tables of all runs were written earlier."""

    def is_done(spec: RunSpec) -> bool:
        return read_outcome(spec, runs) is not None and has_spark_columns(
            runs / spec.folder_name, figure.tables, figure.step_s
        )

    return bool(figure.tables) and (force or not all(is_done(point.spec) for point in figure.points(scale)))


def evaluate_runs(figure: Figure, scale: Scale, ran: RunOutcomes, out: Path) -> FigureRun:
    """Writes rows, plot and provenance to `out`, and compares the rows with the paper's claims."""
    rows = rows_of(figure, ran.points, with_spark_columns(ran.outcomes, figure.tables, figure.step_s))
    provenance = provenance_of(figure.name, scale, figure.seed, ran.outcomes.values())
    write_rows(provenance, rows, out)
    draw(figure, rows, scale, out)
    return FigureRun(provenance, rows, tuple(verdicts(figure, rows, scale)), ran.new_runs)
