"""Each optimisation of the A-Tree changes the work but not the results. Also tests the effect of insertion order."""

from __future__ import annotations

import itertools
import random
from typing import Unpack

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, rule, run_state_machine_as_test

from matching import And, Expression, Not, Operator, Or, Predicate, Xnor, Xor
from matching.expressions.values import Value
from matching.indexes.a_tree import ATree, Identities
from matching.indexes.a_tree.organisation import greedy_cover
from matching.indexes.scan import LinearScan
from tests.harness.a_tree_structure import Options, check_structure, cost, edges, is_one, meaning
from tests.harness.expression_strategies import conjunctions, expressions, publications


def few_predicates() -> st.SearchStrategy[Expression]:
    """Expressions over so few predicates that they contain each other."""
    operands = st.lists(
        st.sampled_from("abcdef").map(is_one), min_size=2, max_size=6, unique_by=lambda one: one.attribute
    )
    joined = st.one_of(operands.map(And), operands.map(Or))
    pairs = st.tuples(joined, joined)
    return st.one_of(
        joined,
        joined.map(Not),
        st.tuples(st.sampled_from((And, Or)), pairs).map(lambda drawn: drawn[0](drawn[1])),
        st.tuples(st.sampled_from((Xor, Xnor)), pairs).map(lambda drawn: drawn[0](*drawn[1])),
    )


def bits() -> st.SearchStrategy[dict[str, Value]]:
    """Publications for `few_predicates`, with some attributes missing."""
    return st.dictionaries(st.sampled_from("abcdef"), st.sampled_from((0, 1, 1)))


class OptionsAgainstScan(RuleBasedStateMachine):
    """Any options and any ID space give the results of the scan, and a consistent structure."""

    ids = Bundle("ids")

    @initialize(on=st.tuples(*[st.booleans()] * 4), modulus=st.sampled_from((1, 5, 2**61 - 1)))
    def choose(self, on: tuple[bool, ...], modulus: int) -> None:
        reorganisation, self_adjustment, zero_suppression, propagation_on_demand = on
        self.index = ATree(
            reorganisation=reorganisation,
            self_adjustment=self_adjustment,
            zero_suppression=zero_suppression,
            propagation_on_demand=propagation_on_demand,
            identities=Identities(modulus),
        )
        self.scan = LinearScan()
        self.next_id = 0

    @rule(target=ids, expression=st.one_of(conjunctions(2, 5, ("a", "b")), expressions(), few_predicates()))
    def add(self, expression: Expression) -> int:
        self.next_id += 1
        self.index.add(self.next_id, expression)
        self.scan.add(self.next_id, expression)
        check_structure(self.index)
        return self.next_id

    @rule(id=consumes(ids))
    def remove(self, id: int) -> None:
        self.index.remove(id)
        self.scan.remove(id)
        check_structure(self.index)

    @rule(publication=st.one_of(publications(), bits()))
    def match(self, publication: dict[str, Value]) -> None:
        report = self.index.match(publication)
        assert list(report.ids) == list(self.scan.match(publication).ids)
        assert report.matched <= report.candidates <= report.stored

    def teardown(self) -> None:
        if not hasattr(self, "index"):
            return
        for id in list(self.index):
            self.index.remove(id)
        assert not any(self.index.describe().details.values())


def test_every_choice_of_options_answers_as_the_scan_does() -> None:
    run_state_machine_as_test(
        OptionsAgainstScan, settings=settings(max_examples=40, stateful_step_count=30, deadline=None)
    )


@pytest.mark.slow
def test_every_choice_of_options_answers_as_the_scan_does_in_long_runs() -> None:
    run_state_machine_as_test(
        OptionsAgainstScan, settings=settings(max_examples=60, stateful_step_count=50, deadline=None)
    )


def random_workload(seed: int) -> tuple[list[Expression], list[dict[str, Value]]]:
    """Expressions with every connective, over so many dimensions that publications lack most of them."""
    rng = random.Random(seed)

    def expression(level: int) -> Expression:
        if level == 0:
            operator = rng.choice((Operator.EQ, Operator.EQ, Operator.LT, Operator.GE, Operator.NE))
            return Predicate(f"a{rng.randrange(40)}", operator, (rng.randrange(10),))
        parts = [expression(level - 1) for _ in range(rng.randrange(2, 5))]
        connective = rng.choices((And, Or, Not, Xor, Xnor), (40, 40, 10, 5, 5))[0]
        if connective is Not:
            return Not(parts[0])
        return connective(parts[0], parts[1]) if connective in (Xor, Xnor) else connective(parts)  # type: ignore[call-arg,arg-type]

    made: list[dict[str, Value]] = []
    for _ in range(40):
        made.append({f"a{number}": rng.randrange(10) for number in rng.sample(range(40), 10)})
    return [expression(2) for _ in range(300)], made


def work(
    expressions: list[Expression], publications: list[dict[str, Value]], **off: Unpack[Options]
) -> tuple[int, int]:
    index = ATree(**off)
    for id, expression in enumerate(expressions):
        index.add(id, expression)
    reports = [index.match(publication) for publication in publications]
    return sum(report.evaluated for report in reports), sum(report.candidates for report in reports)


def test_zero_suppression_and_propagation_on_demand_each_save_work() -> None:
    """[ATREE 6.3]."""
    workload = random_workload(3)
    both = work(*workload)
    without_demand = work(*workload, propagation_on_demand=False)
    without_suppression = work(*workload, zero_suppression=False)
    neither = work(*workload, zero_suppression=False, propagation_on_demand=False)
    for less, more in [(both, without_demand), (both, without_suppression)]:
        assert 2 * less[0] < more[0]
        assert less[1] < more[1]
    for less, more in [(without_demand, neither), (without_suppression, neither)]:
        assert less[0] < more[0]
        assert less[1] < more[1]


