"""Compares intersection and covering with brute force. Both are exact where documented, and err on the safe side.

A publication that satisfies both expressions proves a True of `intersects`. Trying every publication of a small
universe proves a False. For `covers` it is the opposite.
"""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matching.expressions.intersection import MAX_BOXES, Region, covers, intersects, region_of, witness
from matching.expressions.intervals import INEXACT_OPERATORS
from matching.expressions.model import (
    FALSE,
    PRESENCE_OPERATORS,
    RANGE_OPERATORS,
    SET_OPERATORS,
    STRING_OPERATORS,
    TRUE,
    And,
    Expression,
    Not,
    Operator,
    Or,
    Predicate,
    Xnor,
    Xor,
)
from matching.expressions.values import Value, check_publication, successor

BASIC = tuple(operator for operator in Operator if operator not in INEXACT_OPERATORS)
NEXT_TO_ONE = math.nextafter(1.0, math.inf)

NUMBERS: tuple[Value, ...] = (0, 1, NEXT_TO_ONE, 2**53, 2**53 + 1)
STRINGS: tuple[Value, ...] = ("", "a", "a\0", "ab", "b", "bab")
BOOLEANS: tuple[Value, ...] = (False, True)
PATTERNS: tuple[Value, ...] = ("a", "b$", "^a")


def _with_neighbours(values: tuple[Value, ...]) -> tuple[Value, ...]:
    return tuple(dict.fromkeys(near for value in values for near in (value, successor(value)) if near is not None))


VALUES_IN_UNIVERSE: tuple[Value | None, ...] = (
    None,
    *_with_neighbours(NUMBERS),
    -math.inf,
    math.inf,
    *_with_neighbours(STRINGS),
    "zab",
)
"""None is a missing attribute."""

UNIVERSE: list[dict[str, Value]] = [
    {name: value for name, value in zip("ab", values, strict=True) if value is not None}
    for values in itertools.product((*VALUES_IN_UNIVERSE, True), (*VALUES_IN_UNIVERSE, False))
]


@st.composite
def predicates(draw: st.DrawFn, operators: tuple[Operator, ...] = tuple(Operator)) -> Predicate:
    attribute = draw(st.sampled_from("ab"))
    operator = draw(st.sampled_from(operators))
    if operator in PRESENCE_OPERATORS:
        return Predicate(attribute, operator)
    one = draw(st.sampled_from(_domains(operator)).map(st.sampled_from))
    count = 2 if operator in RANGE_OPERATORS else draw(st.integers(1, 3)) if operator in SET_OPERATORS else 1
    return Predicate(attribute, operator, tuple(draw(one) for _ in range(count)))


def _domains(operator: Operator) -> tuple[tuple[Value, ...], ...]:
    if operator in (Operator.MATCHES, Operator.NOT_MATCHES):
        return (PATTERNS,)
    if operator in STRING_OPERATORS:
        return (STRINGS,)
    if operator in SET_OPERATORS | {Operator.EQ, Operator.NE}:
        return (NUMBERS, STRINGS, BOOLEANS)
    return (NUMBERS, STRINGS)


def conjunctions(operators: tuple[Operator, ...] = tuple(Operator)) -> st.SearchStrategy[Expression]:
    return st.lists(predicates(operators), max_size=4).map(And.of)


def expressions(operators: tuple[Operator, ...] = tuple(Operator)) -> st.SearchStrategy[Expression]:
    leaves = st.one_of(predicates(operators), predicates(operators), st.sampled_from((TRUE, FALSE)))
    return st.recursive(
        leaves,
        lambda parts: st.one_of(
            st.lists(parts, min_size=2, max_size=3).map(And),
            st.lists(parts, min_size=2, max_size=3).map(Or),
            parts.map(Not),
            st.builds(Xor, parts, parts),
            st.builds(Xnor, parts, parts),
        ),
        max_leaves=6,
    )


def shared(first: Expression, second: Expression) -> dict[str, Value] | None:
    """The first publication of the universe that satisfies both."""
    return next((each for each in UNIVERSE if first.matches(each) and second.matches(each)), None)


def exception_to(first: Expression, second: Expression) -> dict[str, Value] | None:
    """The first publication of the universe that satisfies the second and not the first."""
    return next((each for each in UNIVERSE if second.matches(each) and not first.matches(each)), None)


def constructed_exception(first: Expression, second: Expression) -> dict[str, Value] | None:
    """A publication that satisfies the conjunction `second` and fails some predicate of `first`, if there is one.

    A predicate fails if its negation is true, or if its attribute is missing or has another class.
    """
    for predicate in first.predicates():
        alternatives = [predicate.negation, Predicate(predicate.attribute, Operator.NOT_EXISTS)]
        for one_of_each_class in (0, "", True):
            alternatives += [
                Predicate(predicate.attribute, operator, (one_of_each_class,))
                for operator in (Operator.EQ, Operator.NE)
            ]
        for alternative in alternatives:
            found = witness(second, alternative)
            if found is not None and not first.matches(found):
                return found
    return None


