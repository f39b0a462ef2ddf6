"""PS-Tree has the spaces of the examples in the papers, and finds the same predicates as a scan."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from matching.expressions.intervals import satisfying
from matching.expressions.model import Operator, Predicate
from matching.expressions.values import TypeClass, Value, successor
from matching.indexes.pst.ps_tree import Leaf, PSTree
from tests.harness.expression_strategies import numbers, predicates, strings

Ends = tuple[object, object]


def tree_of(*inserted: Predicate) -> PSTree[Leaf]:
    tree = PSTree(inserted[0].dimension, Leaf())
    for predicate in inserted:
        tree.insert(satisfying(predicate))
    return tree


def between(attribute: str, low: int, high: int) -> Predicate:
    return Predicate(attribute, Operator.BETWEEN, (low, high))


def counted_spaces(tree: PSTree[Leaf]) -> list[tuple[Ends, int]]:
    return [(interval, leaf.predicates) for interval, leaf in tree.spaces()]


def test_two_intervals_make_the_five_spaces_of_thesis_6_1() -> None:
    tree = tree_of(between("attr", -5, -1), between("attr", 1, 5))
    after_minus_one, after_five = successor(-1), successor(5)
    assert counted_spaces(tree) == [
        ((-math.inf, -5), 0),
        ((-5, after_minus_one), 1),
        ((after_minus_one, 1), 0),
        ((1, after_five), 1),
        ((after_five, None), 0),
    ]
    assert tree.locate(2) is tree.leaves[3]
    assert [tree.leaves.index(tree.locate(value)) for value in (-128, -5, -1, 0, 0.5, 1, 5, 5.5)] == [
        0,
        1,
        1,
        2,
        2,
        3,
        3,
        4,
    ]


def test_spaces_split_and_merge_as_in_thesis_6_4() -> None:
    first, second = between("age", 20, 60), between("age", 30, 80)
    tree = tree_of(first, second)
    after_sixty, after_eighty = successor(60), successor(80)
    assert counted_spaces(tree) == [
        ((-math.inf, 20), 0),
        ((20, 30), 1),
        ((30, after_sixty), 2),
        ((after_sixty, after_eighty), 1),
        ((after_eighty, None), 0),
    ]
    tree.delete(satisfying(second))
    tree.merge(satisfying(second))
    # The thesis prints [20, 60) for the middle space, but 60 is in it.
    assert counted_spaces(tree) == [((-math.inf, 20), 0), ((20, after_sixty), 1), ((after_sixty, None), 0)]


def test_a_cut_stays_while_another_predicate_ends_there() -> None:
    """Spaces with equal counters on both sides of 10 must not merge, because different predicates cover them."""
    below, above = Predicate("a", Operator.LT, (10,)), Predicate("a", Operator.GE, (10,))
    third = Predicate("a", Operator.GE, (10,))
    tree = tree_of(below, above, third)
    tree.delete(satisfying(third))
    tree.merge(satisfying(third))
    assert counted_spaces(tree) == [((-math.inf, 10), 1), ((10, None), 1)]


def test_split_and_merge_keep_the_number_of_events() -> None:
    tree = tree_of(Predicate("a", Operator.GE, (0,)))
    for value in range(7):
        tree.locate(value).publications += 1
    middle = Predicate("a", Operator.EQ, (3,))
    tree.insert(satisfying(middle))
    assert sum(leaf.publications for leaf in tree.leaves) == 7
    tree.delete(satisfying(middle))
    tree.merge(satisfying(middle))
    assert [leaf.publications for leaf in tree.leaves] == [0, 7]


@given(
    st.sampled_from((TypeClass.NUMBER, TypeClass.STRING)).flatmap(
        lambda kind: st.tuples(
            st.lists(
                predicates(("s",)).filter(lambda predicate: predicate.type_class is kind), min_size=1, max_size=12
            ),
            st.lists(numbers() if kind is TypeClass.NUMBER else strings(), min_size=1),
        )
    ),
    st.data(),
)
def test_a_space_counts_the_predicates_that_cover_it(
    drawn: tuple[list[Predicate], list[Value]], data: st.DataObject
) -> None:
    inserted, values = drawn
    tree = tree_of(*inserted)
    for predicate in data.draw(st.permutations(inserted)):
        for value in values:
            assert tree.locate(value).predicates == sum(value in satisfying(each) for each in inserted)
        tree.delete(satisfying(predicate))
        tree.merge(satisfying(predicate))
        inserted.remove(predicate)
    assert counted_spaces(tree)[0][1] == 0
    assert len(tree.leaves) == 1
