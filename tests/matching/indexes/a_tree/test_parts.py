"""The search structures of the A-Tree find the same results as an exhaustive search, and store each item once."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matching import Operator, Predicate
from matching.expressions.intervals import ValueSet, satisfying
from matching.expressions.values import TypeClass, Value
from matching.indexes.a_tree import ATree
from matching.indexes.a_tree.identities import Identities
from matching.indexes.a_tree.node import Kind, Node
from matching.indexes.a_tree.predicates import DecidedPredicates, SatisfiedPredicates
from matching.indexes.a_tree.ranges import Ranges
from matching.indexes.a_tree.subsets import SubsetIndex
from tests.harness.expression_strategies import INFINITIES, predicates, publications, values_of


def leaf(predicate: Predicate, serial: int) -> Node:
    return Node(Kind.PREDICATE, predicate, (), Identities().of_predicate(predicate), serial)


@st.composite
def ranges_of(draw: st.DrawFn, type_class: TypeClass) -> list[ValueSet]:
    one = values_of(type_class)
    operators = (Operator.LT, Operator.GE, Operator.BETWEEN, Operator.NOT_BETWEEN, Operator.NE, Operator.NOT_IN)
    drawn = []
    for operator in draw(st.lists(st.sampled_from(operators), min_size=1, max_size=12)):
        count = 3 if operator is Operator.NOT_IN else 2 if operator in (Operator.BETWEEN, Operator.NOT_BETWEEN) else 1
        values = [draw(one) for _ in range(count)]
        drawn.append(satisfying(Predicate("a", operator, tuple(sorted(values)))))
    return drawn


@pytest.mark.parametrize("type_class", [TypeClass.NUMBER, TypeClass.STRING])
@given(data=st.data())
@settings(max_examples=80, deadline=None)
def test_ranges_contain_the_values_of_their_value_sets(type_class: TypeClass, data: st.DataObject) -> None:
    value_sets = data.draw(ranges_of(type_class))
    published = values_of(type_class)
    if type_class is TypeClass.NUMBER:
        published = st.one_of(published, published, st.sampled_from(INFINITIES), st.floats(allow_nan=False))
    nodes = {leaf(Predicate("a", Operator.EQ, (n,)), n): values for n, values in enumerate(value_sets)}
    ranges = Ranges(value_sets[0])
    for node, values in nodes.items():
        ranges.add(values, node)
    for node in data.draw(st.permutations(list(nodes))):
        value = data.draw(published)
        found = ranges.containing(value)
        assert len(found) == len(set(found))
        assert set(found) == {node for node, values in nodes.items() if value in values}
        ranges.remove(nodes.pop(node), node)
    assert ranges.is_empty


@pytest.mark.parametrize(
    ("lower", "upper", "inside", "outside"),
    [
        (2**62 + 10, 2**62 + 20, 2**62 + 15, 2**62 + 30),  # no double is between these
        (2**62 + 10, 2**62 + 20, 2**62 + 20, 2**62 + 9),
        (0, 5e-320, -0.0, -5e-324),
        (-0.0, 5, 0, 5.000001),
        (-5, -0.0, 0.0, 5e-324),
        ("ab", "ab\0", "ab", "ab\0\0"),
        ("a", "aé", "ab", "aê"),
    ],
)
def test_a_range_between_neighbours_is_exact(lower: Value, upper: Value, inside: Value, outside: Value) -> None:
    predicate = Predicate("a", Operator.BETWEEN, (lower, upper))
    ranges = Ranges(satisfying(predicate))
    node = leaf(predicate, 1)
    ranges.add(satisfying(predicate), node)
    for value in (lower, upper, inside):
        assert ranges.containing(value) == [node]
    assert ranges.containing(outside) == []


@given(st.lists(predicates(), unique_by=lambda one: one.key, max_size=12), st.lists(publications(), max_size=5))
@settings(max_examples=80, deadline=None)
def test_predicate_indexes_agree_with_evaluation(stored: list[Predicate], published: list[dict[str, Value]]) -> None:
    nodes = [leaf(predicate, serial) for serial, predicate in enumerate(stored)]
    satisfied, decided = SatisfiedPredicates(), DecidedPredicates()
    for node in nodes:
        satisfied.add(node)
        decided.add(node)
    for publication in published:
        truths = {node: predicate.evaluate(publication) for node, predicate in zip(nodes, stored, strict=True)}
        found, rejected = satisfied.satisfied(publication)
        assert sorted(node.serial for node in found) == [node.serial for node in nodes if truths[node] is True]
        assert rejected <= len(nodes) - len(found)
        assert dict(decided.decided(publication)) == {
            node: truth for node, truth in truths.items() if truth is not None
        }
    for node in nodes:
        satisfied.remove(node)
        decided.remove(node)
    assert not any([*satisfied.shape().values(), *decided.shape().values()])


LETTERS = [leaf(Predicate(letter, Operator.EXISTS), serial) for serial, letter in enumerate("abcdefgh")]


@given(st.lists(st.sets(st.sampled_from(range(8)), min_size=2), unique_by=frozenset, max_size=25), st.data())
@settings(max_examples=80, deadline=None)
def test_the_subset_index_finds_all_subsets(sets: list[set[int]], data: st.DataObject) -> None:
    index = SubsetIndex()
    empty = SubsetIndex()
    stored = {}
    for serial, members in enumerate(sets, start=10):
        node = Node(Kind.AND, None, tuple(LETTERS[member] for member in sorted(members)), 0, serial)
        stored[node] = members
        index.add(node)
    for node in data.draw(st.permutations(list(stored))):
        wanted = data.draw(st.sets(st.sampled_from(range(8))))
        found = index.within([LETTERS[member] for member in sorted(wanted)])
        assert len(found) == len(set(found))
        assert set(found) == {node for node, members in stored.items() if members <= wanted}
        index.remove(node)
        del stored[node]
    assert index._root.children == empty._root.children


@pytest.mark.parametrize(
    ("operator", "values"),
    [
        (Operator.GT, lambda number: (number,)),
        (Operator.NE, lambda number: (number,)),
        (Operator.BETWEEN, lambda number: (-number, number)),
        (Operator.NOT_BETWEEN, lambda number: (-number, number)),
        (Operator.STARTS_WITH, lambda number: ("x" * (number % 50) + str(number),)),
    ],
)
def test_wide_predicates_are_not_copied(operator: Operator, values: Callable[[int], tuple[Value, ...]]) -> None:
    """Memory grows linearly with the predicates, although each covers many spaces of the others."""

    def size(count: int) -> int:
        index = ATree()
        for number in range(count):
            index.add(number, Predicate("a", operator, values(number)))
        return index.describe().bytes

    assert size(2_000) < 3 * size(1_000)
