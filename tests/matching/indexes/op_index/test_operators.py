"""The index of each operator of OpIndex: it finds the targets of true predicates after any additions and removals."""

from __future__ import annotations

from collections import Counter
from typing import TypeAlias

import pytest
import re2
from hypothesis import given, settings
from hypothesis import strategies as st

from matching.expressions.model import Operator, Predicate
from matching.expressions.values import CLASS_BY_TYPE, Dimension, TypeClass, Value
from matching.indexes.op_index.dimensions import Layout
from matching.indexes.op_index.operator_index import OperatorIndex, Target
from matching.indexes.op_index.operators import OPERATOR_INDEXES
from matching.indexes.op_index.patterns import SET_SIZE, Pattern, Patterns, PatternSet
from matching.indexes.op_index.predicate_lists import Equal, LessOrEqual, PredicateList
from matching.indexes.op_index.substrings import Substrings
from matching.indexes.op_index.tries import PrefixTrie, SuffixTrie
from tests.harness.expression_strategies import predicates, published_values, strings

DIMENSIONS: dict[Dimension, int] = {}
for _attribute in ("a", "s"):
    for _class in TypeClass:
        DIMENSIONS[_attribute, _class] = len(DIMENSIONS)

TINY = Layout(segment_size=3, signature_bits=5)


def brute_force(stored: dict[tuple[int, Predicate], Target], dimension: Dimension, value: Value) -> Counter[Target]:
    return Counter(
        target
        for (_, predicate), target in stored.items()
        if predicate.dimension == dimension and predicate.is_true_for(value)
    )


def dimension_of(attribute: str, value: Value, operator: Operator) -> Dimension:
    return attribute, TypeClass.ANY if operator is Operator.EXISTS else CLASS_BY_TYPE[type(value)]


Step: TypeAlias = tuple[int, int, str, Value]
"""The predicate and the target to insert, or to remove if it is stored, and the value to match then."""


def scripts(operator: Operator) -> st.SearchStrategy[tuple[list[Predicate], list[Step]]]:
    accepted = (Operator.EQ, Operator.IN) if operator is Operator.EQ else (operator,)
    pool = st.lists(predicates(("a", "s"), accepted), min_size=1, max_size=8)
    values = st.one_of(published_values(), strings())
    step = st.tuples(st.integers(0, 7), st.integers(0, 3), st.sampled_from("as"), values)
    return st.tuples(pool, st.lists(step, min_size=1, max_size=30))


def follow(operator: Operator, pool: list[Predicate], steps: list[Step]) -> None:
    index = OPERATOR_INDEXES[operator](TINY)
    targets = [Target(number) for number in range(4)]
    stored: dict[tuple[int, Predicate], Target] = {}
    for place, number, attribute, value in steps:
        predicate = pool[place % len(pool)]
        if (number, predicate) in stored:
            index.remove(DIMENSIONS[predicate.dimension], predicate, stored.pop((number, predicate)))
        else:
            index.insert(DIMENSIONS[predicate.dimension], predicate, targets[number])
            stored[number, predicate] = targets[number]
        dimension = dimension_of(attribute, value, operator)
        assert Counter(index.match(DIMENSIONS[dimension], value)) == brute_force(stored, dimension, value)
    for (_, predicate), target in stored.items():
        assert index.nodes > 0
        index.remove(DIMENSIONS[predicate.dimension], predicate, target)
    assert index.nodes == 0


@pytest.mark.parametrize("operator", OPERATOR_INDEXES)
@settings(deadline=None, max_examples=15)
@given(data=st.data())
def test_an_operators_index_finds_the_targets_of_the_true_predicates(operator: Operator, data: st.DataObject) -> None:
    follow(operator, *data.draw(scripts(operator)))


@pytest.mark.slow
@pytest.mark.parametrize("operator", OPERATOR_INDEXES)
@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_an_operators_index_finds_them_in_many_runs(operator: Operator, data: st.DataObject) -> None:
    follow(operator, *data.draw(scripts(operator)))


def filled(index: OperatorIndex[Target], operator: Operator, operands: range) -> OperatorIndex[Target]:
    for number in operands:
        index.insert(0, Predicate("a", operator, (number,)), Target(number))
    return index


@pytest.mark.parametrize("order", [range(200), range(199, -1, -1)])
def test_segments_stay_sorted_and_within_their_size_while_they_split(order: range) -> None:
    lists = LessOrEqual[Target](Layout(segment_size=8, signature_bits=64))
    filled(lists, Operator.LE, order)
    segments = lists.segments()
    assert all(1 <= len(segment) <= 8 for segment in segments)
    assert [key for segment in segments for key in segment] == [(0, number, number) for number in range(200)]
    assert [target.number for target in lists.match(0, 197.5)] == [198, 199]


def test_segments_that_grow_thin_merge() -> None:
    lists = LessOrEqual[Target](Layout(segment_size=8, signature_bits=64))
    targets = [Target(number) for number in range(200)]
    for target in targets:
        lists.insert(0, Predicate("a", Operator.LE, (target.number,)), target)
    full = lists.nodes
    for target in targets:
        if target.number % 8:
            lists.remove(0, Predicate("a", Operator.LE, (target.number,)), target)
    assert lists.nodes < full / 2
    assert len(lists.match(0, -1)) == 25


