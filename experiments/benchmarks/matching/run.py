"""Matching indexes side by side on one workload: time to add, match and remove, memory, and whether they are right.

All indexes hold the same subscriptions at the same time, and take turns in blocks: a block of subscriptions or
publications is given to each index, in random order, before the next one. A slow minute of the machine therefore hits
all alike. Each block is done in several rounds; its best CPU time counts.

The linear scan always runs along as the baseline and the judge. It is slow, so on a large workload it takes part in
some of the blocks only, spread evenly; ratios to the scan are over these blocks. In the other blocks the indexes are
compared with each other.
"""

from __future__ import annotations

import gc
import math
import platform
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias, TypeVar

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

Progress: TypeAlias = Callable[[str, int, int], None]
"""Told what is being done, how many steps of it are done, and how many there are."""

Item = TypeVar("Item")

PUBLICATIONS_IN_BLOCK = 10
SUBSCRIPTION_BLOCKS = 20
PREDICATES_FOR_SCAN = 10_000_000
"""What the scan may evaluate in a round when nothing is said: some ten seconds."""


class Checksum:
    """The sum over publications e and matching ids i, both counted from 0, of (e + 1) * (i + 1), modulo 2**64."""

    def __init__(self) -> None:
        self._sum = 0

    def add(self, publication: int, ids: Sequence[int]) -> None:
        self._sum = (self._sum + (publication + 1) * (sum(ids) + len(ids))) % 2**64

    def __str__(self) -> str:
        return f"{self._sum:016x}"


class Contestant:
    """One index of the comparison, and what was measured of it."""

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


def run(plan: BenchPlan, progress: Progress) -> BenchResult:
    """Raises `WrongAnswerError` as soon as two indexes disagree, `NotEmptyError` if one keeps what was removed."""
    backend = check_plan(plan)
    contestants = [Contestant(choice, backend) for choice in with_baseline(plan.indexes)]
    workload = workloads.create(
        plan.parameters,
        subscriptions=plan.subscriptions,
        publications=plan.publications + plan.warm_up,
        seed=plan.seed,
    )
    subscriptions = list(_counted("generate subscriptions", workload.subscriptions(), plan.subscriptions, progress))
    publications = list(workload.publications())
    bench = _Bench(plan, contestants, subscriptions, publications, progress)
    with garbage_collection_paused():
        bench.run()
    return BenchResult(
        plan=plan,
        backend=backend,
        python=platform.python_version(),
        notice=workload.notice,
        scan_publications=contestants[0].publications,
        results=tuple(bench.results()),
    )


