"""The SQL-like form: operators, names, values, precedence, LIKE, limits and depth."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matching.errors import ExpressionTooLargeError, ParseError
from matching.expressions.model import FALSE, TRUE, And, Expression, Not, Operator, Or, Predicate, Xnor, Xor
from matching.expressions.printing import KEYWORDS
from matching.expressions.values import Value
from matching.languages.parser import UNLIMITED, ParseLimits
from matching.languages.sql import parse, parse_sql, parse_trusted
from tests.harness.expression_strategies import expressions, publications


def a(value: Value) -> Predicate:
    return Predicate("a", Operator.EQ, (value,))


ONE, TWO, THREE, FOUR = a(1), a(2), a(3), a(4)


@pytest.mark.parametrize(
    ("text", "operator", "values"),
    [
        ("a = 1", Operator.EQ, (1,)),
        ("a == 1", Operator.EQ, (1,)),
        ("a != 1", Operator.NE, (1,)),
        ("a <> 1", Operator.NE, (1,)),
        ("a<1", Operator.LT, (1,)),
        ("a <= 1", Operator.LE, (1,)),
        ("a>-1", Operator.GT, (-1,)),
        ("a >= +1", Operator.GE, (1,)),
        ("a BETWEEN 1 AND 2.5", Operator.BETWEEN, (1, 2.5)),
        ("a not between 'x' and 'y'", Operator.NOT_BETWEEN, ("x", "y")),
        ("a IN (3, 1, 2, 1)", Operator.IN, (1, 2, 3)),
        ("a NOT IN ('US')", Operator.NOT_IN, ("US",)),
        ("a in (true, false)", Operator.IN, (False, True)),
        ("a STARTS WITH 'x'", Operator.STARTS_WITH, ("x",)),
        ("a NOT STARTS WITH 'x'", Operator.NOT_STARTS_WITH, ("x",)),
        ("a ENDS WITH 'x'", Operator.ENDS_WITH, ("x",)),
        ("a NOT ENDS WITH 'x'", Operator.NOT_ENDS_WITH, ("x",)),
        ("a CONTAINS 'x'", Operator.CONTAINS, ("x",)),
        ("a NOT CONTAINS 'x'", Operator.NOT_CONTAINS, ("x",)),
        ("a MATCHES '^x+'", Operator.MATCHES, ("^x+",)),
        ("a NOT MATCHES '(a+)+$'", Operator.NOT_MATCHES, ("(a+)+$",)),
        ("EXISTS a", Operator.EXISTS, ()),
        ("NOT EXISTS a", Operator.NOT_EXISTS, ()),
        ("a IS NOT NULL", Operator.EXISTS, ()),
        ("a is null", Operator.NOT_EXISTS, ()),
        ("a = 'it''s'", Operator.EQ, ("it's",)),
        ("a = ''''", Operator.EQ, ("'",)),
        ("a = ''", Operator.EQ, ("",)),
        ("a = 'two\nlines'", Operator.EQ, ("two\nlines",)),
        ("a = FALSE", Operator.EQ, (False,)),
        ("\n\t a\r\n=\u00a01  ", Operator.EQ, (1,)),
    ],
)
def test_each_operator_is_read(text: str, operator: Operator, values: tuple[Value, ...]) -> None:
    assert parse(text) == Predicate("a", operator, values)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("-7", -7),
        ("007", 7),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("0000000000000000000000000000001", 1),
        ("1.0", 1.0),
        ("1.", 1.0),
        (".5", 0.5),
        ("-.5e1", -5.0),
        ("1e3", 1000.0),
        ("1E+3", 1000.0),
        ("5e-324", 5e-324),
        ("1e-999", 0.0),
    ],
)
def test_a_number_is_an_int_exactly_when_it_is_written_as_one(text: str, value: int | float) -> None:
    predicate = parse(f"a = {text}")
    assert isinstance(predicate, Predicate)
    (read,) = predicate.values
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("price", "price"),
        ("_x9", "_x9"),
        ("device.temp", "device.temp"),
        ("device.0.temp_max", "device.0.temp_max"),
        ("größe", "größe"),
        ("android", "android"),
        ("notable", "notable"),
        ("isnull", "isnull"),
        ('"x y"', "x y"),
        ('"say ""hi"""', 'say "hi"'),
        ('"and"', "and"),
        ('"9"', "9"),
        ("\u0131s", "\u0131s"),
    ],
)
def test_names_are_plain_or_in_double_quotes(text: str, name: str) -> None:
    assert parse(f"{text} = 1") == Predicate(name, Operator.EQ, (1,))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("TRUE", TRUE),
        ("false", FALSE),
        ("(TRUE)", TRUE),
        ("TRUE AND a = 1", And((TRUE, ONE))),
        ("NOT FALSE", Not(FALSE)),
        ("a = 1 AND a = 2 AND a = 3", And((ONE, TWO, THREE))),
        ("(a = 1 AND a = 2) AND a = 3", And((And((ONE, TWO)), THREE))),
        ("a = 1 AND (a = 2 AND a = 3)", And((ONE, And((TWO, THREE))))),
        ("((a = 1) AND ((a = 2)))", And((ONE, TWO))),
        ("a = 1 OR a = 2 OR a = 3", Or((ONE, TWO, THREE))),
        ("(a = 1 OR a = 2) OR a = 3", Or((Or((ONE, TWO)), THREE))),
        ("a = 1 OR a = 2 AND a = 3", Or((ONE, And((TWO, THREE))))),
        ("(a = 1 OR a = 2) AND a = 3", And((Or((ONE, TWO)), THREE))),
        ("a = 1 XOR a = 2 AND a = 3", Xor(ONE, And((TWO, THREE)))),
        ("a = 1 OR a = 2 XOR a = 3", Or((ONE, Xor(TWO, THREE)))),
        ("a = 1 XOR a = 2 XNOR a = 3 XOR a = 4", Xor(Xnor(Xor(ONE, TWO), THREE), FOUR)),
        ("a = 1 XOR (a = 2 XNOR a = 3)", Xor(ONE, Xnor(TWO, THREE))),
        ("NOT a = 1 AND a = 2", And((Not(ONE), TWO))),
        ("NOT (a = 1 AND a = 2)", Not(And((ONE, TWO)))),
        ("NOT NOT a = 1", Not(Not(ONE))),
        ("NOT a IN (1)", Not(Predicate("a", Operator.IN, (1,)))),
        ("a BETWEEN 1 AND 2 AND a = 3", And((Predicate("a", Operator.BETWEEN, (1, 2)), THREE))),
        ("NOT (EXISTS a)", Not(Predicate("a", Operator.EXISTS))),
        ("NOT NOT EXISTS a", Not(Predicate("a", Operator.NOT_EXISTS))),
        ("NOT a IS NULL", Not(Predicate("a", Operator.NOT_EXISTS))),
        ("EXISTS a AND NOT EXISTS b", And((Predicate("a", Operator.EXISTS), Predicate("b", Operator.NOT_EXISTS)))),
    ],
)
def test_precedence_and_chains(text: str, expected: Expression) -> None:
    assert parse(text) == expected


