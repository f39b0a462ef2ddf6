"""The PADRES form: parsing, expressions that it cannot represent, and errors with their place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matching.errors import ExpressionError, ExpressionTooLargeError, ParseError
from matching.expressions.model import FALSE, TRUE, And, Expression, Not, Operator, Or, Predicate
from matching.expressions.values import Value
from matching.languages.padres import parse_padres, to_padres
from matching.languages.parser import ParseLimits
from matching.languages.sql import parse
from tests.harness.expression_strategies import ODD_ATTRIBUTES, conjunctions

REPRESENTABLE = (
    Operator.EQ,
    Operator.NE,
    Operator.LT,
    Operator.LE,
    Operator.GT,
    Operator.GE,
    Operator.STARTS_WITH,
    Operator.ENDS_WITH,
    Operator.CONTAINS,
    Operator.EXISTS,
)


@pytest.mark.parametrize(
    ("triple", "operator", "values"),
    [
        ("[a,eq,'IBM']", Operator.EQ, ("IBM",)),
        ("[a,eq,IBM]", Operator.EQ, ("IBM",)),
        ('[a,eq,"IBM"]', Operator.EQ, ("IBM",)),
        ("[a,eq,'it''s']", Operator.EQ, ("it's",)),
        ("[a,=,80]", Operator.EQ, (80,)),
        ("[a,eq,'80']", Operator.EQ, ("80",)),
        ("[a,eq,true]", Operator.EQ, (True,)),
        ("[a,eq,'true']", Operator.EQ, ("true",)),
        ("[a,neq,x-1]", Operator.NE, ("x-1",)),
        ("[a,<>,-1.5e3]", Operator.NE, (-1500.0,)),
        ("[a,!=,1]", Operator.NE, (1,)),
        ("[a,<,1]", Operator.LT, (1,)),
        ("[a,<=,1]", Operator.LE, (1,)),
        ("[a,>,1]", Operator.GT, (1,)),
        ("[a,>=,1]", Operator.GE, (1,)),
        ("[a,str-lt,x]", Operator.LT, ("x",)),
        ("[a,str-le,x]", Operator.LE, ("x",)),
        ("[a,str-gt,x]", Operator.GT, ("x",)),
        ("[a,STR-GE,x]", Operator.GE, ("x",)),
        ("[a,str-prefix,'x']", Operator.STARTS_WITH, ("x",)),
        ("[a,str-postfix,'x']", Operator.ENDS_WITH, ("x",)),
        ("[a,str-contains,'x']", Operator.CONTAINS, ("x",)),
        ("[a,isPresent,'any']", Operator.EXISTS, ()),
        ("[a,ispresent]", Operator.EXISTS, ()),
        (" [ a ,\n eq , 1 ] ", Operator.EQ, (1,)),
        ("['a',eq,1]", Operator.EQ, (1,)),
    ],
)
def test_each_operator_is_read(triple: str, operator: Operator, values: tuple[Value, ...]) -> None:
    assert parse_padres(triple) == Predicate("a", operator, values)


def test_several_triples_are_a_conjunction() -> None:
    assert parse("[symbol,eq,'IBM'],[price,>,80]") == parse("symbol = 'IBM' AND price > 80")


@given(conjunctions(attributes=ODD_ATTRIBUTES, operators=REPRESENTABLE))
def test_a_conjunction_reads_back_as_itself(expression: Expression) -> None:
    assert parse(to_padres(expression)) == expression


@pytest.mark.parametrize("text", ["a IN (1, 2)", "a NOT CONTAINS 'x'", "NOT EXISTS a", "a = 1 AND b BETWEEN 1 AND 2"])
def test_an_operator_that_padres_lacks_is_refused_by_name(text: str) -> None:
    with pytest.raises(ExpressionError, match="the PADRES form has no operator for "):
        to_padres(parse(text))


ONE = Predicate("a", Operator.EQ, (1,))


@pytest.mark.parametrize("expression", [TRUE, FALSE, Not(ONE), Or((ONE, ONE)), And((ONE, And((ONE, ONE))))])
def test_other_texts_than_conjunctions_of_predicates_are_refused(expression: Expression) -> None:
    with pytest.raises(ExpressionError, match="a predicate or an AND of predicates, not <"):
        to_padres(expression)


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("[", 1, 2, "the text ends, but the '[' at line 1, column 1 is not closed; expected an attribute name"),
        ("[a,eq,3", 1, 8, "the text ends, but the '[' at line 1, column 1 is not closed; expected ']'"),
        ("[]", 1, 2, "unexpected ']'; expected an attribute name"),
        ("[a]", 1, 3, "unexpected ']'; expected ','"),
        ("[a,'eq',3]", 1, 4, "unexpected 'eq'; expected an operator"),
        ("[a,eq]", 1, 4, "the operator 'eq' needs a value"),
        ("[a,foo,3]", 1, 4, "unknown operator 'foo'"),
        ("[a,eq,3],\n[b,str-prefx,'x']", 2, 4, "unknown operator 'str-prefx' (did you mean 'str-prefix'?)"),
        ("[a,eq,3],", 1, 10, "the text ends too early; expected '['"),
        ("[a,eq,3][b,eq,4]", 1, 9, "unexpected '['; expected ',' or the end"),
        ("[a,eq,3]]", 1, 9, "the ']' closes nothing; expected ',' or the end"),
        ("[a,eq,3,4]", 1, 8, "unexpected ','; expected ']'"),
        ("[a,eq,New York]", 1, 11, "unexpected 'York'; a value with spaces stands in quotes; expected ']'"),
        ("[a,eq,[3]]", 1, 7, "unexpected '['; expected a value"),
        ("[a,eq,'x]", 1, 7, "the string 'x] is not closed"),
        ("[a,<,true]", 1, 6, "a <: booleans have no order; use = or !="),
        ("[a,str-lt,80]", 1, 11, "str-lt needs a string, not 80; write '80'"),
        ("[a,eq,1e999]", 1, 7, "'1e999' is beyond the largest number, 1.7976931348623157e308"),
        ("[a,eq,-NaN]", 1, 7, "'-NaN' is not a value; for the string write it in quotes"),
        ("[a,eq,99999999999999999999]", 1, 7, "integer '99999999999999999999' does not fit in 64 bits"),
        ("['',eq,3]", 1, 2, "attribute name '' is not a non-empty string"),
    ],
)
def test_an_error_is_reported_with_its_place(text: str, line: int, column: int, message: str) -> None:
    with pytest.raises(ParseError) as refused:
        parse(text)
    assert str(refused.value) == f"line {line}, column {column}: {message}"


def test_triples_are_counted_against_the_limit() -> None:
    text = ",".join(["[a,eq,1]"] * 5)
    assert parse(text, ParseLimits(max_predicates=5)).size == 5
    with pytest.raises(ExpressionTooLargeError, match="in predicates, is 5, the limit is 4"):
        parse(text, ParseLimits(max_predicates=4))


@given(st.text("[]a,eq='\" 1>\n", max_size=14).map("[{}".format))
def test_any_text_in_brackets_is_an_expression_or_a_parse_error(text: str) -> None:
    try:
        parse(text)
    except ParseError as error:
        refused = error
    else:
        return
    assert refused.line is not None
