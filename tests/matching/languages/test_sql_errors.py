"""Text that is not an expression is refused with its exact place, in the user's words."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matching.errors import ExpressionError, ParseError
from matching.languages.parser import ParseLimits
from matching.languages.sql import parse, parse_sql

CONDITION = "an attribute name, NOT, EXISTS, TRUE, FALSE or '('"
CONNECTIVE = "AND, OR, XOR, XNOR"


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("", 1, 1, f"the text is empty; expected {CONDITION}"),
        ("  \n ", 1, 1, f"the text is empty; expected {CONDITION}"),
        ("a", 1, 2, "the text ends too early; expected an operator"),
        ("a =", 1, 4, "the text ends too early; expected a value"),
        ("a = 1 AND", 1, 10, f"the text ends too early; expected {CONDITION}"),
        ("a BETWEEN 1", 1, 12, "the text ends too early; expected AND"),
        ("NOT", 1, 4, f"the text ends too early; expected {CONDITION}"),
        ("EXISTS", 1, 7, "the text ends too early; expected an attribute name"),
        ("a IS", 1, 5, "the text ends too early; expected NOT or NULL"),
        ("a IN", 1, 5, "the text ends too early; expected '('"),
        ("a IN (1", 1, 8, "the text ends, but the '(' at line 1, column 6 is not closed; expected ',' or ')'"),
        ("(a = 1", 1, 7, f"the text ends, but the '(' at line 1, column 1 is not closed; expected {CONNECTIVE} or ')'"),
        (
            "a = 1 AND\n (b = 2 OR (c = 3)\n",
            2,
            19,
            f"the text ends, but the '(' at line 2, column 2 is not closed; expected {CONNECTIVE} or ')'",
        ),
        ("a = 1)", 1, 6, f"the ')' closes nothing; expected {CONNECTIVE} or the end"),
        ("(a = )", 1, 6, "unexpected ')'; expected a value"),
        ("()", 1, 2, f"unexpected ')'; expected {CONDITION}"),
        ("a IN ()", 1, 7, "the list of IN is empty; expected a value"),
        ("a NOT IN ( )", 1, 12, "the list of IN is empty; expected a value"),
        ("a IN (1,)", 1, 9, "unexpected ')'; expected a value"),
        ("a IN (1 2)", 1, 9, "unexpected '2'; expected ',' or ')'"),
        ("a = 'x", 1, 5, "the string 'x is not closed"),
        ("a = 'x''", 1, 5, "the string 'x'' is not closed"),
        ('"a = 1', 1, 1, 'the name "a = 1 is not closed'),
        ("a = 1 # comment", 1, 7, "unexpected character '#'"),
        ("a = -", 1, 5, "unexpected character '-'"),
    ],
)
def test_broken_structure_is_refused_at_its_place(text: str, line: int, column: int, message: str) -> None:
    _assert_refused(text, line, column, message)


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("a LIEK 'x'", 1, 3, "unknown operator 'LIEK' (did you mean 'LIKE'?); expected an operator"),
        ("a startswith 'x'", 1, 3, "unknown operator 'startswith' (did you mean 'STARTS WITH'?); expected an operator"),
        ("a frobnicates 'x'", 1, 3, "unknown operator 'frobnicates'; expected an operator"),
        ("a => 3", 1, 3, "unknown operator '=>' (did you mean '>='?); expected an operator"),
        ("a =~ 'x'", 1, 3, "unknown operator '=~' (did you mean 'MATCHES'?); expected an operator"),
        ("a ! 3", 1, 3, "unknown operator '!' (did you mean '!='?); expected an operator"),
        ("! a = 3", 1, 1, f"unexpected '!' (did you mean 'NOT'?); expected {CONDITION}"),
        ("a = 1 && b = 2", 1, 7, f"unexpected '&&' (did you mean 'AND'?); expected {CONNECTIVE} or the end"),
        ("a = 1 andd b = 2", 1, 7, f"unexpected 'andd' (did you mean 'AND'?); expected {CONNECTIVE} or the end"),
        ("a = 1 b = 2", 1, 7, f"unexpected 'b'; expected {CONNECTIVE} or the end"),
        ("a LIKE 'x' b", 1, 12, f"unexpected 'b'; expected {CONNECTIVE}, ESCAPE or the end"),
        ("a BETWEEN 1 OR 2", 1, 13, "unexpected 'OR'; expected AND"),
        ("a STARTS 'x'", 1, 10, "unexpected 'x'; expected WITH"),
        ("a IS 3", 1, 6, "unexpected '3'; expected NOT or NULL"),
        ("a IS NOT 3", 1, 10, "unexpected '3'; expected NULL"),
        (
            "a NOT = 3",
            1,
            7,
            "unexpected '='; expected BETWEEN, IN, LIKE, STARTS WITH, ENDS WITH, CONTAINS or MATCHES",
        ),
        ("\n\n  b ?= 3", 3, 5, "unexpected character '?'"),
    ],
)
def test_unknown_words_are_refused_with_the_nearest_known_one(text: str, line: int, column: int, message: str) -> None:
    _assert_refused(text, line, column, message)


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("a = IBM", 1, 5, "'IBM' is not a value; a string stands in single quotes: 'IBM'; expected a value"),
        ('a = "IBM"', 1, 5, '"IBM" is a name; a string stands in single quotes; expected a value'),
        ("a = NaN", 1, 5, "'NaN' is not a value; for the string write 'NaN'; expected a value"),
        ("a < Infinity", 1, 5, "'Infinity' is not a value; for the string write 'Infinity'; expected a value"),
        ("a = NULL", 1, 5, "unexpected 'NULL'; expected a value"),
        ("'a' = 3", 1, 1, f"'a' is a value; a name stands plain or in double quotes; expected {CONDITION}"),
        ("3 < a", 1, 1, f"'3' is a value; the attribute stands first; expected {CONDITION}"),
        ("in = 3", 1, 1, f"'in' is a keyword; as a name it is written \"in\"; expected {CONDITION}"),
        ("EXISTS Not", 1, 8, "'Not' is a keyword; as a name it is written \"Not\"; expected an attribute name"),
        ("EXISTS 'a'", 1, 8, "'a' is a value; a name stands plain or in double quotes; expected an attribute name"),
        ('"" = 3', 1, 1, "attribute name '' is not a non-empty string"),
        ("a = 1e999", 1, 5, "'1e999' is beyond the largest number, 1.7976931348623157e308"),
        ("b = 1 OR\na IN (1, -1e999)", 2, 10, "'-1e999' is beyond the largest number, 1.7976931348623157e308"),
        ("a = 9223372036854775808", 1, 5, "integer '9223372036854775808' does not fit in 64 bits"),
        ("a = -9223372036854775809", 1, 5, "integer '-9223372036854775809' does not fit in 64 bits"),
        ("a IN (1, 'x', 2)", 1, 10, "a IN: values of several classes (number, string); write one list each"),
        ("a IN ('x', TRUE)", 1, 12, "a IN: values of several classes (boolean, string); write one list each"),
        ("a BETWEEN 1 AND 'x'", 1, 17, "a BETWEEN: values of several classes (number, string); write one list each"),
        ("a < TRUE", 1, 5, "a <: booleans have no order; use = or !="),
        ("a BETWEEN FALSE AND TRUE", 1, 11, "a BETWEEN: booleans have no order; use = or !="),
        ("a CONTAINS 3", 1, 12, "a CONTAINS: needs a string, not 3"),
        ("a LIKE 3", 1, 8, "LIKE needs a string, not 3"),
        ("a LIKE 'x' ESCAPE 3", 1, 19, "LIKE needs a string, not 3"),
        ("a LIKE 'x' ESCAPE '!!'", 1, 19, "ESCAPE takes one character, not '!!'"),
        ("a LIKE 'x!y' ESCAPE '!'", 1, 21, "LIKE 'x!y': the escape '!' is followed by 'y', not by %, _ or itself"),
        ("a LIKE 'x!' ESCAPE '!'", 1, 20, "LIKE 'x!': the escape '!' is followed by nothing, not by %, _ or itself"),
        ("b = 1 AND a MATCHES '(x'", 1, 21, "regular expression '(x' is not valid: missing ): (x"),
        ("a = '\ud800'", 1, 5, "a =: '\\ud800' has a lone surrogate at 0"),
        ('"\ud800" = 1', 1, 1, "attribute name: '\\ud800' has a lone surrogate at 0"),
    ],
)
def test_values_and_names_that_cannot_be_are_refused_at_their_place(
    text: str, line: int, column: int, message: str
) -> None:
    _assert_refused(text, line, column, message)


def _assert_refused(text: str, line: int, column: int, message: str) -> None:
    with pytest.raises(ParseError) as refused:
        parse(text)
    assert str(refused.value) == f"line {line}, column {column}: {message}"
    assert (refused.value.line, refused.value.column) == (line, column)


def test_the_error_carries_the_token_and_what_was_expected() -> None:
    with pytest.raises(ParseError) as refused:
        parse("price BETWEEN 80 120")
    assert refused.value.token == "120"
    assert refused.value.expected == ("AND",)
    assert refused.value.problem == "unexpected '120'"
    assert refused.value.exit_code == 2


def test_a_number_of_a_hundred_thousand_digits_is_refused_and_shortened() -> None:
    with pytest.raises(ParseError, match=r"integer '9{39}…' does not fit in 64 bits"):
        parse("a = " + "9" * 100_000, ParseLimits(max_length=200_000))


def test_an_error_after_twenty_thousand_levels_is_still_an_error_of_the_language() -> None:
    text = "(" * 20_000 + "a = 1"
    with pytest.raises(ParseError, match="the '\\(' at line 1, column 20000 is not closed"):
        parse(text, ParseLimits(max_depth=30_000))


WORDS = re.findall(
    r"\S+",
    "a b = != < ( ) ( ) , 1 -2.5 'x' \"n\" AND OR NOT XOR XNOR IN BETWEEN LIKE ESCAPE STARTS ENDS WITH CONTAINS "
    "MATCHES EXISTS IS NULL TRUE FALSE ' \" # NaN 1e999 => [ {",
)


def _refusal(text: str) -> ExpressionError | None:
    try:
        parse_sql(text)
    except ExpressionError as error:
        return error
    return None


@given(st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join))
def test_any_words_are_an_expression_or_a_parse_error_with_a_place_and_an_expectation(text: str) -> None:
    error = _refusal(text)
    if error is None:
        assert parse(str(parse(text))) == parse(text)
        return
    assert isinstance(error, ParseError)
    assert error.line == 1
    assert error.column is not None
    assert 1 <= error.column <= len(text) + 1
    assert error.expected or not error.problem.startswith(("unexpected '", "the text"))
    assert not any("_" in word or "$" in word for word in error.expected)


@given(st.text(max_size=20))
def test_any_text_is_an_expression_or_refused_as_one(text: str) -> None:
    error = _refusal(text)
    assert error is None or isinstance(error, ParseError)
