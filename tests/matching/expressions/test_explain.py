"""An explanation has the truth of every node, with a reason in words."""

from __future__ import annotations

import pytest
from hypothesis import given

from matching.errors import ValueRefusedError
from matching.expressions.explain import explain
from matching.expressions.model import TRUE, And, Expression, Not, Operator, Predicate
from matching.expressions.normal_forms import negation_normal_form
from matching.expressions.values import Value
from matching.languages.sql import parse, parse_trusted
from tests.harness.expression_strategies import expressions, publications


@pytest.mark.parametrize(
    ("text", "value", "reason"),
    [
        ("a = 1", 1.0, "a is 1.0, equal to 1"),
        ("a = 1", 2, "a is 2, not equal to 1"),
        ("a != 'x'", "y", "a is 'y', not equal to 'x'"),
        ("a != 'x'", "x", "a is 'x', equal to 'x'"),
        ("a < 100", 92.5, "a is 92.5, below 100"),
        ("a < 100", 130, "a is 130, not below 100"),
        ("a <= 1", 1, "a is 1, at most 1"),
        ("a <= 1", 2, "a is 2, above 1"),
        ("a > 1", 2, "a is 2, above 1"),
        ("a > 1", 1, "a is 1, not above 1"),
        ("a >= 1", 1, "a is 1, at least 1"),
        ("a >= 1", 0, "a is 0, below 1"),
        ("a BETWEEN 1 AND 3", 3, "a is 3, between 1 and 3"),
        ("a BETWEEN 1 AND 3", 4, "a is 4, not between 1 and 3"),
        ("a NOT BETWEEN 1 AND 3", 4, "a is 4, not between 1 and 3"),
        ("a NOT BETWEEN 1 AND 3", 3, "a is 3, between 1 and 3"),
        ("a IN (1, 2)", 2, "a is 2, one of 1, 2"),
        ("a IN (1, 2)", 3, "a is 3, none of 1, 2"),
        ("a NOT IN (1, 2)", 3, "a is 3, none of 1, 2"),
        ("a NOT IN (1, 2)", 2, "a is 2, one of 1, 2"),
        ("a IN (1, 2, 3, 4, 5, 6, 7, 8)", 9, "a is 9, none of 1, 2, 3, 4, 5, 6 and 2 more"),
        ("a STARTS WITH 'x'", "xy", "a is 'xy', which starts with 'x'"),
        ("a STARTS WITH 'x'", "y", "a is 'y', which does not start with 'x'"),
        ("a NOT STARTS WITH 'x'", "xy", "a is 'xy', which starts with 'x'"),
        ("a ENDS WITH 'x'", "yx", "a is 'yx', which ends with 'x'"),
        ("a NOT ENDS WITH 'x'", "y", "a is 'y', which does not end with 'x'"),
        ("a CONTAINS 'x'", "axa", "a is 'axa', which contains 'x'"),
        ("a NOT CONTAINS 'x'", "a", "a is 'a', which does not contain 'x'"),
        ("a MATCHES '^x'", "xy", "a is 'xy', which matches '^x'"),
        ("a NOT MATCHES '^x'", "y", "a is 'y', which does not match '^x'"),
        ("EXISTS a", True, "a is there: TRUE"),
        ("EXISTS a", None, "a is missing"),
        ("NOT EXISTS a", 3, "a is there: 3"),
        ("NOT EXISTS a", None, "a is missing"),
        ("a < 100", None, "a is missing: undefined"),
        ("a != 100", None, "a is missing: undefined"),
        ("a < 100", "12", "a is the string '12', the predicate asks a number: undefined"),
        ("a = TRUE", 1, "a is the number 1, the predicate asks a boolean: undefined"),
        ("a NOT IN ('x')", False, "a is the boolean FALSE, the predicate asks a string: undefined"),
        ("a = 1", "x" * 100, "a is the string '" + "x" * 57 + "…', the predicate asks a number: undefined"),
    ],
)
def test_each_operator_has_its_reason(text: str, value: Value | None, reason: str) -> None:
    expression = parse(text)
    publication = {} if value is None else {"a": value}
    (node,) = explain(expression, publication).nodes
    assert node.reason == reason
    assert node.found == value
    assert node.text == node.label == str(expression)
    assert node.truth is expression.evaluate(publication)


