"""Performs an experiment: its runs, then rows, figure and provenance in a folder of results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from experiments.figures.figure import Figure, Point, Rows, Scale, Verdict, overall, rows_of, verdicts
from experiments.figures.plotting import draw
from experiments.figures.results import Provenance, provenance_of, write_rows
from experiments.figures.spark_columns import are_kept, with_tables
from experiments.sweeps.sweep import RunOutcome, RunSpec, Submit, finished, sweep

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Ran:
    points: tuple[Point, ...]
    outcomes: Mapping[str, RunOutcome]
    """By the name of the run's folder."""
    new_runs: int


@dataclass(frozen=True, slots=True)
class Performed:
    provenance: Provenance
    rows: Rows
    verdicts: tuple[Verdict, ...]
    new_runs: int

    @property
    def overall(self) -> str:
        return overall(self.verdicts)


def run_entry(
    entry: Figure, scale: Scale, *, runs: Path, submit: Submit, progress: Progress, force: bool = False
) -> Ran:
    """Does the entry's runs, those that are not finished."""
    points = tuple(entry.points(scale))
    outcomes: dict[str, RunOutcome] = {}
    total = len({point.spec.folder_name for point in points})
    new = 0
    for step in sweep([point.spec for point in points], runs, submit, force=force):
        outcomes[step.spec.folder_name] = step.outcome
        new += step.is_new
        progress(f"{entry.name}: runs", len(outcomes), total)
    return Ran(points, outcomes, new)


def needs_spark(entry: Figure, scale: Scale, runs: Path, *, force: bool) -> bool:
    """Whether traces are to be analysed, and not only tables read that were kept."""

    def is_done(spec: RunSpec) -> bool:
        return finished(spec, runs) is not None and are_kept(runs / spec.folder_name, entry.tables, entry.step_s)

    return bool(entry.tables) and (force or not all(is_done(point.spec) for point in entry.points(scale)))


def conclude(entry: Figure, scale: Scale, ran: Ran, out: Path) -> Performed:
    """Makes rows, figure and provenance of the runs, and judges the paper's claims by them."""
    rows = rows_of(entry, ran.points, with_tables(ran.outcomes, entry.tables, entry.step_s))
    provenance = provenance_of(entry.name, scale, entry.seed, ran.outcomes.values())
    write_rows(provenance, rows, out)
    draw(entry, rows, scale, out)
    return Performed(provenance, rows, tuple(verdicts(entry, rows, scale)), ran.new_runs)