def test_an_and_that_nothing_pulls_is_not_evaluated_unless_its_access_child_is_true() -> None:
    index = ATree()
    index.add(1, And((is_one("a"), Predicate("b", Operator.NE, (1,)), Predicate("s", Operator.MATCHES, ("x",)))))
    report = index.match({"b": 2, "s": "x"})
    assert (list(report.ids), report.candidates, report.evaluated) == ([], 0, 0)
    report = index.match({"a": 1, "b": 2, "s": "x"})
    assert (list(report.ids), report.candidates, report.evaluated) == ([1], 1, 4)


@pytest.mark.parametrize(("zero_suppression", "pulled"), [(True, 4), (False, 5)])
def test_a_pushed_result_is_not_evaluated_again_when_it_is_pulled(zero_suppression: bool, pulled: int) -> None:
    """`b != 1` and `c != 1` are watched because they are subscriptions. They pushed no result, so they are not true."""
    not_b, not_c = (Predicate(name, Operator.NE, (1,)) for name in "bc")
    index = ATree(zero_suppression=zero_suppression)
    for id, expression in enumerate(
        (not_b, not_c, And((is_one("a"), not_b)), And((is_one("d"), Or((not_c, is_one("e"))))))
    ):
        index.add(id, expression)
    assert index.match({"a": 1}).evaluated == 2, "a and its AND"
    # With three values, a pushed result is complete only if a listener needs falsity, so c is evaluated again.
    assert index.match({"d": 1}).evaluated == pulled, "d, its AND, the OR, e"


def test_reorganisation_and_self_adjustment_each_save_edges() -> None:
    expressions, _ = random_workload(5)
    saved = {}
    for reorganisation, self_adjustment in itertools.product((False, True), repeat=2):
        index = ATree(reorganisation=reorganisation, self_adjustment=self_adjustment)
        # Subexpressions are also subscriptions. Some are added before and some after the expressions that contain them.
        for id, expression in enumerate(expressions):
            index.add(2 * id, And((is_one("x"), is_one("y"), expression)))
            if id % 10 == 0:
                index.add(2 * id + 1, And((is_one("x"), is_one("y"), is_one(f"z{id}"))))
            if id == 150:
                index.add(1001, And((is_one("x"), is_one("y"))))
        saved[reorganisation, self_adjustment] = cost(index)
    assert saved[False, False] > saved[True, False] > saved[True, True]
    assert saved[False, False] > saved[False, True] > saved[True, True]


class TestTheOrderOfArrival:
    """With reorganisation and self-adjustment, the structure depends only on the stored expressions."""

    def test_every_order_of_overlapping_sets_gives_one_structure(self) -> None:
        """The new nodes ace and bdf share no parent with the children of abcdef. It is still rebuilt from them."""
        sets = ("abcdef", "ab", "cd", "ef", "ace", "bdf")
        structures = set()
        for order in itertools.permutations(sets):
            index = ATree()
            for id, letters in enumerate(order):
                index.add(id, And([is_one(letter) for letter in letters]))
            structures.add(frozenset(edges(index).items()))
        assert len(structures) == 1
        index = ATree()
        index.add(0, And([is_one(letter) for letter in "abcdef"]))
        for id, letters in enumerate(sets[1:], start=1):
            index.add(id, And([is_one(letter) for letter in letters]))
        assert {len(child.operands) for child in index.root(0).children} == {3}

    def test_without_self_adjustment_the_order_decides_the_edges_and_not_the_nodes(self) -> None:
        def built(order: tuple[str, ...]) -> ATree:
            index = ATree(self_adjustment=False)
            for id, letters in enumerate(order):
                index.add(id, And([is_one(letter) for letter in letters]))
            return index

        large_last, large_first = built(("ab", "cd", "abcd")), built(("abcd", "ab", "cd"))
        assert cost(large_last) < cost(large_first)
        assert edges(large_last).keys() == edges(large_first).keys()

    @given(st.data())
    @settings(max_examples=40, deadline=None)
    def test_any_history_with_the_same_outcome_gives_one_structure(self, data: st.DataObject) -> None:
        staying = data.draw(st.lists(st.one_of(few_predicates(), expressions(6)), min_size=1, max_size=8))
        passing = data.draw(st.lists(few_predicates(), max_size=5))
        straight = ATree()
        for id, expression in enumerate(staying):
            straight.add(id, expression)
        detour = ATree()
        arrivals = data.draw(st.permutations([*enumerate(staying), *enumerate(passing, start=100)]))
        for id, expression in arrivals:
            detour.add(id, expression)
        for id in data.draw(st.permutations([id for id, _ in arrivals if id >= 100])):
            detour.remove(id)
        assert edges(straight) == edges(detour)
        assert cost(straight) == cost(detour)

    @given(st.lists(few_predicates(), min_size=1, max_size=10))
    @settings(max_examples=60, deadline=None)
    def test_every_node_is_built_from_its_greedy_cover(self, expressions: list[Expression]) -> None:
        index = ATree()
        for id, expression in enumerate(expressions):
            index.add(id, expression)
        nodes = list(index.nodes())
        for node in nodes:
            parts = [part for part in nodes if part.kind is node.kind and set(part.operands) < set(node.operands)]
            if node.predicate is None:
                assert set(node.children) == set(greedy_cover(node, parts)), meaning(node)
