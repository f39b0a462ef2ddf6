"""Proves the measurements of the comparison of indexes, and that a wrong index makes it fail."""

from __future__ import annotations

import gc
import json
from collections.abc import Mapping

import pytest
import typer
from typer.testing import CliRunner, Result

import mercast
from experiments.benchmarks.matching.commands import COMMANDS
from experiments.benchmarks.matching.plan import BenchPlan, BenchResult, IndexChoice
from experiments.benchmarks.matching.run import Checksum, run
from experiments.cpu_timing import BestTimes, garbage_collection_paused
from experiments.errors import BenchPlanError, NotEmptyError, WrongAnswerError
from experiments.workloads.be_gen import BeGen, BeGenParameters
from experiments.workloads.registry import create
from matching import registry
from matching.expressions.model import Expression
from matching.expressions.values import Value
from matching.indexes.scan import LinearScan
from matching.matcher import SearchResult
from matching.registry import Accepts, IndexInfo

PARAMETERS = BeGenParameters(dimensions=12, event_size=8, subscription_size=3, matching_probability=0.1)
TINY = ("--subscriptions", "60", "--publications", "25", "--warm-up", "3", "--rounds", "2")
TINY_SHAPE = ("--dimensions", "12", "--event-size", "8", "--subscription-size", "3", "--matching-probability", "0.1")


class ByFirstAttribute(LinearScan):
    """A correct index that skips subscriptions whose first attribute the publication lacks."""

    name = "by-first-attribute"

    def __init__(self, is_slow: bool = False) -> None:
        super().__init__()
        self.is_slow = is_slow

    def _search(self, publication: dict[str, Value]) -> SearchResult:
        candidates = [
            (id, expression)
            for id, expression in self._expressions.items()
            if next(expression.predicates()).attribute in publication
        ]
        ids = [id for id, expression in candidates if expression.matches(publication)]
        return SearchResult(ids, candidates=len(candidates), evaluated=len(candidates))


class Forgetful(LinearScan):
    """Wrong from its twentieth match on, which is a timed one: it omits its smallest id and adds another."""

    name = "forgetful"

    def __init__(self) -> None:
        super().__init__()
        self._searches = 0

    def _search(self, publication: dict[str, Value]) -> SearchResult:
        found = super()._search(publication)
        self._searches += 1
        if self._searches < 20 or not found.ids:
            return found
        return SearchResult([*found.ids[1:], 1_000], found.candidates, found.evaluated)


class Hoarder(LinearScan):
    """Keeps a node for every subscription that was ever added."""

    name = "hoarder"

    def __init__(self) -> None:
        super().__init__()
        self._seen = 0

    def _insert(self, id: int, expression: Expression) -> None:
        self._seen += 1

    def _shape(self) -> tuple[int, int, Mapping[str, int]]:
        return self._seen, 1, {}


@pytest.fixture(autouse=True)
def _indexes_of_this_test(monkeypatch: pytest.MonkeyPatch) -> None:
    for index in (ByFirstAttribute, Forgetful, Hoarder):
        info = IndexInfo(index.name, "for tests", Accepts.CONJUNCTIONS, {"python": (__name__, index.__name__)})
        monkeypatch.setitem(registry.INDEXES, index.name, info)


def plan(*indexes: str, **changes: object) -> BenchPlan:
    settings: dict[str, object] = {
        "parameters": PARAMETERS,
        "subscriptions": 60,
        "publications": 25,
        "indexes": tuple(map(IndexChoice, indexes)),
        "warm_up": 3,
        "rounds": 2,
    }
    return BenchPlan(**(settings | changes))  # type: ignore[arg-type]


def quietly(plan: BenchPlan) -> BenchResult:
    return run(plan, lambda _what, _done, _total: None)


def checksum_of_definition(count: int, publications: int, seed: int = 0) -> str:
    workload = BeGen(PARAMETERS, subscriptions=count, publications=publications, seed=seed)
    subscriptions = list(workload.subscriptions())
    total = sum(
        (e + 1) * (i + 1)
        for e, publication in enumerate(workload.publications())
        for i, subscription in enumerate(subscriptions)
        if subscription.matches(publication)
    )
    return f"{total % 2**64:016x}"