@given(expressions(), publications())
def test_every_node_has_the_truth_that_it_evaluates_to(expression: Expression, publication: dict[str, Value]) -> None:
    explanation = explain(expression, publication)
    assert explanation.truth is expression.evaluate(publication)
    assert explanation.is_match is expression.matches(publication)
    for node in explanation.nodes:
        assert node.truth is node.expression.evaluate(publication)
        assert (node.reason is not None) is isinstance(node.expression, Predicate)
        assert node.reason is None or (node.truth is None) is node.reason.endswith(": undefined")
    assert explanation.reason.startswith({True: "matches", False: "does not", None: "undefined"}[explanation.truth])
    assert len(str(explanation).replace("a\nb", "").splitlines()) >= len(explanation.nodes)


def test_the_tree_is_indented_and_its_reasons_are_in_one_column() -> None:
    expression = parse("symbol = 'IBM' AND (price < 100 OR NOT EXISTS region) AND TRUE")
    assert str(explain(expression, {"symbol": "IBM", "price": 130, "region": "US"})).splitlines() == [
        "false      AND",
        "  true       symbol = 'IBM'       symbol is 'IBM', equal to 'IBM'",
        "  false      OR",
        "    false      price < 100        price is 130, not below 100",
        "    false      NOT EXISTS region  region is there: 'US'",
        "  true       TRUE",
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a = 1 AND b = 1 AND c = 1", "does not match: b is 2, not equal to 1"),
        ("a = 1 AND missing = 1", "undefined, does not match: missing is missing"),
        ("missing = 1 AND b = 1", "does not match: b is 2, not equal to 1"),
        ("a = 1 AND b = 2", "matches: a is 1, equal to 1; b is 2, equal to 2"),
        ("a = 2 OR b = 2 OR c = 3", "matches: b is 2, equal to 2"),
        ("a = 2 OR b = 1", "does not match: a is 1, not equal to 2; b is 2, not equal to 1"),
        ("a = 2 OR missing = 1", "undefined, does not match: missing is missing"),
        ("NOT (a = 1 AND b = 1)", "matches: b is 2, not equal to 1"),
        ("a = 1 XOR b = 2", "does not match: a is 1, equal to 1; b is 2, equal to 2"),
        ("a = 1 XNOR missing = 2", "undefined, does not match: missing is missing"),
        ("a = 1 AND a = 1 AND a = 1", "matches: a is 1, equal to 1"),
        (
            "a > 5 OR a > 6 OR a > 7 OR a > 8 OR a > 9",
            "does not match: a is 1, not above 5; a is 1, not above 6; a is 1, not above 7; 2 more",
        ),
        ("TRUE", "matches, whatever the publication says"),
        ("a = 1 AND FALSE", "does not match, whatever the publication says"),
    ],
)
def test_the_reason_names_the_predicates_that_decide(text: str, reason: str) -> None:
    assert explain(parse(text), {"a": 1, "b": 2, "c": 3}).reason == reason


def test_a_shared_node_is_explained_once() -> None:
    shared = parse("a = 1 AND b = 1")
    explanation = explain(And((shared, Not(shared))), {"a": 1})
    assert [(node.label, node.is_repeated) for node in explanation.nodes] == [
        ("AND", False),
        ("AND", False),
        ("a = 1", False),
        ("b = 1", False),
        ("NOT", False),
        ("AND (as above)", True),
    ]


def test_expressions_that_are_huge_when_written_out_or_very_deep_are_explained() -> None:
    chain = " XOR ".join(["a = 1"] * 200)
    assert explain(negation_normal_form(parse(chain)), {"a": 1}).truth is False
    deep = parse_trusted("NOT " * 10_000 + "a = 1")
    assert explain(deep, {"a": 1}).reason == "matches: a is 1, equal to 1"


def test_a_publication_is_checked_first() -> None:
    with pytest.raises(ValueRefusedError, match="attribute 'a': list is not a value"):
        explain(TRUE, {"a": []})  # type: ignore[dict-item]


def test_an_infinite_value_is_explained() -> None:
    predicate = Predicate("a", Operator.LT, (1,))
    assert explain(predicate, {"a": float("-inf")}).reason == "matches: a is -inf, below 1"
