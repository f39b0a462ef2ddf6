"""Compares matching indexes on one workload: time to add, match and remove, memory, and correctness.

All indexes store the same subscriptions at the same time and work in blocks. Each index processes a block of
subscriptions or publications, in random order of the indexes, before the next block starts. So a slow phase of the
machine affects all indexes equally. Each block is repeated in several rounds, and its best CPU time counts.

The linear scan is the baseline and the reference for answers. It is slow, so on a large workload it processes only some
of the blocks, spread evenly. Ratios to the scan are over these blocks. In the other blocks the answers of the indexes
are compared with each other.
"""

from __future__ import annotations

import gc
import math
import platform
from collections.abc import Iterator, Sequence
from typing import TypeVar

from broker.progress import ShowProgress
from experiments.benchmarks.matching.plan import (
    BenchPlan,
    BenchResult,
    IndexChoice,
    IndexResult,
    ScalingPoint,
    check_plan,
    with_baseline,
)
from experiments.cpu_timing import BestTimes, garbage_collection_paused
from experiments.errors import NotEmptyError, WrongAnswerError
from experiments.workloads import registry as workloads
from matching.expressions.model import Expression
from matching.expressions.values import Value
from matching.matcher import Matcher, MatchReport, Structure
from topologies.random_streams import stream

"""A function of the current activity, its completed steps and its total steps."""

Item = TypeVar("Item")

PUBLICATIONS_IN_BLOCK = 10
SUBSCRIPTION_BLOCKS = 20
PREDICATES_FOR_SCAN = 10_000_000
"""The number of predicates that the scan evaluates in a round by default: about ten seconds."""


class Checksum:
    """The sum over publications e and matching ids i, both counted from 0, of (e + 1) * (i + 1), modulo 2**64."""

    def __init__(self) -> None:
        self._sum = 0

    def add(self, publication: int, ids: Sequence[int]) -> None:
        self._sum = (self._sum + (publication + 1) * (sum(ids) + len(ids))) % 2**64

    def __str__(self) -> str:
        return f"{self._sum:016x}"


class MeasuredIndex:
    """One index of the comparison, and its measurements."""

    def __init__(self, choice: IndexChoice, backend: str) -> None:
        self.choice = choice
        self._backend = backend
        self.construction = BestTimes()
        self.matching = BestTimes()
        self.removal = BestTimes()
        self.scaling: list[ScalingPoint] = []
        self.structure: Structure | None = None
        self.publications = 0
        self.candidates = 0
        self.evaluated = 0
        self.matched = 0
        self.checksum = Checksum()
        self.checksum_with_scan = Checksum()
        self.index = self.empty_index()

    @property
    def name(self) -> str:
        return self.choice.name

    def empty_index(self) -> Matcher:
        return self.choice.create(self._backend)

    def count(self, publication: int, report: MatchReport, *, is_scanned: bool) -> None:
        self.publications += 1
        self.candidates += report.candidates
        self.evaluated += report.evaluated
        self.matched += report.matched
        self.checksum.add(publication, report.ids)
        if is_scanned:
            self.checksum_with_scan.add(publication, report.ids)


def run(plan: BenchPlan, progress: ShowProgress) -> BenchResult:
    """Runs the comparison.

    Raises `WrongAnswerError` as soon as two indexes disagree, and `NotEmptyError` if an index is not empty after all
    subscriptions were removed.
    """
    backend = check_plan(plan)
    measured_indexes = [MeasuredIndex(choice, backend) for choice in with_baseline(plan.indexes)]
    workload = workloads.create(
        plan.parameters,
        subscriptions=plan.subscriptions,
        publications=plan.publications + plan.warm_up,
        seed=plan.seed,
    )
    subscriptions = list(
        _with_progress("generate subscriptions", workload.subscriptions(), plan.subscriptions, progress)
    )
    publications = list(workload.publications())
    bench = _Bench(plan, measured_indexes, subscriptions, publications, progress)
    with garbage_collection_paused():
        bench.run()
    return BenchResult(
        plan=plan,
        backend=backend,
        python=platform.python_version(),
        notice=workload.notice,
        scan_publications=measured_indexes[0].publications,
        results=tuple(bench.results()),
    )