def number(operator: str, *values: Value) -> Predicate:
    return Predicate("a", Operator(operator), values)


def text(operator: str, *values: Value) -> Predicate:
    return Predicate("s", Operator(operator), values)


@given(conjunctions(BASIC), conjunctions(BASIC))
@settings(max_examples=150, deadline=None)
def test_intersection_is_exact_on_conjunctions_of_basic_operators(first: Expression, second: Expression) -> None:
    found = witness(first, second)
    assert intersects(first, second) is (found is not None)
    if found is None:
        assert shared(first, second) is None
    else:
        assert first.evaluate(found) is True
        assert second.evaluate(found) is True
        assert check_publication(found) == found


@given(expressions(BASIC), expressions(BASIC))
@settings(max_examples=100, deadline=None)
def test_intersection_is_exact_on_any_combination_of_basic_operators(first: Expression, second: Expression) -> None:
    assert intersects(first, second) is (witness(first, second) is not None)
    assert intersects(first, second) or shared(first, second) is None


@given(expressions(), expressions())
@settings(max_examples=100, deadline=None)
def test_intersection_never_wrongly_says_no(first: Expression, second: Expression) -> None:
    assert intersects(first, second) or shared(first, second) is None
    assert intersects(first, second) is intersects(second, first)


@given(conjunctions(), conjunctions())
@settings(max_examples=150, deadline=None)
def test_intersection_of_conjunctions_never_wrongly_says_no(first: Expression, second: Expression) -> None:
    assert intersects(first, second) or shared(first, second) is None


@given(conjunctions(BASIC), conjunctions(BASIC))
@settings(max_examples=150, deadline=None)
def test_covering_is_exact_on_conjunctions_of_basic_operators(first: Expression, second: Expression) -> None:
    exception = constructed_exception(first, second)
    assert covers(first, second) is (exception is None)
    assert exception is not None or exception_to(first, second) is None


@given(conjunctions(), conjunctions())
@settings(max_examples=150, deadline=None)
def test_covering_of_conjunctions_never_wrongly_says_yes(first: Expression, second: Expression) -> None:
    assert not covers(first, second) or exception_to(first, second) is None
    assert covers(first, And((first, second)))


@given(expressions(), expressions())
@settings(max_examples=100, deadline=None)
def test_covering_never_wrongly_says_yes(first: Expression, second: Expression) -> None:
    assert not covers(first, second) or exception_to(first, second) is None
    assert covers(first, first)
    assert covers(TRUE, first)
    assert covers(first, FALSE)


@given(expressions(), expressions())
@settings(max_examples=100, deadline=None)
def test_a_region_with_too_few_boxes_is_wrong_on_the_safe_side(first: Expression, second: Expression) -> None:
    narrow, exact = Region.of(first, limit=1), Region.of(second)
    assert narrow.intersects(exact) or shared(first, second) is None
    assert not narrow.covers(exact) or exception_to(first, second) is None
    assert not exact.covers(narrow) or exception_to(second, first) is None


