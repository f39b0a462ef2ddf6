"""The JSON form: parsing, errors with their place or path, and documents of any depth."""

from __future__ import annotations

import json

import pytest
from hypothesis import given

from matching.errors import ExpressionTooLargeError, ParseError
from matching.expressions.model import FALSE, TRUE, And, Expression, Not, Operator, Or, Predicate, Xnor, Xor
from matching.expressions.normal_forms import negation_normal_form
from matching.languages.json import Json, parse_json, parse_json_value, to_json, to_json_text
from matching.languages.parser import DEFAULT_LIMITS, UNLIMITED, ParseLimits
from matching.languages.sql import parse
from tests.harness.expression_strategies import ODD_ATTRIBUTES, expressions

ONE = Predicate("a", Operator.EQ, (1,))
KEY = "a key in double quotes"
ONE_JSON: Json = {"attribute": "a", "operator": "=", "value": 1}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (True, TRUE),
        (False, FALSE),
        (ONE_JSON, ONE),
        ({"and": [ONE_JSON, True]}, And((ONE, TRUE))),
        ({"or": [ONE_JSON, True]}, Or((ONE, TRUE))),
        ({"and": []}, TRUE),
        ({"or": []}, FALSE),
        ({"and": [ONE_JSON]}, ONE),
        ({"not": ONE_JSON}, Not(ONE)),
        ({"xor": [ONE_JSON, False]}, Xor(ONE, FALSE)),
        ({"xnor": [ONE_JSON, False]}, Xnor(ONE, FALSE)),
        ({"attribute": "a", "operator": "between", "values": [1, 2.5]}, Predicate("a", Operator.BETWEEN, (1, 2.5))),
        ({"attribute": "a", "operator": "NOT IN", "values": ["x"]}, Predicate("a", Operator.NOT_IN, ("x",))),
        ({"attribute": "a", "operator": "not_in", "values": ["x"]}, Predicate("a", Operator.NOT_IN, ("x",))),
        ({"attribute": "a", "operator": "starts-with", "value": "x"}, Predicate("a", Operator.STARTS_WITH, ("x",))),
        ({"attribute": "a", "operator": "==", "values": [True]}, Predicate("a", Operator.EQ, (True,))),
        ({"attribute": "a", "operator": "exists"}, Predicate("a", Operator.EXISTS)),
    ],
)
def test_each_shape_is_read_from_objects_and_from_text(source: Json, expected: Expression) -> None:
    assert parse_json(source) == expected
    assert parse_json(json.dumps(source)) == expected