EVERY_KEYWORD = """
    "1" = true xor not exists "2" or "3" not in (1, 2) and "4" is null xnor "5" between 1 and 2
    or "6" starts with '.' and "7" ends with '.' and "8" contains '.' and "9" matches '.' and "0" like '%' escape '!'
    or false
"""


@pytest.mark.parametrize("spell", [str.upper, str.title, str.swapcase])
def test_keywords_are_read_in_any_case(spell: Callable[[str], str]) -> None:
    assert set(re.findall("[a-z]+", EVERY_KEYWORD)) == {keyword.lower() for keyword in KEYWORDS}
    assert parse(spell(EVERY_KEYWORD)) == parse(EVERY_KEYWORD)


@pytest.mark.parametrize(
    ("pattern", "operator", "operand"),
    [
        ("'abc'", Operator.EQ, "abc"),
        ("''", Operator.EQ, ""),
        ("'abc%'", Operator.STARTS_WITH, "abc"),
        ("'abc%%'", Operator.STARTS_WITH, "abc"),
        ("'%abc'", Operator.ENDS_WITH, "abc"),
        ("'%abc%'", Operator.CONTAINS, "abc"),
        ("'%'", Operator.STARTS_WITH, ""),
        ("'%%'", Operator.STARTS_WITH, ""),
        ("'a_c'", Operator.MATCHES, r"(?s)\Aa.c\z"),
        ("'a%c'", Operator.MATCHES, r"(?s)\Aa.*c\z"),
        ("'_%'", Operator.MATCHES, r"(?s)\A..*\z"),
        ("'a.b_'", Operator.MATCHES, r"(?s)\Aa\.b.\z"),
        ("'é_\n'", Operator.MATCHES, "(?s)\\Aé.\\x0a\\z"),
        ("'50!%' ESCAPE '!'", Operator.EQ, "50%"),
        ("'!_%' ESCAPE '!'", Operator.STARTS_WITH, "_"),
        ("'!!%' ESCAPE '!'", Operator.STARTS_WITH, "!"),
        ("'100\\%' ESCAPE '\\'", Operator.EQ, "100%"),
    ],
)
def test_like_becomes_the_equivalent_operator(pattern: str, operator: Operator, operand: str) -> None:
    assert parse(f"a LIKE {pattern}") == Predicate("a", operator, (operand,))
    assert parse(f"a NOT LIKE {pattern}") == Predicate("a", operator.negated, (operand,))


