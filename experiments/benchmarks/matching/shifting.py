"""Measures how an index adapts when the workload changes.

Subscriptions and publications change from a uniform distribution of attributes to a Zipf distribution and back, step by
step. Each step replaces a share of the old subscriptions by new ones, and matches publications of the new distribution.
Work per publication (candidates and evaluated subscriptions) does not depend on the machine. An index that adapts
returns to the work with which it started [BET 8, adaptation].

Every answer is compared with that of the linear scan.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from broker.progress import ShowProgress
from experiments.benchmarks.matching.plan import IndexChoice, common_backend, with_baseline
from experiments.cpu_timing import BestTimes, garbage_collection_paused
from experiments.errors import BenchPlanError, WrongAnswerError
from experiments.workloads.be_gen import BeGen, BeGenParameters
from matching.expressions.model import Expression
from matching.expressions.values import Value
from matching.matcher import Matcher, MatchReport

NAME = "shifting"
STEPS = 4
"""The number of steps in which one distribution replaces the other. The same number of steps follows without change."""
DEFAULT_ZIPF = 2.0


@dataclass(frozen=True, slots=True)
class ShiftingPlan:
    indexes: tuple[IndexChoice, ...]
    subscriptions: int
    publications: int
    """Publications of each step."""
    parameters: BeGenParameters
    """Parameters of the workload. `zipf` is the exponent of the second phase."""
    seed: int = 0
    backend: str | None = None
    """None for the first backend that all indexes have."""


@dataclass(frozen=True, slots=True)
class ShiftingRow:
    phase: str
    step: int
    index: str
    candidates: float
    evaluated: float
    matching_us: float
    ratio_to_scan: float


def run_shifting(plan: ShiftingPlan, progress: ShowProgress) -> list[ShiftingRow]:
    if plan.subscriptions < STEPS or plan.publications < 1:
        raise BenchPlanError(f"shifting needs at least {STEPS} subscriptions and one publication a step")
    backend = common_backend(plan.indexes, plan.backend)
    indexes = {choice.name: choice.create(backend) for choice in with_baseline(plan.indexes)}
    phases = (("uniform", 0.0), ("Zipf", plan.parameters.zipf or DEFAULT_ZIPF), ("uniform again", 0.0))
    stored = _StoredSubscriptions(indexes)
    rows: list[ShiftingRow] = []
    steps = len(phases) * 2 * STEPS
    with garbage_collection_paused():
        for number, (phase, zipf) in enumerate(phases):
            workload = BeGen(
                dataclasses.replace(plan.parameters, zipf=zipf),
                subscriptions=plan.subscriptions,
                publications=plan.publications * 2 * STEPS,
                seed=plan.seed + number,
            )
            subscriptions, publications = workload.subscriptions(), workload.publications()
            for step in range(2 * STEPS):
                if step < STEPS:
                    stored.replace(
                        list(itertools.islice(subscriptions, plan.subscriptions // STEPS)), plan.subscriptions
                    )
                rows += _match_step(phase, step, indexes, list(itertools.islice(publications, plan.publications)))
                progress(f"{phase}, step {step + 1}", number * 2 * STEPS + step + 1, steps)
    return rows


class _StoredSubscriptions:
    """The subscriptions that all indexes store, oldest first."""

    def __init__(self, indexes: dict[str, Matcher]) -> None:
        self._indexes = indexes
        self._ids: deque[int] = deque()
        self._next_id = 0

    def replace(self, new: Sequence[Expression], limit: int) -> None:
        """Adds the new subscriptions, and removes the oldest until at most `limit` are stored."""
        for expression in new:
            for index in self._indexes.values():
                index.add(self._next_id, expression)
            self._ids.append(self._next_id)
            self._next_id += 1
        while len(self._ids) > limit:
            oldest = self._ids.popleft()
            for index in self._indexes.values():
                index.remove(oldest)


def _match_step(
    phase: str, step: int, indexes: dict[str, Matcher], publications: Sequence[dict[str, Value]]
) -> list[ShiftingRow]:
    times = {name: BestTimes() for name in indexes}
    reports = {name: times[name].measure(0, _match_all, index, publications) for name, index in indexes.items()}
    baseline = next(iter(indexes))
    for name, found in reports.items():
        for number, (report, right) in enumerate(zip(found, reports[baseline], strict=True)):
            if list(report.ids) != list(right.ids):
                missing, added = set(right.ids) - set(report.ids), set(report.ids) - set(right.ids)
                raise WrongAnswerError(name, baseline, number, missing=sorted(missing), added=sorted(added))
    count = len(publications)
    return [
        ShiftingRow(
            phase,
            step + 1,
            name,
            sum(report.candidates for report in found) / count,
            sum(report.evaluated for report in found) / count,
            times[name].total() / count * 1e6,
            times[name].total() / times[baseline].total(),
        )
        for name, found in reports.items()
    ]


def _match_all(index: Matcher, publications: Sequence[dict[str, Value]]) -> list[MatchReport]:
    return [index.match(publication) for publication in publications]


def print_shifting(rows: Sequence[ShiftingRow], *, is_json: bool) -> None:
    if is_json:
        print(json.dumps([dataclasses.asdict(row) for row in rows], indent=2))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title="work for each publication while the workload shifts", title_justify="left")
    for column in ("phase", "step", "index", "candidates", "evaluated", "match µs", "of scan"):
        table.add_column(column, justify="left" if column in ("phase", "index") else "right", no_wrap=True)
    for row in rows:
        if row.index != rows[0].index:
            table.add_row(
                row.phase,
                str(row.step),
                row.index,
                f"{row.candidates:,.1f}",
                f"{row.evaluated:,.1f}",
                f"{row.matching_us:,.0f}",
                f"{row.ratio_to_scan:.3f}",
            )
    console = Console()
    console.print(table)
    for name, before, after in recovery(rows):
        console.print(f"{name}: {before:,.1f} evaluated before the shift, {after:,.1f} after it and back")


def recovery(rows: Sequence[ShiftingRow]) -> list[tuple[str, float, float]]:
    """For each index but the scan: subscriptions evaluated in the last step of the first and of the last phase."""
    first, last = rows[0].phase, rows[-1].phase
    names = list(dict.fromkeys(row.index for row in rows))[1:]

    def settled(phase: str, name: str) -> float:
        return next(row.evaluated for row in reversed(rows) if row.phase == phase and row.index == name)

    return [(name, settled(first, name), settled(last, name)) for name in names]
