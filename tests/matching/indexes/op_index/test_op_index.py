"""OpIndex as a whole: the example of the paper, learned pivots, signatures that only save work, counting,
subscriptions in both normal forms, and a custom index for an operator. `test_every_index` proves that
results equal those of the scan. Here segments are small, so that they split and move often.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matching
from matching import Expression, Operator, Predicate
from matching.errors import UnsupportedExpressionError
from matching.expressions.model import And, Not, Or, Xor
from matching.expressions.values import Value
from matching.indexes.op_index import OPERATOR_INDEXES, OpIndex
from matching.indexes.op_index.operator_index import ValueIndex, each_dimension
from matching.indexes.op_index.predicate_lists import Equal
from matching.indexes.scan import LinearScan
from tests.harness.expression_strategies import conjunctions, expressions, predicates, publications


def equal(attribute: str, value: Value) -> Predicate:
    return Predicate(attribute, Operator.EQ, (value,))


PAPER_SUBSCRIPTIONS: dict[int, Expression] = {
    1: equal("A", 2) & Predicate("B", Operator.IN, (3, 6, 9)),
    2: Predicate("A", Operator.LE, (8,)) & Predicate("C", Operator.GE, (2,)),
    3: And((equal("C", 6), Predicate("B", Operator.LE, (4,)), Predicate("E", Operator.BETWEEN, (3, 12)))),
    4: equal("A", 2),
    5: Predicate("D", Operator.GE, (12,)) & Predicate("E", Operator.LE, (9,)),
    6: And(
        (
            Predicate("B", Operator.IN, (3, 6)),
            Predicate("C", Operator.LE, (4,)),
            Predicate("D", Operator.GE, (10,)),
            Predicate("E", Operator.LE, (7,)),
        )
    ),
}
"""[OPI Table 1]"""


@pytest.fixture
def paper_index() -> OpIndex:
    """The paper counts the attributes of all six before it chooses pivots, so each is added again at the end."""
    index = OpIndex()
    for id, expression in PAPER_SUBSCRIPTIONS.items():
        index.add(id, expression)
    for id, expression in PAPER_SUBSCRIPTIONS.items():
        index.remove(id)
        index.add(id, expression)
    return index


def test_the_papers_subscriptions_get_the_papers_pivots(paper_index: OpIndex) -> None:
    """[OPI Example 2, Figure 4]"""
    assert {id: paper_index.pivots(id) for id in paper_index} == {
        1: [["A"]],
        2: [["A"]],
        3: [["C"]],
        4: [["A"]],
        5: [["D"]],
        6: [["D"]],
    }


def test_the_papers_index_has_three_pivots_with_three_operator_lists_each(paper_index: OpIndex) -> None:
    """[OPI Example 4, Figure 5], where the interval of the third subscription has its own operator."""
    details = paper_index.describe().details
    assert (details["pivots"], details["operator lists"], details["entries"]) == (3, 9, 14)


def test_the_papers_publication_touches_one_subscription_and_matches_none(paper_index: OpIndex) -> None:
    """[OPI Example 5]: the second and the fifth subscription are partly true, and are never candidates."""
    report = paper_index.match({"B": 6, "C": 3, "E": 9})
    assert (list(report.ids), report.candidates) == ([], 1)


@pytest.mark.parametrize(
    ("publication", "ids"),
    [
        ({"A": 2, "B": 6}, [1, 4]),
        ({"A": 2, "C": 2}, [2, 4]),
        ({"B": 4, "C": 6, "E": 12}, [3]),
        ({"D": 12, "E": 7, "B": 3, "C": 4}, [5, 6]),
        ({"D": 12}, []),
    ],
)
def test_the_papers_subscriptions_match(paper_index: OpIndex, publication: dict[str, Value], ids: list[int]) -> None:
    assert list(paper_index.match(publication).ids) == ids


def test_a_pivot_moves_to_the_dimension_that_publications_turn_out_to_carry_less() -> None:
    index = OpIndex()
    for id in range(20):
        index.add(id, And((equal("often", 1), equal("seldom", id))))
    for id in range(20, 40):
        index.add(id, equal("seldom", id))
    assert index.pivots(0) == [["often"]], "subscriptions mention it less"
    assert index.match({"often": 1}).candidates == 20
    for _ in range(100):
        index.match({"often": 1})
    assert [index.pivots(id) for id in range(20)] == [[["seldom"]]] * 20
    assert index.match({"often": 1}).candidates == 0
    assert list(index.match({"often": 1, "seldom": 7}).ids) == [7]


def test_the_pivots_of_a_cnf_subscription_move_together() -> None:
    index = OpIndex()
    one_of_two = Or((equal("a", 1), equal("b", 1)))
    other_two = Or((equal("c", 1), equal("d", 1)))
    more = And((Or((equal("a", 2), equal("c", 2), equal("e", 2))), Or((equal("b", 3), equal("d", 3), equal("f", 3)))))
    index.add(1, And((one_of_two, other_two, *more.children)))
    assert index.describe().details["CNF subscriptions"] == 1
    assert index.pivots(1) == [["a", "b"]]
    for _ in range(100):
        index.match({"a": 1})
    assert index.pivots(1) == [["c", "d"]]
    assert list(index.match({"a": 1, "c": 1, "e": 2, "f": 3}).ids) == [1]
    index.remove(1)
    assert index.describe().nodes == 0


def test_new_subscriptions_choose_by_the_attributes_of_earlier_publications() -> None:
    index = OpIndex()
    index.add(1, equal("often", 1))
    index.add(2, equal("seldom", 1))
    index.add(3, equal("seldom", 2))
    for _ in range(200):
        index.match({"often": 1})
    index.add(4, And((equal("often", 1), equal("seldom", 3))))
    assert index.pivots(4) == [["seldom"]]


def workload(seed: int, dimensions: int, count: int) -> tuple[list[Expression], list[dict[str, Value]]]:
    """Conjunctions of four predicates on some of many numeric dimensions, and publications of twelve pairs."""
    rng = random.Random(seed)
    one_value = (Operator.EQ, Operator.NE, Operator.LT, Operator.LE, Operator.GT, Operator.GE)
    subscriptions: list[Expression] = []
    for _ in range(count):
        parts: list[Expression] = []
        for dimension in rng.sample(range(dimensions), 4):
            operator = rng.choice((*one_value, Operator.BETWEEN, Operator.IN))
            operands = 1 if operator in one_value else 2
            values = tuple(sorted(rng.randrange(10) for _ in range(operands)))
            parts.append(Predicate(f"a{dimension}", operator, values))
        subscriptions.append(And(parts))
    published: list[dict[str, Value]] = [
        {f"a{each}": rng.randrange(10) for each in rng.sample(range(dimensions), 12)} for _ in range(60)
    ]
    return subscriptions, published


@pytest.mark.parametrize("dimensions", [15, 200])
def test_signatures_save_searches_and_change_no_answer(dimensions: int) -> None:
    subscriptions, published = workload(1, dimensions, 400)
    signed = OpIndex(segment_size=8)
    unsigned = OpIndex(segment_size=8, signature_bits=1)
    for id, expression in enumerate(subscriptions):
        signed.add(id, expression)
        unsigned.add(id, expression)
    for publication in published:
        assert signed.match(publication) == unsigned.match(publication)
    assert 0 < signed.segments_searched < unsigned.segments_searched


@pytest.mark.parametrize(("segment_size", "signature_bits"), [(2, 1), (3, 8), (64, 256), (10_000, 1)])
def test_insertion_removal_and_matching_interleave(segment_size: int, signature_bits: int) -> None:
    rng = random.Random(3)
    subscriptions, published = workload(2, 14, 300)
    index = OpIndex(segment_size=segment_size, signature_bits=signature_bits)
    scan = LinearScan()
    stored: list[int] = []
    matched = 0
    for id, expression in enumerate(subscriptions):
        index.add(id, expression)
        scan.add(id, expression)
        stored.append(id)
        if rng.random() < 0.4:
            removed = stored.pop(rng.randrange(len(stored)))
            index.remove(removed)
            scan.remove(removed)
        publication = rng.choice(published)
        report = index.match(publication)
        assert list(report.ids) == list(scan.match(publication).ids)
        matched += report.matched
    assert matched > 100
    for id in stored:
        index.remove(id)
    structure = index.describe()
    assert (structure.nodes, structure.levels) == (0, 0)
    assert not any(structure.details.values())


@settings(deadline=None)
@given(
    st.lists(st.one_of(conjunctions(0, 5), expressions(max_leaves=8)), max_size=12),
    st.lists(publications(), min_size=1, max_size=5),
)
def test_small_segments_and_narrow_signatures_answer_as_the_scan_does(
    subscriptions: list[Expression], published: list[dict[str, Value]]
) -> None:
    index = OpIndex(segment_size=2, signature_bits=3)
    scan = LinearScan()
    for id, expression in enumerate(subscriptions):
        index.add(id, expression)
        scan.add(id, expression)
    for _ in range(20):
        for publication in published:
            assert list(index.match(publication).ids) == list(scan.match(publication).ids)


@settings(deadline=None)
@given(
    st.lists(st.lists(predicates(), min_size=1, max_size=3), min_size=1, max_size=4),
    st.booleans(),
    st.lists(publications(), min_size=1, max_size=5),
)
def test_normal_forms_as_written_answer_as_the_scan_does(
    clauses: list[list[Predicate]], is_disjunctive: bool, published: list[dict[str, Value]]
) -> None:
    inner, outer = (And, Or) if is_disjunctive else (Or, And)
    expression = outer.of([inner.of(clause) for clause in clauses])
    index, scan = OpIndex(), LinearScan()
    index.add(1, expression)
    scan.add(1, expression)
    for publication in published:
        assert list(index.match(publication).ids) == list(scan.match(publication).ids)
    index.remove(1)
    assert index.describe().nodes == 0


def test_a_cnf_subscription_is_found_by_any_pivot_and_reported_once() -> None:
    index = OpIndex()
    clauses = [Or([equal(f"{letter}{place}", 1) for letter in "abcd"]) for place in range(5)]
    index.add(1, And(clauses))
    assert index.describe().details["CNF subscriptions"] == 1
    assert index.pivots(1) == [["a0", "b0", "c0", "d0"]]
    for chosen in ("aaaaa", "bcdab", "dddda"):
        publication = {f"{letter}{place}": 1 for place, letter in enumerate(chosen)}
        assert list(index.match(publication).ids) == [1]
        assert list(index.match({**publication, "a0": 1, "b0": 1, "c0": 1}).ids) == [1]
        assert list(index.match({**publication, f"{chosen[2]}2": 2}).ids) == []


def test_a_dnf_subscription_that_several_conjunctions_satisfy_is_one_candidate() -> None:
    index = OpIndex()
    index.add(1, Or((And((equal("a", 1), equal("b", 1))), And((equal("a", 1), equal("c", 1))))))
    report = index.match({"a": 1, "b": 1, "c": 1})
    assert (list(report.ids), report.candidates) == ([1], 1)


def test_predicates_on_one_attribute_count_one_by_one() -> None:
    index = OpIndex()
    index.add(1, And((Predicate("a", Operator.IN, (1, 2)), Predicate("a", Operator.IN, (1, 1.0, 3)), equal("a", 1))))
    index.add(2, And((equal("a", 1), equal("b", 1), equal("a", 1))))
    index.add(3, And((Predicate("a", Operator.GT, (0,)), Predicate("a", Operator.LT, (5,)), equal("b", 1))))
    assert list(index.match({"a": 1}).ids) == [1]
    assert list(index.match({"a": 2, "b": 1}).ids) == [3]
    assert list(index.match({"a": 1, "b": 1}).ids) == [1, 2, 3]


def test_expressions_that_the_empty_publication_satisfies_are_always_evaluated() -> None:
    absent = Predicate("a", Operator.NOT_EXISTS)
    index = OpIndex()
    index.add(1, absent)
    index.add(2, matching.TRUE)
    index.add(3, And((equal("b", 1), absent)))
    index.add(4, Or((equal("b", 1), absent)))
    index.add(5, matching.FALSE)
    assert list(index.match({}).ids) == [1, 2, 4]
    assert list(index.match({"b": 1}).ids) == [1, 2, 3, 4]
    assert list(index.match({"a": 1, "b": 1}).ids) == [2, 4]
    assert index.describe().details["without pivot"] == 3


def test_absence_may_satisfy_a_disjunction_of_a_cnf_subscription() -> None:
    demanding = [Or([equal(f"{letter}{place}", 1) for letter in "abc"]) for place in range(4)]
    index = OpIndex()
    index.add(1, And((Or((Predicate("x", Operator.NOT_EXISTS), equal("y", 1), equal("z", 1))), *demanding)))
    assert index.describe().details["CNF subscriptions"] == 1
    enough: dict[str, Value] = {f"a{place}": 1 for place in range(4)}
    assert index.match(enough).evaluated == 1
    assert list(index.match(enough).ids) == [1]
    assert list(index.match({**enough, "x": 1}).ids) == []
    assert list(index.match({**enough, "x": 1, "z": 1}).ids) == [1]


def test_an_expression_is_refused_when_both_normal_forms_are_too_large() -> None:
    parity: Expression = equal("p0", 1)
    for place in range(1, 12):
        parity = Xor(parity, equal(f"p{place}", 1))
    index = OpIndex()
    with pytest.raises(UnsupportedExpressionError, match=r"op-index holds conjunctions, DNF and CNF only: .* 1,024"):
        index.add(1, parity)
    assert index.describe().nodes == 0
    assert len(index) == 0
    OpIndex(clause_limit=4096).add(1, parity)


def test_a_long_chain_of_exclusive_or_is_refused_without_building_its_forms() -> None:
    parity: Expression = equal("p0", 1)
    for place in range(1, 500):
        parity = Xor(parity, equal(f"p{place}", 1))
    with pytest.raises(UnsupportedExpressionError, match="over 10"):
        OpIndex().add(1, parity)


def test_each_normal_form_is_used_where_the_other_is_too_large() -> None:
    wide_cnf = And([Or((equal(f"a{place}", 1), equal(f"b{place}", 1))) for place in range(30)])
    wide_dnf = Not(wide_cnf)
    index = OpIndex()
    index.add(1, wide_cnf)
    index.add(2, wide_dnf)
    assert index.describe().details["CNF subscriptions"] == 1
    publication: dict[str, Value] = {f"a{place}": 1 for place in range(30)}
    assert list(index.match(publication).ids) == [1]
    assert list(index.match({**publication, "a7": 2, "b7": 2}).ids) == [2]


class RecordingSubstrings(ValueIndex[Any]):
    """An index for CONTAINS that tests every substring, and records the values that it was searched for."""

    searched: list[str]

    def __init__(self) -> None:
        self._entries: list[tuple[Predicate, Any]] = []

    def insert(self, predicate: Predicate, target: Any) -> None:
        self._entries.append((predicate, target))

    def remove(self, predicate: Predicate, target: Any) -> None:
        self._entries.remove((predicate, target))

    def match(self, value: str) -> Iterable[Any]:
        self.searched.append(value)
        return [target for predicate, target in self._entries if predicate.is_true_for(value)]

    @property
    def nodes(self) -> int:
        return len(self._entries)


def test_an_operator_can_have_a_custom_index() -> None:
    RecordingSubstrings.searched = []
    table = {**OPERATOR_INDEXES, Operator.CONTAINS: each_dimension(RecordingSubstrings)}
    index = OpIndex(operator_indexes=table)
    index.add(1, And((Predicate("s", Operator.CONTAINS, ("b",)), equal("a", 1))))
    assert list(index.match({"s": "abc", "a": 1}).ids) == [1]
    assert list(index.match({"s": "xyz", "a": 1}).ids) == []
    assert RecordingSubstrings.searched == ["abc", "xyz"]
    index.remove(1)
    assert index.describe().nodes == 0


def test_an_operator_that_is_usually_rewritten_can_have_its_own_list() -> None:
    index = OpIndex(operator_indexes={**OPERATOR_INDEXES, Operator.IN: Equal})
    index.add(1, And((equal("a", 1), Predicate("a", Operator.IN, (1, 2)))))
    assert index.describe().details["operator lists"] == 2
    assert list(index.match({"a": 1}).ids) == [1]
    assert list(index.match({"a": 2}).ids) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"segment_size": 1}, "segment_size is 1; it must be at least 2"),
        ({"signature_bits": 0}, "signature_bits is 0; it must be at least 1"),
        ({"clause_limit": 0}, "clause_limit is 0; it must be at least 1"),
    ],
)
def test_an_impossible_option_is_refused_by_name(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        OpIndex(**options)


def test_dimensions_are_forgotten_with_the_last_subscription_that_mentions_them() -> None:
    index = OpIndex()
    index.add(1, And((equal("a", 1), equal("b", 1), Predicate("a", Operator.EXISTS))))
    index.add(2, And((equal("b", 1), equal("b", "x"))))
    for number in range(50):
        index.match({"a": number, "b": "x", f"c{number}": 1})
    assert index.describe().details["dimensions"] == 4
    index.remove(1)
    assert index.describe().details["dimensions"] == 2


STRUCTURE_AND_WORK = """
import matching
from tests.matching.indexes.op_index.test_op_index import workload

index = matching.create("op-index", segment_size=4, signature_bits=16)
subscriptions, published = workload(5, 20, 150)
for id, expression in enumerate(subscriptions):
    index.add(id, expression)
for number in range(40):
    index.add(1000 + number, f"s = 'text{number}' AND t IN ('text{number}', 'y', 'z')")
for number, publication in enumerate(published):
    report = index.match({**publication, "s": f"text{number}", "t": "y"})
    print(report.ids, report.candidates, report.evaluated)
structure = index.describe()
print(structure.nodes, structure.details, index.segments_searched, [index.pivots(id) for id in index])
"""


def test_structure_and_work_do_not_depend_on_the_hash_seed() -> None:
    outputs = set()
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        root = Path(matching.__file__).parent.parent
        run = subprocess.run(
            [sys.executable, "-c", STRUCTURE_AND_WORK], cwd=root, env=environment, capture_output=True, check=True
        )
        outputs.add(run.stdout)
    assert len(outputs) == 1
    assert outputs.pop().count(b"\n") == 61