def _is_like(text: str, pattern: str) -> bool:
    """LIKE implemented by its definition, one character of the pattern at a time."""
    if not pattern:
        return not text
    if pattern[0] == "%":
        return any(_is_like(text[skipped:], pattern[1:]) for skipped in range(len(text) + 1))
    return bool(text) and pattern[0] in ("_", text[0]) and _is_like(text[1:], pattern[1:])


@given(st.text("ab_%.\n😀", max_size=5), st.text("ab_%.\n😀", max_size=6))
def test_like_is_true_for_the_strings_of_its_definition(pattern: str, text: str) -> None:
    assert parse(f"a LIKE '{pattern}'").evaluate({"a": text}) is _is_like(text, pattern)


@given(expressions(), publications())
def test_an_expression_read_again_has_the_same_truth(expression: Expression, publication: dict[str, Value]) -> None:
    assert parse(str(expression)).evaluate(publication) is expression.evaluate(publication)


def test_a_thousand_levels_are_within_the_limits() -> None:
    assert parse("(" * 1000 + "a = 1" + ")" * 1000) == ONE
    negated = parse("NOT " * 1000 + "a = 1")
    assert negated.depth == 1001
    assert negated.evaluate({"a": 1}) is True


@pytest.mark.parametrize(
    "text", ["(" * 1001 + "a = 1" + ")" * 1001, "NOT " * 1001 + "a = 1", " XOR ".join(["TRUE"] * 1002)]
)
def test_more_levels_than_the_limit_are_refused(text: str) -> None:
    with pytest.raises(ExpressionTooLargeError, match=r"in levels, is 1,001, the limit is 1,000"):
        parse(text)


def test_predicates_are_counted_against_the_limit() -> None:
    kinds = ["a = 1", "a IN (1, 2)", "a BETWEEN 1 AND 2", "EXISTS a", "NOT EXISTS a", "a IS NULL", "a LIKE 'x'"]
    kinds += ["a STARTS WITH 'x'", "a ENDS WITH 'x'", "a CONTAINS 'x'", "a MATCHES 'x'"]
    text = " AND ".join(kinds)
    assert parse(text, ParseLimits(max_predicates=len(kinds))).size == len(kinds)
    with pytest.raises(ExpressionTooLargeError, match="in predicates, is 11, the limit is 10"):
        parse(text, ParseLimits(max_predicates=len(kinds) - 1))


@pytest.mark.parametrize("beginning", ["", "[", '{"'])
def test_a_text_beyond_the_limit_is_refused_before_it_is_looked_at(beginning: str) -> None:
    nonsense = beginning + "?" * 1_000_000
    with pytest.raises(ExpressionTooLargeError, match="in characters, is 1,000,0"):
        parse(nonsense)


def test_with_the_limits_raised_neither_length_nor_depth_is_a_problem() -> None:
    flat = parse(" AND ".join(["a = 1"] * 20_000), UNLIMITED)
    assert (len(flat.children), flat.depth) == (20_000, 2)
    assert parse("(" * 20_000 + "a = 1" + ")" * 20_000, UNLIMITED) == ONE
    assert parse("(a = 1 OR (a = 2 AND " * 5_000 + "a = 3" + "))" * 5_000, UNLIMITED).depth == 10_001


@pytest.mark.slow
def test_an_expression_of_a_megabyte_is_read_when_the_limits_allow_it() -> None:
    text = " AND ".join(f"attribute_{position % 100} = {position}" for position in range(50_000))
    assert len(text) > 1_000_000
    assert parse(text, UNLIMITED).size == 50_000
    assert parse("NOT " * 100_000 + "a = 1", UNLIMITED).depth == 100_001


def test_trusted_text_has_no_limits() -> None:
    assert parse_trusted("NOT " * 5_000 + "a = 1").depth == 5_001


@given(expressions())
def test_expressions_survive_pickling(expression: Expression) -> None:
    assert pickle.loads(pickle.dumps(expression)) == expression


def test_the_beginning_determines_the_form() -> None:
    expected = And((ONE, Predicate("s", Operator.EQ, ("x",))))
    assert parse("a = 1 AND s = 'x'") == expected
    assert parse(" [a,=,1],[s,eq,'x']") == expected
    one = '{"attribute": "a", "operator": "=", "value": 1}'
    other = '{"attribute": "s", "operator": "=", "value": "x"}'
    assert parse(f'\n{{"and": [{one}, {other}]}}') == expected
    with pytest.raises(ParseError):
        parse_sql("[a,=,1]")


def test_importing_matching_loads_no_parser_and_no_regular_expressions() -> None:
    heavy = ("lark", "re2", "rich", "msgpack", "typer")
    code = f"import sys, matching; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