@pytest.mark.parametrize(
    ("one", "other", "is_shared"),
    [
        (number(">", 1), number("<", NEXT_TO_ONE), False),
        (number(">", 1), number("<=", NEXT_TO_ONE), True),
        (number(">", 2**53), number("<", 2**53 + 2), True),
        (number(">", 2**53 + 1), number("<", 2**53 + 2), False),
        (number(">", 2**63 - 1), number("<", 2.0**63), False),
        (number(">", 1.7976931348623157e308), number("!=", 0), True),
        (number("=", 2**53 + 1), number("=", float(2**53)), False),
        (number("=", 1), number("=", 1.0), True),
        (number("=", 1), number("=", True), False),
        (number("!=", True), number("!=", False), False),
        (number("=", 1), number("=", "1"), False),
        (number("NOT IN", 1, 2), number("BETWEEN", 1, 2), True),
        (number("BETWEEN", 2, 1), TRUE, False),
        (text("STARTS WITH", "ab"), text("<", "ab"), False),
        (text("STARTS WITH", "ab"), text("BETWEEN", "a", "aba"), True),
        (text("STARTS WITH", "ab"), text("STARTS WITH", "b"), False),
        (text("NOT STARTS WITH", ""), TRUE, False),
        (text(">", "a"), text("<", "a\0"), False),
        (Predicate("a", Operator.EXISTS), number("!=", 3), True),
        (Predicate("a", Operator.NOT_EXISTS), number("!=", 3), False),
        (Predicate("a", Operator.NOT_EXISTS), Predicate("a", Operator.EXISTS), False),
        (Predicate("a", Operator.NOT_EXISTS), Predicate("a", Operator.NOT_EXISTS), True),
        (Predicate("a", Operator.NOT_EXISTS), text("=", "x"), True),
        (TRUE, TRUE, True),
        (TRUE, FALSE, False),
        (FALSE, FALSE, False),
        (Not(number("=", 1)), number("=", 1), False),
        (Xor(number("=", 1), number("<", 5)), number("=", 1), False),
        (Xor(number("=", 1), number("<", 5)), number("=", 2), True),
        (Xnor(number("=", 1), number("<", 5)), number("=", 2), False),
    ],
)
def test_intersection_of_two_plain_expressions(one: Expression, other: Expression, is_shared: bool) -> None:
    assert intersects(one, other) is is_shared
    assert intersects(other, one) is is_shared


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (text("IN", "ab", "cd"), text("ENDS WITH", "e")),
        (text("IN", "ab", "ab\0"), text("MATCHES", "c")),
        (text("=", "ab"), text("NOT CONTAINS", "b")),
        (And((text(">=", "a"), text("<=", "a"))), text("NOT MATCHES", "^a$")),
        (text("ENDS WITH", "a"), text("ENDS WITH", "b")),
        (text("ENDS WITH", "xab"), text("NOT CONTAINS", "a")),
        (text("CONTAINS", "xab"), text("NOT CONTAINS", "a")),
        (text("MATCHES", "a+"), text("NOT MATCHES", "a+")),
        (text("STARTS WITH", "abc"), text("NOT CONTAINS", "bc")),
        (text("NOT ENDS WITH", ""), TRUE),
    ],
)
def test_contradictions_of_strings_are_seen(one: Expression, other: Expression) -> None:
    assert not intersects(one, other)
    assert not intersects(other, one)
    assert covers(FALSE, And((one, other)))


@pytest.mark.parametrize(
    ("one", "other", "shared_text"),
    [
        (text("ENDS WITH", "b"), text("ENDS WITH", "ab"), "ab"),
        (text("NOT ENDS WITH", "ab"), text("ENDS WITH", "b"), "b"),
        (text("NOT CONTAINS", "ab"), text("CONTAINS", "b"), "b"),
        (text("STARTS WITH", "ab"), text("NOT CONTAINS", "c"), "ab"),
        (text("STARTS WITH", "ab"), text("NOT ENDS WITH", "ab"), "abc"),
        (text("BETWEEN", "abc", "abd"), text("NOT CONTAINS", "c"), "abd"),
        (text("MATCHES", "a"), text("NOT MATCHES", "^a"), "ba"),
        (text("IN", "ab", "cd"), text("ENDS WITH", "d"), "cd"),
    ],
)
def test_strings_that_may_intersect_do(one: Expression, other: Expression, shared_text: str) -> None:
    assert one.matches({"s": shared_text})
    assert other.matches({"s": shared_text})
    assert intersects(one, other)
    assert intersects(other, one)


