"""Proves the rows of the benchmark that shifts the workload, and that it detects wrong answers."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping

import pytest

import mercast
from experiments.benchmarks.matching.plan import IndexChoice
from experiments.benchmarks.matching.shifting import STEPS, ShiftingPlan, recovery, run_shifting
from experiments.errors import BenchPlanError, WrongAnswerError
from experiments.workloads.be_gen import BeGenParameters
from matching.expressions.values import Value
from matching.indexes.scan import LinearScan
from matching.matcher import SearchResult
from matching.registry import INDEXES, Accepts, IndexInfo

SMALL = BeGenParameters(dimensions=40, event_size=15, subscription_size=4, matching_probability=0.02)


class Forgetful(LinearScan):
    """Misses subscriptions with an even id."""

    def _search(self, publication: dict[str, Value]) -> SearchResult:
        found = super()._search(publication)
        return SearchResult([id for id in found.ids if id % 2], found.candidates, found.evaluated)

    def _shape(self) -> tuple[int, int, Mapping[str, int]]:
        return super()._shape()


def plan(*names: str, subscriptions: int = 400) -> ShiftingPlan:
    return ShiftingPlan(tuple(IndexChoice(name) for name in names), subscriptions, 10, SMALL, seed=3)


def no_progress(what: str, done: int, total: int) -> None:
    assert what
    assert done <= total


def test_be_tree_returns_to_the_work_of_the_first_phase() -> None:
    rows = run_shifting(plan("be-tree"), no_progress)
    assert len(rows) == 3 * 2 * STEPS * 2
    [(name, before, after)] = recovery(rows)
    assert name == "be-tree"
    assert after == pytest.approx(before, rel=0.35)


def test_all_subscriptions_of_a_phase_are_replaced_in_the_next() -> None:
    rows = run_shifting(plan("scan"), no_progress)
    evaluated = [row.evaluated for row in rows]
    assert evaluated[:STEPS] == [100, 200, 300, 400]
    assert set(evaluated[STEPS:]) == {400}


def test_a_wrong_answer_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    info = IndexInfo("forgetful", "wrong", Accepts.ANY_EXPRESSION, {"python": (__name__, "Forgetful")})
    monkeypatch.setitem(INDEXES, "forgetful", info)
    monkeypatch.setitem(sys.modules, __name__, sys.modules[__name__])
    with pytest.raises(WrongAnswerError, match="forgetful"):
        run_shifting(plan("forgetful"), no_progress)


def test_too_few_subscriptions_are_refused() -> None:
    with pytest.raises(BenchPlanError, match="at least 4"):
        run_shifting(plan("scan", subscriptions=3), no_progress)


def test_the_command_prints_rows(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    words = "match bench --workload shifting -i be-tree --subscriptions 80 --publications 48 --json"
    monkeypatch.setattr(sys, "argv", ["mercast", *words.split()])
    with pytest.raises(SystemExit) as stop:
        mercast.main()
    assert not stop.value.code
    rows = json.loads(capsys.readouterr().out)
    assert {row["phase"] for row in rows} == {"uniform", "Zipf", "uniform again"}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("-w shifting --rounds 3", "--rounds 3: shifting has no such option"),
        ("-w shifting --warm-up 100", "--warm-up 100: shifting has no such option"),
        ("-w shifting --scaling 10,20", "--scaling 10,20: shifting has no such option"),
        ("-w shifting --scan-publications 5", "--scan-publications 5: shifting has no such option"),
        ("-w shifting -i be-tree -i be-tree", "be-tree is named twice"),
        ("-w shifting -i be-tree --backend native", "the indexes do not all have backend 'native'"),
        ("-w shiftin", "(did you mean 'shifting'?); there are be-gen, abe-gen, query-log, ads, stock-quotes, shifting"),
    ],
)
def test_an_option_that_does_not_apply_is_refused_by_name(
    words: str, says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["mercast", "match", "bench", *words.split()])
    with pytest.raises(SystemExit) as stop:
        mercast.main()
    assert stop.value.code == 2
    assert says in capsys.readouterr().err


def test_backends_are_never_mixed(monkeypatch: pytest.MonkeyPatch) -> None:
    info = IndexInfo("native-only", "there", Accepts.ANY_EXPRESSION, {"native": (__name__, "Forgetful")})
    monkeypatch.setitem(INDEXES, "native-only", info)
    with pytest.raises(BenchPlanError, match="backends are never mixed"):
        run_shifting(plan("be-tree", "native-only"), no_progress)