def test_every_index_is_compared_with_the_scan() -> None:
    result = quietly(plan("by-first-attribute", "pst-bloom"))
    assert [row.index for row in result.results] == ["scan", "by-first-attribute", "pst-bloom"]
    for row in result.results:
        assert row.checksum == row.checksum_with_scan == checksum_of_definition(60, 25)
        assert row.publications == 25
        assert row.matched == result.results[0].matched > 0
        assert row.matched <= row.candidates <= 60
        assert row.construction_s == pytest.approx(row.construction_us * 60 / 1e6)
        assert min(row.construction_us, row.matching_us, row.removal_us) > 0
        assert row.bytes > 0
    assert result.results[0].ratio_to_scan == 1
    assert result.results[0].candidates == 60 > result.results[1].candidates
    assert (result.backend, result.scan_publications) == ("python", 25)


def test_the_scan_is_not_run_twice_when_it_is_requested() -> None:
    assert [row.index for row in quietly(plan("pst-bloom", "scan")).results] == ["scan", "pst-bloom"]


def test_the_scan_may_match_a_part_of_the_publications_spread_over_all() -> None:
    result = quietly(plan("pst-bloom", "pst-hash", publications=50, scan_publications=15))
    scan, *others = result.results
    assert scan.publications == result.scan_publications == 20, "whole blocks of ten"
    assert {row.checksum_with_scan for row in result.results} == {scan.checksum}
    assert {row.checksum for row in others} == {checksum_of_definition(60, 50)} != {scan.checksum}


def test_answers_do_not_depend_on_the_warm_up() -> None:
    checksums = {quietly(plan("pst-bloom", warm_up=count)).results[1].checksum for count in (0, 40)}
    assert len(checksums) == 1


@pytest.mark.parametrize("scan_publications", [None, 10])
def test_a_wrong_answer_ends_the_run_and_names_index_publication_and_ids(scan_publications: int | None) -> None:
    with pytest.raises(WrongAnswerError) as failure:
        quietly(plan("by-first-attribute", "forgetful", scan_publications=scan_publications, rounds=1))
    error = failure.value
    assert error.exit_code == 1
    assert error.index == "forgetful"
    # Three matches warm up, so the twentieth is publication 16, which is outside the one block that the scan matches.
    assert error.publication >= 16
    assert error.reference == ("scan" if scan_publications is None else "by-first-attribute")
    workload = create(PARAMETERS, subscriptions=60, publications=25, seed=0)
    publication = list(workload.publications())[error.publication]
    ids = [id for id, expression in enumerate(workload.subscriptions()) if expression.matches(publication)]
    assert error.missing == (ids[0],)
    assert error.added == (1_000,)
    assert f"publication {error.publication}: against {error.reference} it misses id {ids[0]} and adds id 1000" in str(
        error
    )


def test_an_index_that_keeps_removed_subscriptions_ends_the_run() -> None:
    with pytest.raises(NotEmptyError, match=r"hoarder is not empty .* 0 subscriptions and 60 nodes") as failure:
        quietly(plan("hoarder"))
    assert failure.value.exit_code == 1


def test_scaling_times_construction_at_each_size() -> None:
    result = quietly(plan("pst-bloom", scaling=(10, 60)))
    assert [point.subscriptions for point in result.results[1].scaling] == [10, 60]
    assert all(point.construction_us > 0 for point in result.results[1].scaling)


