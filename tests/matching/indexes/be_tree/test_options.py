"""Options for evaluation, filter and directory change the work, as the counters show, but never the results."""

from __future__ import annotations

from functools import cache

import pytest

import matching
from experiments.workloads.be_gen import BeGen, BeGenParameters
from experiments.workloads.derivation import OperatorClass
from matching.indexes.be_tree import BETree, Work
from matching.indexes.be_tree.bloom import sdbm_hash
from matching.indexes.scan import LinearScan
from matching.matcher import MatchReport

WORKLOAD = BeGen(
    BeGenParameters(
        dimensions=20, cardinality=6, event_size=10, operators=OperatorClass.HIGH, matching_probability=0.01
    ),
    subscriptions=1500,
    publications=60,
    seed=4,
)
"""There are few values, so that subscriptions have conditions in common."""


@cache
def run(**options: object) -> tuple[list[MatchReport], Work]:
    index = matching.create("be-tree", None, recycling=False, **options)
    assert isinstance(index, BETree)
    for id, subscription in enumerate(WORKLOAD.subscriptions()):
        index.add(id, subscription)
    return index.match_many(WORKLOAD.publications()), index.work


@cache
def answers_of_the_scan() -> list[list[int]]:
    scan = LinearScan()
    for id, subscription in enumerate(WORKLOAD.subscriptions()):
        scan.add(id, subscription)
    return [list(report.ids) for report in scan.match_many(WORKLOAD.publications())]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"lazy": True},
        {"bitmap": True},
        {"bloom_bits": 32},
        {"lazy": True, "bloom_bits": 16},
        {"bitmap": True, "bloom_bits": 64},
        {"directory": "generic"},
        {"directory": "specialised"},
        {"equality_first": False},
        {"selectivity": True, "tune_beta": True, "alpha": 0.9, "exploration": 0.2, "reinsertion": 0.05},
    ],
    ids=lambda options: ", ".join(options) or "plain",
)
def test_options_do_not_change_the_answers(options: dict[str, object]) -> None:
    reports, work = run(**options)
    assert [list(report.ids) for report in reports] == answers_of_the_scan()
    assert work.publications == len(reports)
    assert work.candidates == sum(report.candidates for report in reports)
    assert sum(map(len, answers_of_the_scan())) > 500, "a workload that matches"


def test_lazy_evaluation_evaluates_a_distinct_condition_once() -> None:
    (_, plain), (reports, lazy) = run(), run(lazy=True)
    assert lazy.candidates == plain.candidates
    assert lazy.tests < 0.9 * plain.tests
    assert sum(report.evaluated for report in reports) < lazy.candidates


def test_lazy_evaluation_counts_distinct_conditions_by_example() -> None:
    plain, lazy = BETree(max_capacity=30), BETree(max_capacity=30, lazy=True)
    for index in (plain, lazy):
        for id in range(30):
            index.add(id, f"a > 1 AND b > {id % 3}")
        assert index.match({"a": 2, "b": 9}).matched == 30
    assert plain.work.tests == 60
    assert lazy.work.tests == 4


def test_bitmap_evaluation_evaluates_nothing() -> None:
    (_, plain), (reports, bitmap) = run(), run(bitmap=True)
    assert bitmap.candidates == plain.candidates
    assert bitmap.tests == 0 < plain.tests
    assert all(report.evaluated == 0 for report in reports)


def test_a_bitmap_leaves_patterns_to_evaluate() -> None:
    index = BETree(bitmap=True)
    index.add(1, "s STARTS WITH 'a' AND s CONTAINS 'b'")
    index.add(2, "s STARTS WITH 'b' AND s CONTAINS 'b'")
    report = index.match({"s": "ab"})
    assert (list(report.ids), report.candidates, report.evaluated) == ([1], 2, 1)


def test_the_attribute_filter_spares_candidates_the_evaluation() -> None:
    plain, filtered = run()[0], run(bloom_bits=32)[0]
    assert [report.candidates for report in plain] == [report.candidates for report in filtered]
    assert all(report.evaluated == report.candidates for report in plain)
    assert sum(report.evaluated for report in filtered) < 0.7 * sum(report.candidates for report in filtered)


def test_a_wider_filter_spares_more() -> None:
    narrow, wide = run(bloom_bits=4)[0], run(bloom_bits=64)[0]
    assert sum(report.evaluated for report in wide) < sum(report.evaluated for report in narrow)


def test_equality_first_leads_to_fewer_candidates() -> None:
    assert run()[1].candidates < run(equality_first=False)[1].candidates


def test_halved_buckets_separate_ranges_and_a_single_one_does_not() -> None:
    candidates = {}
    for directory in ("generic", "specialised", "hybrid"):
        index = BETree(directory=directory)
        for id in range(100):
            index.add(id, f"x BETWEEN {id} AND {id + 3}")
        candidates[directory] = index.match({"x": 50}).candidates
    assert candidates["specialised"] == 100
    assert candidates["generic"] == candidates["hybrid"] < 40


def test_a_hash_table_separates_long_strings_that_share_a_key() -> None:
    candidates = {}
    for directory in ("generic", "specialised", "hybrid"):
        index = BETree(directory=directory)
        for id in range(100):
            index.add(id, f"topic = 'sensors/building/{id}'")
        candidates[directory] = index.match({"topic": "sensors/building/50"}).candidates
    assert candidates == {"generic": 100, "specialised": 1, "hybrid": 1}


def test_the_filter_hashes_as_the_sdbm_library_does() -> None:
    assert sdbm_hash("") == 0
    assert sdbm_hash("a") == 97
    assert sdbm_hash("ab") == (97 * 65599 + 98) % 2**32
