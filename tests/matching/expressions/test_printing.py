"""The text of an expression parses back to the same expression, and has no unnecessary parentheses."""

from __future__ import annotations

import pytest
from hypothesis import given

from matching.errors import ExpressionTooLargeError
from matching.expressions.model import FALSE, TRUE, And, Expression, Not, Operator, Or, Predicate, Xnor, Xor
from matching.expressions.normal_forms import negation_normal_form
from matching.expressions.printing import to_text
from matching.expressions.values import Value
from matching.languages.sql import parse, parse_trusted
from tests.harness.expression_strategies import ODD_ATTRIBUTES, expressions, values

A, B, C = (Predicate(name, Operator.EQ, (1,)) for name in "abc")
EXISTS = Predicate("a", Operator.EXISTS)


@given(expressions(max_leaves=20, attributes=ODD_ATTRIBUTES))
def test_text_reads_back_as_the_same_expression(expression: Expression) -> None:
    assert parse(to_text(expression)) == expression
    assert str(expression) == to_text(expression)


@given(values())
def test_values_read_back_as_the_same_value_of_the_same_type(value: Value) -> None:
    read = parse(to_text(Predicate("a", Operator.EQ, (value,))))
    assert isinstance(read, Predicate)
    assert repr(read.values[0]) == repr(value)


@given(expressions(max_leaves=8, attributes=("a", "f"), operators=(Operator.EQ, Operator.EXISTS, Operator.NOT_EXISTS)))
def test_no_parentheses_could_be_left_out(expression: Expression) -> None:
    text = to_text(expression)
    opened: list[int] = []
    for position, character in enumerate(text):
        if character == "(":
            opened.append(position)
        elif character == ")":
            start = opened.pop()
            without = text[:start] + text[start + 1 : position] + text[position + 1 :]
            assert parse(without) != expression


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (TRUE, "TRUE"),
        (FALSE, "FALSE"),
        (Not(TRUE), "NOT TRUE"),
        (And((TRUE, FALSE)), "TRUE AND FALSE"),
        (And((A, B, C)), "a = 1 AND b = 1 AND c = 1"),
        (And((And((A, B)), C)), "(a = 1 AND b = 1) AND c = 1"),
        (And((A, Or((B, C)))), "a = 1 AND (b = 1 OR c = 1)"),
        (Or((A, And((B, C)))), "a = 1 OR b = 1 AND c = 1"),
        (Or((Or((A, B)), C)), "(a = 1 OR b = 1) OR c = 1"),
        (Xor(Xnor(A, B), C), "a = 1 XNOR b = 1 XOR c = 1"),
        (Xor(A, Xnor(B, C)), "a = 1 XOR (b = 1 XNOR c = 1)"),
        (Xor(Or((A, B)), And((B, C))), "(a = 1 OR b = 1) XOR b = 1 AND c = 1"),
        (And((Xor(A, B), C)), "(a = 1 XOR b = 1) AND c = 1"),
        (Not(Not(A)), "NOT NOT a = 1"),
        (Not(And((A, B))), "NOT (a = 1 AND b = 1)"),
        (And((Not(A), B)), "NOT a = 1 AND b = 1"),
        (EXISTS, "EXISTS a"),
        (EXISTS.negation, "NOT EXISTS a"),
        (Not(EXISTS), "NOT (EXISTS a)"),
        (Not(Not(EXISTS)), "NOT NOT (EXISTS a)"),
        (Not(EXISTS.negation), "NOT NOT EXISTS a"),
        (Predicate("a", Operator.BETWEEN, (1, 2.0)), "a BETWEEN 1 AND 2.0"),
        (Predicate("a", Operator.NOT_IN, ("y", "x'")), "a NOT IN ('x''', 'y')"),
        (Predicate("a", Operator.NOT_STARTS_WITH, ("",)), "a NOT STARTS WITH ''"),
        (Predicate("a", Operator.LT, (-0.0,)), "a < -0.0"),
        (Predicate("a", Operator.LT, (1e300,)), "a < 1e+300"),
        (Predicate("a", Operator.NE, (True,)), "a != TRUE"),
        (Predicate("a.b", Operator.EQ, (1,)), "a.b = 1"),
        (Predicate("Is", Operator.EQ, (1,)), '"Is" = 1'),
        (Predicate("a-b", Operator.EQ, (1,)), '"a-b" = 1'),
        (Predicate("a.", Operator.EQ, (1,)), '"a." = 1'),
        (Predicate('"', Operator.EQ, (1,)), '"""" = 1'),
        (Predicate("1a", Operator.EQ, (1,)), '"1a" = 1'),
    ],
)
def test_each_shape_has_its_text(expression: Expression, text: str) -> None:
    assert to_text(expression) == text
    assert parse(text) == expression


def test_depth_is_no_problem() -> None:
    deep: Expression = A
    for _ in range(10_000):
        deep = Not(And((deep, B)))
    assert parse_trusted(to_text(deep)) == deep


def _chain_of_xors(length: int) -> Expression:
    chain: Expression = A
    for _ in range(length):
        chain = Xor(chain, B)
    return chain


def test_shared_nodes_are_written_out_up_to_the_limit() -> None:
    normal = negation_normal_form(_chain_of_xors(12))
    assert parse_trusted(to_text(normal)) == normal


def test_a_text_beyond_the_limit_is_refused_at_once() -> None:
    with pytest.raises(ExpressionTooLargeError, match=r"in predicates, is over 10\^\d+, the limit is 1,000,000"):
        to_text(negation_normal_form(_chain_of_xors(500)))


def test_constants_count_against_the_limit_too() -> None:
    doubled: Expression = TRUE
    for _ in range(100):
        doubled = And((doubled, doubled))
    assert doubled.size == 0
    with pytest.raises(ExpressionTooLargeError, match=r"in nodes, is over 10\^30, the limit is 4,000,000"):
        to_text(doubled)