def test_progress_reaches_the_end_of_every_phase() -> None:
    seen: dict[str, tuple[int, int]] = {}
    run(plan("pst-bloom", scaling=(30,)), lambda what, done, total: seen.update({what: (done, total)}))
    assert {what.partition(",")[0] for what in seen} == {
        "generate subscriptions", "add", "warm up", "match", "weigh", "remove", "add 30",
    }  # fmt: skip
    assert all(done == total for done, total in seen.values())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"subscriptions": 0}, "subscriptions: 0"),
        ({"publications": 0}, "publications: 0"),
        ({"rounds": 0}, "rounds: 0"),
        ({"scan_publications": 0}, "scan publications: 0"),
        ({"warm_up": -1}, "warm-up: -1"),
        ({"scaling": (61,)}, "61 does not lie between 1 and the 60"),
        ({"backend": "native"}, "do not all have backend 'native' .scan: .*; pst-bloom: python"),
        ({"indexes": (IndexChoice("pst-bloom"), IndexChoice("pst-bloom"))}, "pst-bloom is named twice"),
        ({"indexes": (IndexChoice("pst-hash", {"access_predicates": 1}),)}, "pst-hash refuses its options"),
    ],
)
def test_a_plan_that_cannot_be_run_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(BenchPlanError, match=message) as refusal:
        quietly(plan("pst-bloom", **changes))
    assert refusal.value.exit_code == 2


def test_indexes_without_a_common_backend_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    native = IndexInfo("compiled", "for tests", Accepts.CONJUNCTIONS, {"native": (__name__, "ByFirstAttribute")})
    monkeypatch.setitem(registry.INDEXES, "compiled", native)
    with pytest.raises(BenchPlanError, match="do not all have a backend"):
        quietly(plan("compiled", "pst-bloom"))


def test_the_checksum_is_modulo_two_to_the_64() -> None:
    checksum = Checksum()
    checksum.add(2**63 - 1, [0, 2])
    assert str(checksum) == f"{(2**63 * (1 + 3)) % 2**64:016x}" == "0" * 16
    checksum.add(4, [1])
    assert str(checksum) == f"{5 * 2:016x}"


def test_the_best_time_of_each_block_counts() -> None:
    readings = iter([0.0, 3.0, 10.0, 12.0, 20.0, 25.0])
    times = BestTimes(clock=lambda: next(readings))
    for block in (0, 0, 1):
        assert times.measure(block, str, block) == str(block)
    assert times.total() == 2 + 5
    assert times.total([1]) == 5


def test_garbage_collection_is_paused_and_resumed_even_after_an_error() -> None:
    def fail_while_paused() -> None:
        with garbage_collection_paused():
            assert not gc.isenabled()
            raise ValueError("in the middle")

    with pytest.raises(ValueError, match="in the middle"):
        fail_while_paused()
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0


def bench(*arguments: str) -> Result:
    app = typer.Typer()
    app.command()(COMMANDS["match bench"])
    return CliRunner().invoke(app, arguments)


def test_the_command_prints_tables() -> None:
    result = bench("-i", "pst-bloom", "-i", "pst-hash", *TINY, *TINY_SHAPE, "--scaling", "20,60")
    assert result.exit_code == 0, result.exception
    assert checksum_of_definition(60, 25) in result.stdout
    lines = result.stdout.splitlines()
    first_words = [line.split()[0] for line in lines if line.strip()]
    assert [word for word in first_words if word in registry.INDEXES] == [
        "scan", "pst-bloom", "pst-hash", "pst-bloom", "pst-hash",
    ]  # fmt: skip
    assert any(line.split() == ["index", "20", "60", "last", "/", "first"] for line in lines)
    assert "…" not in result.stdout, "no number is cut off"
    assert result.stderr == ""


def test_the_command_prints_rows_that_are_complete() -> None:
    result = bench("-i", "pst-hash", "--option", "pst-hash.access_predicates=3", *TINY, *TINY_SHAPE, "--seed", "4",
                   "--set", "cardinality=30", "--json")  # fmt: skip
    assert result.exit_code == 0, result.exception
    scan, row = json.loads(result.stdout)
    assert (scan["index"], row["index"]) == ("scan", "pst-hash")
    assert row["options"] == {"access_predicates": 3}
    assert row["parameters"]["cardinality"] == 30
    assert row["parameters"]["dimensions"] == 12
    assert (row["workload"], row["seed"], row["backend"], row["subscriptions"]) == ("be-gen", 4, "python", 60)
    assert row["python"].count(".") == 2
    assert row["checksum"] == scan["checksum"] != "0" * 16