@pytest.mark.parametrize(
    ("outer", "inner", "is_covered"),
    [
        (TRUE, number("!=", 5), True),
        (number("!=", 5), TRUE, False),
        (Predicate("a", Operator.EXISTS), number("!=", 5), True),
        (Predicate("a", Operator.EXISTS), Predicate("a", Operator.NOT_EXISTS), False),
        (Predicate("a", Operator.NOT_EXISTS), number("=", 5), False),
        (Or((number("<", 5), number(">=", 5))), Predicate("a", Operator.EXISTS), False),
        (number("!=", 5), number("!=", True), False),
        (number(">=", NEXT_TO_ONE), number(">", 1), True),
        (number("BETWEEN", 1, 5), number("IN", 1, 2.5, 5), True),
        (number("BETWEEN", 1, 5), number("IN", 1, 2.5, 6), False),
        (number("NOT IN", 3, 4), And((number(">", 0), number("<", 3))), True),
        (number("=", 1), And((number("=", 2), number("=", 3))), True),
        (number("<", 5), And((number("<", 4), text("=", "x"))), True),
        (And((number("<", 5), text("=", "x"))), number("<", 4), False),
        (Or((number("<", 3), number(">", 7))), Or((number("=", 2), number(">", 8))), True),
        (Or((number("<", 3), number(">", 7))), Or((number("=", 2), number("=", 5))), False),
        (text("STARTS WITH", "ab"), text("BETWEEN", "ab", "aba"), True),
        (text("STARTS WITH", "ab"), text("BETWEEN", "ab", "ac"), False),
        (text("CONTAINS", "ab"), text("CONTAINS", "xabx"), True),
        (text("CONTAINS", "ab"), text("STARTS WITH", "aby"), True),
        (text("CONTAINS", "by"), text("STARTS WITH", "aby"), True),
        (text("CONTAINS", "by"), text("BETWEEN", "aby", "abya"), True),
        (text("CONTAINS", "by"), text("BETWEEN", "aby", "abz"), False),
        (text("CONTAINS", "ab"), text("ENDS WITH", "xab"), True),
        (text("CONTAINS", "ab"), text("IN", "ab", "cab"), True),
        (text("CONTAINS", "ab"), text("IN", "ab", "c"), False),
        (text("CONTAINS", "xab"), text("CONTAINS", "ab"), False),
        (text("CONTAINS", ""), text("!=", "q"), True),
        (text("CONTAINS", ""), TRUE, False),
        (text("ENDS WITH", ""), text("!=", "q"), True),
        (text("ENDS WITH", "b"), text("ENDS WITH", "ab"), True),
        (text("ENDS WITH", "ab"), text("ENDS WITH", "b"), False),
        (text("ENDS WITH", "b"), text("CONTAINS", "b"), False),
        (text("NOT CONTAINS", "abc"), text("NOT CONTAINS", "b"), True),
        (text("NOT CONTAINS", "b"), text("NOT CONTAINS", "abc"), False),
        (text("NOT ENDS WITH", "ab"), text("NOT ENDS WITH", "b"), True),
        (text("NOT ENDS WITH", "ab"), text("NOT CONTAINS", "a"), True),
        (text("NOT ENDS WITH", "b"), text("ENDS WITH", "a"), True),
        (text("NOT ENDS WITH", "ab"), text("ENDS WITH", "b"), False),
        (text("NOT ENDS WITH", "b"), text("ENDS WITH", "ab"), False),
        (text("MATCHES", "a+"), text("MATCHES", "a+"), True),
        (text("MATCHES", "a+"), text("MATCHES", "aa"), False),
        (text("MATCHES", "a+"), text("IN", "ba", "a"), True),
        (text("!=", "xa"), text("ENDS WITH", "b"), True),
        (text("!=", "xb"), text("ENDS WITH", "b"), False),
        (And((text("STARTS WITH", "a"), text("MATCHES", "q"))), And((text("=", "aq"), number("=", 1))), True),
    ],
)
def test_covering_of_two_plain_expressions(outer: Expression, inner: Expression, is_covered: bool) -> None:
    assert covers(outer, inner) is is_covered


def test_past_the_limit_the_predicates_above_all_disjunctions_still_count() -> None:
    wide = And([number("=", 1), *(Or((Predicate(f"x{n}", Operator.LT, (0,)), text("=", f"{n}"))) for n in range(60))])
    assert region_of(wide).is_widened
    assert not intersects(wide, number("=", 2))
    assert intersects(wide, number("=", 1))
    assert covers(wide, wide)
    assert covers(number("<", 2), wide)
    assert covers(wide, FALSE)
    assert not covers(wide, number("=", 1))


def test_a_region_has_a_box_for_each_possible_conjunction() -> None:
    either = Or([number("=", n) for n in range(MAX_BOXES - 1)] + [And((number("=", 1), number("=", 2)))])
    region = Region.of(either)
    assert not region.is_widened
    assert len(region.boxes) == MAX_BOXES - 1
    assert Region.of(FALSE).boxes == ()
    assert Region.of(TRUE).boxes == ({},)


def test_a_long_chain_of_exclusive_ors_may_intersect_expressions_on_other_attributes() -> None:
    chain: Expression = number("=", 0)
    for n in range(1000):
        chain = Xor(Predicate(f"x{n}", Operator.EQ, (True,)), chain)
    assert intersects(And((chain, text("=", "x"))), text("!=", "y"))
    assert not intersects(And((chain, text("=", "x"))), text("=", "y"))


def test_a_deep_conjunction_is_still_exact() -> None:
    deep: Expression = number(">", 1)
    for n in range(5000):
        deep = Not(Not(And((deep, number("!=", n)))))
    assert not intersects(deep, number("=", 17))
    assert intersects(deep, number("=", 17.5))


def test_witnesses_are_found_for_substrings_and_suffixes_too() -> None:
    found = witness(text("STARTS WITH", "ab"), And((text("CONTAINS", "q"), text("ENDS WITH", "z"))))
    assert found == {"s": "abqz"}


def test_witnesses_prefer_plain_numbers() -> None:
    assert witness(number("<", 5)) == {"a": 0}
    assert witness(number("<", -5)) == {"a": -6.0}
    assert witness(number("<=", -1.7976931348623157e308)) is not None
    assert witness(FALSE) is None
