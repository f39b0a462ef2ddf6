"""The form of PADRES: `[class,eq,'STOCK'],[symbol,eq,IBM],[price,>,80]`, a conjunction of triples.

    numbers and strings   =  eq  !=  <>  neq  <  <=  >  >=
    strings               str-lt  str-le  str-gt  str-ge  str-prefix  str-postfix  str-contains
    presence              isPresent; the value after it, which PADRES requires to know the type, is optional here

A string is in single or double quotes (a doubled quote is one quote inside). It may be plain if it is one word that is
not a number, `true` or `false`. A name with spaces or commas is in quotes, too. Operators may be in any case. A single
triple is parsed as a predicate, without an AND.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

from matching.errors import ExpressionError, ParseError
from matching.expressions.model import And, Expression, Operator, Predicate
from matching.expressions.printing import value_text
from matching.expressions.values import TypeClass, Value
from matching.languages.parser import (
    DEFAULT_LIMITS,
    END,
    Form,
    ParseLimits,
    Unexpected,
    describe_expected,
    quoted,
    run_parser,
)
from matching.languages.tokens import NOT_NUMBERS, NUMBER, LocatedValue, build_predicate, parse_number_token, unquote
from matching.nearest import nearest

if TYPE_CHECKING:
    from lark import Lark, Token

_GRAMMAR = r"""
    start: predicate (_COMMA predicate)*
    predicate: _OPEN name _COMMA WORD [_COMMA value] _CLOSE
    name: WORD | STRING
    value: WORD | STRING
    WORD: /[^\s,\[\]'"]+/
    STRING: /'[^']*(?:''[^']*)*'(?!')|"[^"]*(?:""[^"]*)*"(?!")/
    _OPEN: "["
    _CLOSE: "]"
    _COMMA: ","
    %ignore /\s+/
"""

_OPERATORS = {
    "=": Operator.EQ,
    "eq": Operator.EQ,
    "!=": Operator.NE,
    "<>": Operator.NE,
    "neq": Operator.NE,
    "<": Operator.LT,
    "<=": Operator.LE,
    ">": Operator.GT,
    ">=": Operator.GE,
    "str-lt": Operator.LT,
    "str-le": Operator.LE,
    "str-gt": Operator.GT,
    "str-ge": Operator.GE,
    "str-prefix": Operator.STARTS_WITH,
    "str-postfix": Operator.ENDS_WITH,
    "str-contains": Operator.CONTAINS,
    "isPresent": Operator.EXISTS,
}
_SPELLINGS = {word.lower(): word for word in _OPERATORS}
_WORDS_FOR_STRINGS = {operator: word for word, operator in reversed(_OPERATORS.items()) if word[0].isalpha()}
_WORDS_FOR_OTHERS = {operator: word for word, operator in _OPERATORS.items() if not word[0].isalpha()}
_PLAIN_WORD = re.compile(r"[^\s,\[\]'\"]+")


def parse_padres(text: str, limits: ParseLimits = DEFAULT_LIMITS) -> Expression:
    """Parses an expression in the form of PADRES."""
    expression: Expression = run_parser(_FORM, text, limits)
    return expression


def to_padres(expression: Expression) -> str:
    """Writes a predicate, or an AND of predicates, in the form of PADRES. Raises if PADRES lacks an operator."""
    parts = expression.children if isinstance(expression, And) and expression.children else (expression,)
    return ",".join(map(_triple, parts))


def _triple(part: Expression) -> str:
    if not isinstance(part, Predicate):
        raise ExpressionError(f"the PADRES form holds a predicate or an AND of predicates, not {part!r}")
    words = _WORDS_FOR_STRINGS if part.type_class in (TypeClass.STRING, TypeClass.ANY) else _WORDS_FOR_OTHERS
    if part.operator not in words:
        raise ExpressionError(f"the PADRES form has no operator for {part}")
    name = part.attribute
    if not _PLAIN_WORD.fullmatch(name):
        name = '"' + name.replace('"', '""') + '"'
    return f"[{','.join((name, words[part.operator], *map(_value_text, part.values)))}]"


def _value_text(value: Value) -> str:
    return value_text(value).lower() if isinstance(value, bool) else value_text(value)


class _Builder:
    """Builds the expression. The parser calls a method when it completes the rule of the same name."""

    def start(self, children: list[Expression]) -> Expression:
        return And.of(children)

    def predicate(self, children: tuple[LocatedValue, Token, LocatedValue | None]) -> Predicate:
        name, word, operand = children
        spelling = _SPELLINGS.get(word.lower())
        if spelling is None:
            raise _refused(f"unknown operator {quoted(word)}{nearest(word.lower(), _OPERATORS)}", word)
        operator = _OPERATORS[spelling]
        if operator is Operator.EXISTS:
            return build_predicate(name, operator, ())
        if operand is None:
            raise _refused(f"the operator {quoted(word)} needs a value", word)
        if spelling.startswith("str-") and not isinstance(operand.value, str):
            raise _refused(f"{spelling} needs a string, not {operand.token}; write '{operand.token}'", operand.token)
        return build_predicate(name, operator, (operand,))

    def name(self, children: list[Token]) -> LocatedValue:
        token = children[0]
        return LocatedValue(unquote(token) if token.type == "STRING" else str(token), token)

    def value(self, children: list[Token]) -> LocatedValue:
        token = children[0]
        if token.type == "STRING":
            return LocatedValue(unquote(token), token)
        if NUMBER.fullmatch(token):
            return parse_number_token(token)
        if token.lstrip("+-").lower() in NOT_NUMBERS:
            raise _refused(f"{quoted(token)} is not a value; for the string write it in quotes", token)
        return LocatedValue({"true": True, "false": False}.get(token.lower(), str(token)), token)


def _refused(problem: str, token: Token) -> ParseError:
    return ParseError(problem, line=token.line, column=token.column, token=str(token))


@cache
def _parser() -> Lark:
    from lark import Lark

    builder: Any = _Builder()  # lark looks up methods by the names of rules; it does not need its own class
    return Lark(_GRAMMAR, parser="lalr", lexer="basic", transformer=builder)


_EXPECTATIONS = (
    ({"WORD", "STRING"}, ("a value",)),
    ({"WORD"}, ("an operator",)),
    ({"_COMMA"}, ("','",)),
    ({"_OPEN"}, ("'['",)),
    ({"_CLOSE"}, ("']'",)),
    ({END}, ("the end",)),
)


def _expected(unexpected: Unexpected) -> list[str]:
    if unexpected.previous is not None and unexpected.previous.type == "_OPEN":
        return ["an attribute name"]
    return describe_expected(unexpected.accepted, _EXPECTATIONS)


def _explain(unexpected: Unexpected) -> str | None:
    token, previous = unexpected.token, unexpected.previous
    if token.type == "WORD" and previous is not None and previous.type == "WORD" and "_CLOSE" in unexpected.accepted:
        return f"unexpected {quoted(token)}; a value with spaces stands in quotes"
    return None


def _explain_character(rest: str) -> str | None:
    return f"the string {quoted(rest)} is not closed" if rest[0] in "'\"" else None


_FORM = Form(_parser, _expected, _explain, _explain_character, counted={"_OPEN"}, brackets={"_OPEN": "_CLOSE"})