def test_a_workload_that_is_not_the_papers_data_is_marked_in_its_results() -> None:
    result = bench("-i", "pst-bloom", "-w", "ads", *TINY, "--json")
    assert result.exit_code == 0, result.exception
    assert "not public" in result.stderr
    assert "not public" in json.loads(result.stdout)[0]["notice"]


def test_without_a_choice_all_indexes_that_accept_the_workload_are_compared() -> None:
    result = bench("-w", "abe-gen", *TINY, "--json")
    assert result.exit_code == 0, result.exception
    rows = [row["index"] for row in json.loads(result.stdout)]
    assert sorted(rows) == sorted(
        name for name, info in registry.INDEXES.items() if info.accepts is Accepts.ANY_EXPRESSION
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-i", "pst-bloom", "-w", "abe-gen"), "pst-bloom holds conjunctions only and cannot hold abe-gen's"),
        (("-i", "pst-blom"), "no index is called 'pst-blom'"),
        (("-i", "pst-bloom", "-w", "be-gne"), "no workload is called 'be-gne'"),
        (("-i", "pst-bloom", "-w", "ads", "--matching-probability", "0.1"), "ads has no parameter"),
        (("-i", "pst-bloom", "--dimensions", "40", "--set", "dimensions=40"), "dimensions is given twice"),
        (("-i", "pst-bloom", "--set", "dimensions"), "--set dimensions: write key=value"),
        (("-i", "pst-bloom", "--option", "pst-hash.most_keys=3"), "pst-hash is not compared"),
        (("-i", "pst-bloom", "--option", "most_keys=3"), "write index.key=value"),
        (("-i", "pst-hash", "--option", "pst-hash.keys=3"), "pst-hash has no option 'keys'"),
        (("-i", "pst-bloom", "--scaling", "10;20"), "--scaling 10;20: write whole numbers"),
    ],
)
def test_misuse_of_the_command_is_an_error_with_the_words_to_type(arguments: tuple[str, ...], message: str) -> None:
    result = bench(*arguments, *TINY)
    assert message in str(result.exception)
    assert getattr(result.exception, "exit_code", None) == 2


def test_a_wrong_index_gives_exit_code_1_and_one_line_on_stderr(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["mercast", "match", "bench", "-i", "forgetful", *TINY, *TINY_SHAPE])
    with pytest.raises(SystemExit) as stop:
        mercast.main()
    assert stop.value.code == 1
    output = capsys.readouterr()
    assert output.err.startswith("mercast: forgetful is wrong on publication ")
    assert output.err.count("\n") == 1
    assert output.out == ""


def test_options_of_indexes_are_read_by_their_form() -> None:
    result = bench("-i", "by-first-attribute", "--option", "by-first-attribute.is-slow=true", *TINY, "--json")
    assert result.exit_code == 0, result.exception
    assert json.loads(result.stdout)[1]["options"] == {"is_slow": True}


@pytest.mark.parametrize(
    ("index", "option", "value", "must_be"),
    [
        ("pst-hash", "access_predicates", "x", "a whole number"),
        ("pst-hash", "most_keys", 2.5, "a whole number"),
        ("be-tree", "alpha", "x", "a number"),
        ("be-tree", "lazy", 1, "true or false"),
        ("be-tree", "directory", 3, "a word"),
        ("auto", "arbitrary", True, "a word"),
    ],
)
def test_an_option_of_the_wrong_kind_is_named_with_its_value(
    index: str, option: str, value: object, must_be: str
) -> None:
    with pytest.raises(BenchPlanError, match=rf"--option {index}\.{option}={value}: it must be {must_be}"):
        IndexChoice(index, {option: value}).create("python")


@pytest.mark.parametrize(("index", "option"), [("op-index", "operator_indexes"), ("a-tree", "identities")])
def test_an_option_without_a_text_form_is_refused(index: str, option: str) -> None:
    with pytest.raises(BenchPlanError, match=rf"--option {index}\.{option}=3: it cannot be set here, only in Python"):
        IndexChoice(index, {option: 3}).create("python")
