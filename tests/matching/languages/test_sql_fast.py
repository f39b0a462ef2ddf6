"""The fast parser returns the same expression as the grammar for plain conjunctions, and None for all other texts."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matching.errors import MatchingError
from matching.languages.sql import parse, parse_with_grammar
from matching.languages.sql_fast import parse_plain_conjunction
from tests.harness.expression_strategies import expressions

PIECES = (
    *("a", "b.c", "_x9", "and", "AND", "NOT", "TRUE", "BETWEEN", "EXISTS a", "(", ")", ",", "IN (1)", "é", '"q"', ".5"),
    *("=", "!=", "<", "<=", ">", ">=", "==", "=>", "<>", " ", "  ", "\n", "\t", "\u2003"),
    *("1", "-2", "+3", "1.", "1.5", "1e3", "1e999", "9" * 30, "01", "1.2.3", "1x", "'s'", "''", "'it''s'", "'", "'a''"),
    *(" AND ", " OR ", "a = 1", "b < 2", "c BETWEEN 1 AND 2", "d BETWEEN 'a' AND 'b'", "e BETWEEN 1 AND 'x'"),
)


def by_grammar(text: str) -> object:
    try:
        return parse_with_grammar(text)
    except MatchingError as error:
        return type(error)


@settings(max_examples=1_500)
@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=9).map("".join))
def test_the_fast_path_agrees_with_the_grammar(text: str) -> None:
    quick = parse_plain_conjunction(text, 4_096)
    assert quick is None or quick == by_grammar(text)


@settings(max_examples=300)
@given(expressions())
def test_so_it_is_with_everything_that_is_printed(expression: object) -> None:
    text = str(expression)
    quick = parse_plain_conjunction(text, 4_096)
    assert quick is None or quick == parse_with_grammar(text)


@pytest.mark.parametrize(
    "text",
    [
        "symbol = 'IBM' AND price BETWEEN 80 AND 120",
        "a=1",
        "device.temperature >= -3.5 AND room != 'it''s'",
        " a < 1e6 AND b > .5 ",
    ],
)
def test_plain_conjunctions_need_no_grammar(text: str) -> None:
    assert parse_plain_conjunction(text, 4_096) == parse_with_grammar(text)


def test_more_predicates_than_allowed_are_left_to_the_grammar_which_refuses_them() -> None:
    assert parse_plain_conjunction("a = 1 AND b = 2", 1) is None
    with pytest.raises(MatchingError):
        parse(" AND ".join(["a = 1"] * 5_000))