def _with_progress(activity: str, items: Iterator[Item], total: int, progress: ShowProgress) -> Iterator[Item]:
    every = max(1, total // 100)
    for number, item in enumerate(items, start=1):
        yield item
        if number % every == 0 or number == total:
            progress(activity, number, total)


def _blocks(items: Sequence[Item], length: int) -> list[Sequence[Item]]:
    return [items[start : start + length] for start in range(0, len(items), length)]


class _Bench:
    """The course of a comparison."""

    def __init__(
        self,
        plan: BenchPlan,
        measured_indexes: Sequence[MeasuredIndex],
        subscriptions: list[Expression],
        publications: list[dict[str, Value]],
        progress: ShowProgress,
    ) -> None:
        self._plan = plan
        self._measured_indexes = measured_indexes
        self._subscriptions = list(enumerate(subscriptions))
        self._publications = publications[: plan.publications]
        # The last ones, so that the timed publications and their checksum do not depend on the warm-up's length.
        self._warm_up = publications[plan.publications :]
        self._progress = progress
        self._order = stream(plan.seed, "match bench/order")
        self._scanned = self._scanned_blocks()

    def run(self) -> None:
        for round_number in range(1, self._plan.rounds + 1):
            round_text = f"round {round_number} of {self._plan.rounds}"
            for measured_index in self._measured_indexes:
                measured_index.index = measured_index.empty_index()
            self._construct(f"add, {round_text}")
            if round_number == self._plan.rounds:
                self._match()
                self._describe()
            self._remove(f"remove, {round_text}")
            gc.collect()
        for size in self._plan.scaling:
            self._scale(size)

    def results(self) -> Iterator[IndexResult]:
        subscriptions = len(self._subscriptions)
        scan_s = self._measured_indexes[0].matching.total(self._scanned)
        for measured_index in self._measured_indexes:
            assert measured_index.structure is not None
            matched = measured_index.publications
            yield IndexResult(
                index=measured_index.name,
                options=measured_index.choice.options,
                construction_us=measured_index.construction.total() / subscriptions * 1e6,
                construction_s=measured_index.construction.total(),
                matching_us=measured_index.matching.total() / matched * 1e6,
                ratio_to_scan=measured_index.matching.total(self._scanned) / scan_s,
                candidates=measured_index.candidates / matched,
                evaluated=measured_index.evaluated / matched,
                matched=measured_index.matched / matched,
                bytes=measured_index.structure.bytes,
                nodes=measured_index.structure.nodes,
                levels=measured_index.structure.levels,
                removal_us=measured_index.removal.total() / subscriptions * 1e6,
                publications=matched,
                checksum=str(measured_index.checksum),
                checksum_with_scan=str(measured_index.checksum_with_scan),
                scaling=tuple(measured_index.scaling),
            )

    def _scanned_blocks(self) -> list[int]:
        """The numbers of the blocks of publications that the scan matches."""
        blocks = math.ceil(len(self._publications) / PUBLICATIONS_IN_BLOCK)
        wanted = self._plan.scan_publications
        if wanted is None:
            predicates = sum(expression.size for _, expression in self._subscriptions)
            wanted = max(1, PREDICATES_FOR_SCAN // max(1, predicates))
        scanned = min(blocks, math.ceil(wanted / PUBLICATIONS_IN_BLOCK))
        return [number * blocks // scanned for number in range(scanned)]

    def _shuffled(self, measured_indexes: Sequence[MeasuredIndex]) -> list[MeasuredIndex]:
        return self._order.sample(measured_indexes, len(measured_indexes))

    def _subscription_blocks(self, count: int) -> list[Sequence[tuple[int, Expression]]]:
        return _blocks(self._subscriptions[:count], math.ceil(count / SUBSCRIPTION_BLOCKS))

    def _construct(self, activity: str) -> None:
        blocks = self._subscription_blocks(len(self._subscriptions))
        for number, block in enumerate(blocks):
            for measured_index in self._shuffled(self._measured_indexes):
                measured_index.construction.measure(number, _add_all, measured_index.index, block)
            self._progress(activity, number + 1, len(blocks))

    def _match(self) -> None:
        baseline, *others = self._measured_indexes
        for number, publication in enumerate(self._warm_up, start=1):
            for measured_index in others:
                measured_index.index.match(publication)
            self._progress("warm up", number, len(self._warm_up))
        blocks = _blocks(self._publications, PUBLICATIONS_IN_BLOCK)
        for number, block in enumerate(blocks):
            present = [baseline, *others] if number in self._scanned else others
            self._match_block(number, block, present)
            self._progress("match", number + 1, len(blocks))

    def _match_block(self, number: int, block: Sequence[dict[str, Value]], present: Sequence[MeasuredIndex]) -> None:
        """Matches a block in all rounds. Compares the answers of every round, because an index may change its structure
        between rounds."""
        first = number * PUBLICATIONS_IN_BLOCK
        expected: list[MatchReport] = []
        for round_number in range(self._plan.rounds):
            answers: dict[str, list[MatchReport]] = {}
            for measured_index in self._shuffled(present):
                answers[measured_index.name] = measured_index.matching.measure(
                    number, _match_all, measured_index.index, block
                )
            for measured_index in present:
                reports = answers[measured_index.name]
                expected = expected or reports
                _compare(measured_index.name, reports, present[0].name, expected, first)
                if round_number == 0:
                    for offset, report in enumerate(reports):
                        measured_index.count(first + offset, report, is_scanned=number in self._scanned)

    def _describe(self) -> None:
        for number, measured_index in enumerate(self._measured_indexes, start=1):
            measured_index.structure = measured_index.index.describe()
            self._progress("weigh", number, len(self._measured_indexes))

    def _remove(self, activity: str) -> None:
        ids = [id for id, _ in self._subscriptions]
        stream(self._plan.seed, "match bench/removal").shuffle(ids)
        blocks = _blocks(ids, math.ceil(len(ids) / SUBSCRIPTION_BLOCKS))
        for number, block in enumerate(blocks):
            for measured_index in self._shuffled(self._measured_indexes):
                measured_index.removal.measure(number, _remove_all, measured_index.index, block)
            self._progress(activity, number + 1, len(blocks))
        for measured_index in self._measured_indexes:
            left = measured_index.index.describe()
            if left.subscriptions or left.nodes:
                raise NotEmptyError(measured_index.name, left.subscriptions, left.nodes)

    def _scale(self, size: int) -> None:
        measured_indexes = self._measured_indexes[1:]
        times = {measured_index.name: BestTimes() for measured_index in measured_indexes}
        blocks = self._subscription_blocks(size)
        steps = self._plan.rounds * len(blocks)
        for step in range(steps):
            number = step % len(blocks)
            if number == 0:
                for measured_index in measured_indexes:
                    measured_index.index = measured_index.empty_index()
                gc.collect()
            for measured_index in self._shuffled(measured_indexes):
                times[measured_index.name].measure(number, _add_all, measured_index.index, blocks[number])
            self._progress(f"add {size:,}", step + 1, steps)
        for measured_index in measured_indexes:
            measured_index.scaling.append(ScalingPoint(size, times[measured_index.name].total() / size * 1e6))


def _add_all(index: Matcher, subscriptions: Sequence[tuple[int, Expression]]) -> None:
    for id, expression in subscriptions:
        index.add(id, expression)


def _match_all(index: Matcher, publications: Sequence[dict[str, Value]]) -> list[MatchReport]:
    return [index.match(publication) for publication in publications]


def _remove_all(index: Matcher, ids: Sequence[int]) -> None:
    for id in ids:
        index.remove(id)


def _compare(
    index: str, reports: Sequence[MatchReport], reference: str, expected: Sequence[MatchReport], first: int
) -> None:
    for offset, (report, right) in enumerate(zip(reports, expected, strict=True)):
        if list(report.ids) != list(right.ids):
            found, wanted = set(report.ids), set(right.ids)
            raise WrongAnswerError(
                index,
                reference,
                first + offset,
                missing=sorted(wanted - found),
                added=sorted(found - wanted),
            )