def _counted(what: str, items: Iterator[Item], total: int, progress: Progress) -> Iterator[Item]:
    every = max(1, total // 100)
    for number, item in enumerate(items, start=1):
        yield item
        if number % every == 0 or number == total:
            progress(what, number, total)


def _blocks(items: Sequence[Item], length: int) -> list[Sequence[Item]]:
    return [items[start : start + length] for start in range(0, len(items), length)]


class _Bench:
    """The course of a comparison."""

    def __init__(
        self,
        plan: BenchPlan,
        contestants: Sequence[Contestant],
        subscriptions: list[Expression],
        publications: list[dict[str, Value]],
        progress: Progress,
    ) -> None:
        self._plan = plan
        self._contestants = contestants
        self._subscriptions = list(enumerate(subscriptions))
        self._publications = publications[: plan.publications]
        # The last ones, so that the timed publications and their checksum do not depend on the warm-up's length.
        self._warm_up = publications[plan.publications :]
        self._progress = progress
        self._order = stream(plan.seed, "match bench/order")
        self._scanned = self._scanned_blocks()

    def run(self) -> None:
        for round_number in range(1, self._plan.rounds + 1):
            in_words = f"round {round_number} of {self._plan.rounds}"
            for contestant in self._contestants:
                contestant.index = contestant.empty_index()
            self._construct(f"add, {in_words}")
            if round_number == self._plan.rounds:
                self._match()
                self._describe()
            self._remove(f"remove, {in_words}")
            gc.collect()
        for size in self._plan.scaling:
            self._scale(size)

    def results(self) -> Iterator[IndexResult]:
        subscriptions = len(self._subscriptions)
        scan_s = self._contestants[0].matching.total(self._scanned)
        for contestant in self._contestants:
            assert contestant.structure is not None
            matched = contestant.publications
            yield IndexResult(
                index=contestant.name,
                options=contestant.choice.options,
                construction_us=contestant.construction.total() / subscriptions * 1e6,
                construction_s=contestant.construction.total(),
                matching_us=contestant.matching.total() / matched * 1e6,
                ratio_to_scan=contestant.matching.total(self._scanned) / scan_s,
                candidates=contestant.candidates / matched,
                evaluated=contestant.evaluated / matched,
                matched=contestant.matched / matched,
                bytes=contestant.structure.bytes,
                nodes=contestant.structure.nodes,
                levels=contestant.structure.levels,
                removal_us=contestant.removal.total() / subscriptions * 1e6,
                publications=matched,
                checksum=str(contestant.checksum),
                checksum_with_scan=str(contestant.checksum_with_scan),
                scaling=tuple(contestant.scaling),
            )

    def _scanned_blocks(self) -> list[int]:
        """The numbers of the blocks of publications in which the scan takes part."""
        blocks = math.ceil(len(self._publications) / PUBLICATIONS_IN_BLOCK)
        wanted = self._plan.scan_publications
        if wanted is None:
            predicates = sum(expression.size for _, expression in self._subscriptions)
            wanted = max(1, PREDICATES_FOR_SCAN // max(1, predicates))
        scanned = min(blocks, math.ceil(wanted / PUBLICATIONS_IN_BLOCK))
        return [number * blocks // scanned for number in range(scanned)]

    def _shuffled(self, contestants: Sequence[Contestant]) -> list[Contestant]:
        return self._order.sample(contestants, len(contestants))

    def _subscription_blocks(self, count: int) -> list[Sequence[tuple[int, Expression]]]:
        return _blocks(self._subscriptions[:count], math.ceil(count / SUBSCRIPTION_BLOCKS))

    def _construct(self, what: str) -> None:
        blocks = self._subscription_blocks(len(self._subscriptions))
        for number, block in enumerate(blocks):
            for contestant in self._shuffled(self._contestants):
                contestant.construction.measure(number, _add_all, contestant.index, block)
            self._progress(what, number + 1, len(blocks))

    def _match(self) -> None:
        baseline, *others = self._contestants
        for number, publication in enumerate(self._warm_up, start=1):
            for contestant in others:
                contestant.index.match(publication)
            self._progress("warm up", number, len(self._warm_up))
        blocks = _blocks(self._publications, PUBLICATIONS_IN_BLOCK)
        for number, block in enumerate(blocks):
            present = [baseline, *others] if number in self._scanned else others
            self._match_block(number, block, present)
            self._progress("match", number + 1, len(blocks))

    def _match_block(self, number: int, block: Sequence[dict[str, Value]], present: Sequence[Contestant]) -> None:
        """Every round's answers are compared, because an index may change its structure between two rounds."""
        first = number * PUBLICATIONS_IN_BLOCK
        expected: list[MatchReport] = []
        for round_number in range(self._plan.rounds):
            answers: dict[str, list[MatchReport]] = {}
            for contestant in self._shuffled(present):
                answers[contestant.name] = contestant.matching.measure(number, _match_all, contestant.index, block)
            for contestant in present:
                reports = answers[contestant.name]
                expected = expected or reports
                _compare(contestant.name, reports, present[0].name, expected, first)
                if round_number == 0:
                    for offset, report in enumerate(reports):
                        contestant.count(first + offset, report, is_scanned=number in self._scanned)

    def _describe(self) -> None:
        for number, contestant in enumerate(self._contestants, start=1):
            contestant.structure = contestant.index.describe()
            self._progress("weigh", number, len(self._contestants))

    def _remove(self, what: str) -> None:
        ids = [id for id, _ in self._subscriptions]
        stream(self._plan.seed, "match bench/removal").shuffle(ids)
        blocks = _blocks(ids, math.ceil(len(ids) / SUBSCRIPTION_BLOCKS))
        for number, block in enumerate(blocks):
            for contestant in self._shuffled(self._contestants):
                contestant.removal.measure(number, _remove_all, contestant.index, block)
            self._progress(what, number + 1, len(blocks))
        for contestant in self._contestants:
            left = contestant.index.describe()
            if left.subscriptions or left.nodes:
                raise NotEmptyError(contestant.name, left.subscriptions, left.nodes)

    def _scale(self, size: int) -> None:
        contestants = self._contestants[1:]
        times = {contestant.name: BestTimes() for contestant in contestants}
        blocks = self._subscription_blocks(size)
        steps = self._plan.rounds * len(blocks)
        for step in range(steps):
            number = step % len(blocks)
            if number == 0:
                for contestant in contestants:
                    contestant.index = contestant.empty_index()
                gc.collect()
            for contestant in self._shuffled(contestants):
                times[contestant.name].measure(number, _add_all, contestant.index, blocks[number])
            self._progress(f"add {size:,}", step + 1, steps)
        for contestant in contestants:
            contestant.scaling.append(ScalingPoint(size, times[contestant.name].total() / size * 1e6))


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
