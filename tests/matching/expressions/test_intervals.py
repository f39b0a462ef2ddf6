"""Sets of values contain exactly the values that their predicates accept, and obey the laws of sets."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matching.expressions.intervals import (
    INEXACT_OPERATORS,
    ValueSet,
    everything,
    is_exact,
    of_values,
    satisfying,
    satisfying_all,
)
from matching.expressions.model import PRESENCE_OPERATORS, Operator, Predicate
from matching.expressions.values import TypeClass, Value, after_prefix, successor
from tests.harness.expression_strategies import INFINITIES, predicates, values_of

ON_VALUES = tuple(operator for operator in Operator if operator not in PRESENCE_OPERATORS)
EXACT = tuple(operator for operator in ON_VALUES if operator not in INEXACT_OPERATORS)
CLASSES = (TypeClass.NUMBER, TypeClass.STRING, TypeClass.BOOLEAN)
NEXT_TO_ONE = math.nextafter(1.0, math.inf)


def members(type_class: TypeClass) -> st.SearchStrategy[Value]:
    """Values of the class, their neighbours, and the ends of the order."""
    plain = values_of(type_class)
    near = plain.map(lambda value: value if successor(value) is None else successor(value))
    prefixes = plain.map(lambda value: value if not isinstance(value, str) else after_prefix(value) or value)
    ends = st.sampled_from(INFINITIES) if type_class is TypeClass.NUMBER else plain
    return st.one_of(plain, near, prefixes, ends)


@st.composite
def predicates_with_values(draw: st.DrawFn, operators: tuple[Operator, ...]) -> tuple[Predicate, Value]:
    predicate = draw(predicates(operators=operators))
    return predicate, draw(members(predicate.type_class))


@st.composite
def value_sets(draw: st.DrawFn, type_class: TypeClass) -> ValueSet:
    made = of_values(type_class, draw(st.lists(members(type_class), max_size=4)))
    for predicate in draw(st.lists(predicates(operators=EXACT), max_size=3)):
        if predicate.type_class is type_class:
            made = made.complement().intersection(satisfying(predicate)).complement()
    return made


@st.composite
def two_sets_and_a_value(draw: st.DrawFn) -> tuple[ValueSet, ValueSet, Value]:
    type_class = draw(st.sampled_from(CLASSES))
    return draw(value_sets(type_class)), draw(value_sets(type_class)), draw(members(type_class))


def assert_canonical(values: ValueSet) -> None:
    """Checks that intervals are sorted, not empty and not adjacent. Equal sets are therefore equal objects."""
    for lower, upper in values.intervals:
        assert upper is None or lower < upper  # type: ignore[operator]
    for (_, upper), (lower, _) in zip(values.intervals[:-1], values.intervals[1:], strict=True):
        assert upper is not None
        assert upper < lower  # type: ignore[operator]


@given(predicates_with_values(EXACT))
@settings(max_examples=200, deadline=None)
def test_exact_predicates_are_true_for_exactly_their_set(drawn: tuple[Predicate, Value]) -> None:
    predicate, value = drawn
    assert is_exact(predicate)
    assert (value in satisfying(predicate)) is predicate.is_true_for(value)
    assert_canonical(satisfying(predicate))


@given(predicates_with_values(tuple(INEXACT_OPERATORS)))
@settings(deadline=None)
def test_other_predicates_are_true_only_within_their_set(drawn: tuple[Predicate, Value]) -> None:
    predicate, value = drawn
    assert not is_exact(predicate)
    assert not predicate.is_true_for(value) or value in satisfying(predicate)


@given(st.lists(predicates(attributes=("a",), operators=EXACT), max_size=5), members(TypeClass.NUMBER))
@settings(deadline=None)
def test_several_predicates_are_true_together_for_exactly_their_common_set(
    drawn: list[Predicate], value: Value
) -> None:
    together = [predicate for predicate in drawn if predicate.type_class is TypeClass.NUMBER]
    found = satisfying_all(TypeClass.NUMBER, together)
    assert (value in found) is all(predicate.is_true_for(value) for predicate in together)
    assert_canonical(found)


@given(two_sets_and_a_value())
@settings(max_examples=200, deadline=None)
def test_the_laws_of_sets_hold(drawn: tuple[ValueSet, ValueSet, Value]) -> None:
    one, other, value = drawn
    common, rest = one.intersection(other), one.complement()
    for made in (one, other, common, rest):
        assert_canonical(made)
    assert (value in common) is (value in one and value in other)
    assert (value in rest) is (value not in one)
    assert common == other.intersection(one)
    assert rest.complement() == one
    assert one.intersection(rest).is_empty
    assert one.is_everything is rest.is_empty
    assert one.intersects(other) is (not common.is_empty)
    assert one.intersects(other) is other.intersects(one)


@given(two_sets_and_a_value())
@settings(deadline=None)
def test_a_set_is_within_another_when_nothing_of_it_is_outside(drawn: tuple[ValueSet, ValueSet, Value]) -> None:
    one, other, value = drawn
    assert one.is_within(other) is one.intersection(other.complement()).is_empty
    assert one.intersection(other).is_within(one)
    assert one.is_within(everything(one.type_class))
    assert not (one.is_within(other) and value in one) or value in other


@given(two_sets_and_a_value(), st.integers(0, 6))
@settings(deadline=None)
def test_points_are_all_values_of_a_small_set(drawn: tuple[ValueSet, ValueSet, Value], at_most: int) -> None:
    one, _, value = drawn
    points = one.points(at_most)
    if points is not None:
        assert len(points) <= at_most
        assert of_values(one.type_class, points) == one
        assert (value in one) is (value in points)
        assert list(points) == sorted(points)


@given(st.sampled_from(CLASSES).flatmap(lambda kind: st.tuples(st.just(kind), st.lists(members(kind), max_size=6))))
@settings(deadline=None)
def test_listed_values_are_points_again(drawn: tuple[TypeClass, list[Value]]) -> None:
    type_class, listed = drawn
    made = of_values(type_class, listed)
    assert_canonical(made)
    distinct = sorted(set(listed))
    assert made.points(len(distinct)) == tuple(distinct)
    assert distinct == [] or made.points(len(distinct) - 1) is None


def test_ranges_are_no_points() -> None:
    assert satisfying(Predicate("a", Operator.BETWEEN, (1, 2))).points(1000) is None
    assert satisfying(Predicate("s", Operator.STARTS_WITH, ("a",))).points(1000) is None
    assert everything(TypeClass.STRING).points(1000) is None


def test_neighbours_join_and_are_still_points() -> None:
    assert of_values(TypeClass.NUMBER, (1, NEXT_TO_ONE)).intervals == ((1, successor(NEXT_TO_ONE)),)
    assert of_values(TypeClass.STRING, ("a\0", "a")).points(2) == ("a", "a\0")
    assert of_values(TypeClass.BOOLEAN, (True, False)) == everything(TypeClass.BOOLEAN)
    assert everything(TypeClass.BOOLEAN).points(2) == (False, True)


@pytest.mark.parametrize(
    ("operator", "values", "intervals"),
    [
        (Operator.GT, (1,), ((NEXT_TO_ONE, None),)),
        (Operator.LT, (1,), ((-math.inf, 1),)),
        (Operator.NE, (2**53,), ((-math.inf, 2**53), (2**53 + 1, None))),
        (Operator.BETWEEN, (3, 2), ()),
        (Operator.NOT_BETWEEN, (3, 2), ((-math.inf, None),)),
        (Operator.GT, (1.7976931348623157e308,), ((math.inf, None),)),
        (Operator.EQ, (True,), ((True, None),)),
        (Operator.NE, (True,), ((False, True),)),
        (Operator.STARTS_WITH, ("ab",), (("ab", "ac"),)),
        (Operator.STARTS_WITH, ("",), (("", None),)),
        (Operator.NOT_STARTS_WITH, ("",), ()),
        (Operator.IN, ("b", "a"), (("a", "a\0"), ("b", "b\0"))),
    ],
)
def test_intervals_of_notable_predicates(
    operator: Operator, values: tuple[Value, ...], intervals: tuple[object, ...]
) -> None:
    assert satisfying(Predicate("a", operator, values)).intervals == intervals


def test_sets_of_different_classes_differ() -> None:
    assert of_values(TypeClass.NUMBER, (1,)) != of_values(TypeClass.BOOLEAN, (True,))