@given(expressions(attributes=ODD_ATTRIBUTES))
def test_an_expression_reads_back_as_itself(expression: Expression) -> None:
    written = to_json(expression)
    assert parse_json(written) == expression
    assert json.loads(to_json_text(expression)) == written
    assert parse_json(to_json_text(expression)) == expression


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "{",
            f"line 1, column 2: the text ends, but the '{{' at line 1, column 1 is not closed; expected {KEY} or '}}'",
        ),
        ('{"and": [}', "line 1, column 10: unexpected '}'; expected a value or ']'"),
        ('{"and": [true,]}', "line 1, column 15: unexpected ']'; expected a value"),
        ('{"a" 1}', "line 1, column 6: unexpected '1'; expected ':'"),
        ('{"not": true}}', "line 1, column 14: the '}' closes nothing; expected the end"),
        ('{"not":\n tru}', "line 2, column 2: 'tru' is not JSON; expected a value"),
        ('{"not": NaN}', "line 1, column 9: 'NaN' is not a number that JSON has; expected a value"),
        ('{"not": -Infinity}', "line 1, column 9: '-Infinity' is not a number that JSON has; expected a value"),
        ('{"not": 1e999}', "line 1, column 9: '1e999' is beyond the largest number, 1.7976931348623157e308"),
        ('{"not": 9223372036854775808}', "line 1, column 9: integer '9223372036854775808' does not fit in 64 bits"),
        ('{"not": 01}', "line 1, column 10: unexpected '1'; expected ',' or '}'"),
        ('{"not": true,\n "not": true}', 'line 2, column 2: the key "not" occurs twice'),
        ("{'not': true}", "line 1, column 2: strings stand in double quotes in JSON"),
        (
            '{"a": "\\x"}',
            'line 1, column 7: the string "\\x"} is not closed, or has a line break or an escape that JSON lacks',
        ),
    ],
)
def test_broken_json_is_refused_with_line_and_column(text: str, message: str) -> None:
    with pytest.raises(ParseError) as refused:
        parse(text)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (None, "at $: an expression is an object, true or false, not null"),
        ([], "at $: an expression is an object, true or false, not a list"),
        ({"and": [True, 3]}, "at $.and[1]: an expression is an object, true or false, not 3"),
        ({}, "at $: the key 'attribute' is missing"),
        ({"and": [True, {"not": {"attribute": "a"}}]}, "at $.and[1].not: the key 'operator' is missing"),
        ({"adn": []}, "at $.adn: unknown key 'adn' (did you mean 'and'?)"),
        (
            {"attribute": "a", "operator": "=", "valeu": 3},
            "at $.valeu: unknown key 'valeu' (did you mean 'value'?)",
        ),
        (
            {"and": [True, {"attribute": "a", "operator": "exist"}]},
            "at $.and[1].operator: unknown operator 'exist' (did you mean 'exists'?)",
        ),
        ({"attribute": "a", "operator": 3}, "at $.operator: an operator is a string, not 3"),
        ({"attribute": "a", "operator": "<"}, "at $: '<' needs the key 'value'"),
        ({"attribute": "a", "operator": "in"}, "at $: 'in' needs the key 'values'"),
        ({"attribute": "a", "operator": "in", "values": 3}, "at $.values: 'values' takes a list, not 3"),
        (
            {"attribute": "a", "operator": "=", "value": 3, "values": [3]},
            "at $.values: 'value' and 'values' stand in one object; keep one",
        ),
        ({"attribute": "a", "operator": "<", "values": [1, 2]}, "at $.values: a <: takes 1 value, got 2"),
        ({"attribute": "a", "operator": "exists", "value": 1}, "at $.value: a EXISTS: takes 0 values, got 1"),
        (
            {"attribute": "a", "operator": "in", "values": []},
            "at $.values: a IN: the list is empty; give at least one value",
        ),
        (
            {"attribute": "a", "operator": "in", "values": [1, "x"]},
            "at $.values: a IN: values of several classes (number, string); write one list each",
        ),
        (
            {"attribute": "a", "operator": "in", "values": [1, None]},
            "at $.values[1]: a IN: NoneType is not a value; use a number, a string or a boolean",
        ),
        ({"attribute": "a", "operator": "<", "value": True}, "at $.value: a <: booleans have no order; use = or !="),
        (
            {"or": [{"attribute": "a", "operator": "matches", "value": "("}, True]},
            "at $.or[0].value: regular expression '(' is not valid: missing ): (",
        ),
        (
            {"attribute": "a", "operator": "=", "value": float("nan")},
            "at $.value: a =: NaN is not a value, because it compares with nothing",
        ),
        ({"attribute": "", "operator": "exists"}, "at $.attribute: attribute name '' is not a non-empty string"),
        ({"attribute": 7, "operator": "exists"}, "at $.attribute: attribute name 7 is not a non-empty string"),
        ({"not": []}, "at $.not: an expression is an object, true or false, not a list"),
        ({"xor": [True]}, "at $.xor: 'xor' takes two expressions, not 1"),
        ({"and": {}}, "at $.and: 'and' takes a list, not an object"),
        ({"and": [True, False], "or": []}, "at $.or: 'and' stands alone in its object, not with 'or'"),
    ],
)
def test_wrong_structure_is_refused_with_its_path(source: Json, message: str) -> None:
    with pytest.raises(ParseError) as refused:
        parse_json(source)
    assert str(refused.value) == message
    assert refused.value.path is not None


def test_json_is_read_as_the_json_module_reads_it() -> None:
    text = r'{"a": [1, -2.5e3, "\u00e9\ud83d\ude00\n\"\\\/", true, null, {}, []], "": {"b": false}, "é": 0}'
    assert parse_json_value(text, DEFAULT_LIMITS) == json.loads(text)


def test_a_thousand_levels_are_within_the_limits_and_more_are_refused() -> None:
    expression: Expression = ONE
    for _ in range(500):
        expression = Not(And((TRUE, expression)))
    assert parse_json(to_json_text(expression)) == expression
    assert parse_json(to_json(expression)) == expression
    for source in (to_json_text(Not(expression)), to_json(Not(expression))):
        with pytest.raises(ExpressionTooLargeError, match=r"in levels, is 1,001, the limit is 1,000"):
            parse_json(source)


def test_depth_beyond_the_interpreters_stack_is_no_problem() -> None:
    expression = parse("NOT " * 20_000 + "a = 1", UNLIMITED)
    assert parse_json(to_json_text(expression), UNLIMITED) == expression
    brackets = '{"not": ' + "[" * 30_000
    with pytest.raises(ParseError, match="is not closed; expected a value or"):
        parse(brackets)


def test_an_object_that_contains_itself_is_refused() -> None:
    endless: dict[str, Json] = {}
    endless["not"] = endless
    with pytest.raises(ExpressionTooLargeError, match="in levels"):
        parse_json(endless)


def test_predicates_are_counted_against_the_limit() -> None:
    source: Json = {"and": [ONE_JSON] * 5}
    assert parse_json(source, ParseLimits(max_predicates=5)).size == 5
    with pytest.raises(ExpressionTooLargeError, match="in predicates, is 5, the limit is 4"):
        parse_json(source, ParseLimits(max_predicates=4))


def test_an_expression_that_is_huge_when_written_out_is_refused() -> None:
    chain: Expression = ONE
    for _ in range(100):
        chain = Xor(chain, Predicate("b", Operator.EQ, (1,)))
    for write in (to_json, to_json_text):
        with pytest.raises(ExpressionTooLargeError, match=r"in predicates, is over 10\^30, the limit is 1,000,000"):
            write(negation_normal_form(chain))