def test_merged_segments_are_still_found_by_their_signature() -> None:
    lists = Equal[Target](Layout(segment_size=4, signature_bits=1 << 16))
    stored = [(Predicate("a", Operator.EQ, (number,)), Target(number)) for number in range(20)]
    for predicate, target in stored:
        lists.insert(0, predicate, target)
    split = lists.nodes
    for predicate, target in stored:
        if target.number % 5:
            lists.remove(0, predicate, target)
    assert lists.nodes < split
    assert [lists.match(0, number) for number in range(0, 20, 5)] == [[stored[number][1]] for number in range(0, 20, 5)]


def test_a_signature_loses_removed_values() -> None:
    lists: PredicateList[Target] = Equal(Layout(segment_size=8, signature_bits=1 << 16))
    target = Target(0)
    predicate = Predicate("a", Operator.EQ, (5,))
    lists.insert(0, predicate, target)
    untouched = lists._signature
    lists.insert(0, Predicate("a", Operator.EQ, (9,)), target)
    assert lists._signature != untouched
    lists.remove(0, Predicate("a", Operator.EQ, (9,)), target)
    assert lists._signature == untouched


def test_equal_numbers_have_equal_bits() -> None:
    layout = Layout(segment_size=8, signature_bits=64)
    assert layout.value_bit(3, 2) == layout.value_bit(3, 2.0)
    assert layout.value_bit(3, 2**53) == layout.value_bit(3, float(2**53))


def test_a_long_prefix_is_one_node_until_another_branches_off() -> None:
    trie = PrefixTrie[Target]()
    long = Predicate("s", Operator.STARTS_WITH, ("a" * 5_000,))
    branch = Predicate("s", Operator.STARTS_WITH, ("a" * 4_000 + "b",))
    trie.insert(long, Target(1))
    assert trie.nodes == 1
    trie.insert(branch, Target(2))
    assert trie.nodes == 3
    assert [target.number for target in trie.match("a" * 4_000 + "bc")] == [2]
    trie.remove(branch, Target(2))
    assert trie.nodes == 1
    assert [target.number for target in trie.match("a" * 6_000)] == [1]


def test_a_suffix_is_read_backwards_by_characters() -> None:
    trie = SuffixTrie[Target]()
    trie.insert(Predicate("s", Operator.ENDS_WITH, ("é😀",)), Target(1))
    assert [target.number for target in trie.match("aé😀")] == [1]
    assert list(trie.match("😀é")) == []


def test_substrings_wait_under_different_trigrams_when_they_can() -> None:
    substrings = Substrings[Target]()
    for number, text in enumerate(("abcd", "abce", "abcf")):
        substrings.insert(Predicate("s", Operator.CONTAINS, (text,)), Target(number))
    assert substrings.nodes == 3
    assert [target.number for target in substrings.match("xabcex")] == [1]


def numbered_patterns(count: int) -> list[Predicate]:
    return [Predicate("s", Operator.MATCHES, (f"^a*x{number}$",)) for number in range(count)]


def test_many_patterns_become_sets_and_dissolve_again() -> None:
    patterns = Patterns[Target]()
    stored = numbered_patterns(3 * SET_SIZE + 5)
    targets = [Target(number) for number in range(len(stored))]
    for predicate, target in zip(stored, targets, strict=True):
        patterns.insert(predicate, target)
        assert list(patterns.match(f"aax{target.number}")) == [target]
    assert patterns.nodes == 3 + 5
    while stored:
        patterns.remove(stored.pop(), targets.pop())
        last = len(targets) - 1
        assert list(patterns.match(f"x{last}")) == targets[-1:]
        assert list(patterns.match(f"x{last + 1}")) == []
    assert patterns.nodes == 0


def test_a_pattern_that_left_its_set_can_be_added_again() -> None:
    patterns = Patterns[Target]()
    stored = numbered_patterns(SET_SIZE)
    for number, predicate in enumerate(stored):
        patterns.insert(predicate, Target(number))
    patterns.remove(stored[3], Target(3))
    assert list(patterns.match("x3")) == []
    again = Target(99)
    patterns.insert(stored[3], again)
    assert list(patterns.match("x3")) == [again]


def test_patterns_that_cannot_be_one_set_are_tried_one_by_one() -> None:
    patterns = Patterns[Target]()
    too_much_for_a_set = Predicate("s", Operator.MATCHES, (r"\pL{150}",))
    for number, predicate in enumerate([too_much_for_a_set, *numbered_patterns(SET_SIZE - 1)]):
        patterns.insert(predicate, Target(number))
    assert patterns.nodes == 1
    assert [target.number for target in patterns.match("é" * 150)] == [0]
    assert [target.number for target in patterns.match("aax7")] == [8]


def test_a_set_that_reports_nothing_is_not_believed() -> None:
    """RE2 reports no error if the automaton of a set runs out of memory. This set imitates that: it matches nothing."""
    patterns = [Pattern[Target](text, re2.compile(text)) for text in ("a", "b")]
    pattern_set = PatternSet(patterns)
    assert pattern_set.matching("a") == patterns[:1]
    silent = re2.Set.SearchSet()
    silent.Add("never")
    silent.Compile()
    pattern_set._compiled = silent
    assert pattern_set.matching("a") == patterns[:1]
