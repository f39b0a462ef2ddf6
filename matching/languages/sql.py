"""The SQL-like form of expressions: `parse("symbol = 'IBM' AND price BETWEEN 80 AND 120")`.

    conditions   = (or ==)  != (or <>)  <  <=  >  >=      price < 100
                 BETWEEN … AND …, IN (…)                  region IN ('US', 'CA')
                 STARTS WITH, ENDS WITH, CONTAINS         symbol STARTS WITH 'IB'
                 MATCHES (RE2 syntax, searches anywhere)  symbol MATCHES '^[A-M]'
                 LIKE … [ESCAPE …]                        symbol LIKE 'I%'
                 EXISTS a, NOT EXISTS a                   also: a IS NOT NULL, a IS NULL
    negated      NOT before any of these words            region NOT IN ('US', 'CA')
    connectives  NOT, then AND, then XOR and XNOR from left to right, then OR; parentheses
    names        letters, digits and _, parts joined by dots (device.temp); any other name, and a keyword,
                 in double quotes ("" is one quote inside)
    values       12, -0.5, 1e6, 'text' ('' is one quote inside), TRUE, FALSE
    constants    TRUE matches every publication, FALSE none

Keywords may be in any case. `a AND b AND c` is one AND of three children; parentheses create a separate node. `parse`
reads text that begins with `[` as the PADRES form, and text that begins with `{` as the JSON form.
"""

from __future__ import annotations

import copyreg
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from matching.errors import ExpressionError
from matching.expressions.like import like_operator
from matching.expressions.model import FALSE, TRUE, And, Expression, Not, Operator, Or, Predicate, Xnor, Xor
from matching.expressions.printing import KEYWORDS, name_text
from matching.languages.parser import (
    DEFAULT_LIMITS,
    END,
    UNLIMITED,
    Form,
    ParseLimits,
    Unexpected,
    describe_expected,
    quoted,
    run_parser,
)
from matching.languages.sql_fast import parse_plain_conjunction
from matching.languages.tokens import NOT_NUMBERS, LocatedValue, build_predicate, error_at, parse_number_token, unquote
from matching.nearest import nearest

if TYPE_CHECKING:
    from lark import Lark, Token


def parse(text: str, limits: ParseLimits = DEFAULT_LIMITS) -> Expression:
    """Parses an expression in any of the three forms."""
    limits.check_length(text)
    beginning = text.lstrip()[:1]
    if beginning == "[":
        from matching.languages.padres import parse_padres

        return parse_padres(text, limits)
    if beginning == "{":
        from matching.languages.json import parse_json

        return parse_json(text, limits)
    return parse_sql(text, limits)


def parse_sql(text: str, limits: ParseLimits = DEFAULT_LIMITS) -> Expression:
    """Parses an expression in the SQL-like form."""
    expression = parse_plain_conjunction(text, limits.max_predicates)
    if expression is None:
        expression = parse_with_grammar(text, limits)
    limits.check_depth(expression.depth - 1)
    return expression


def parse_with_grammar(text: str, limits: ParseLimits = DEFAULT_LIMITS) -> Expression:
    """Like `parse_sql`, without the fast parser for plain conjunctions."""
    expression: Expression = run_parser(_FORM, text, limits)
    return expression


def parse_trusted(text: str) -> Expression:
    """Parses without limits, for text that this program wrote itself."""
    return parse(text, UNLIMITED)


def _reduce(expression: Expression) -> tuple[Callable[[str], Expression], tuple[str]]:
    return parse_trusted, (str(expression),)


# Expressions are pickled as text, so that pickling a deep expression does not overflow Python's stack.
for _kind in (And, Not, Or, Predicate, Xnor, Xor):
    copyreg.pickle(_kind, _reduce)


_COMPARISONS = {
    "=": Operator.EQ,
    "==": Operator.EQ,
    "!=": Operator.NE,
    "<>": Operator.NE,
    "<": Operator.LT,
    "<=": Operator.LE,
    ">": Operator.GT,
    ">=": Operator.GE,
}
_WORD_OPERATORS = {
    "BETWEEN": Operator.BETWEEN,
    "IN": Operator.IN,
    "STARTS": Operator.STARTS_WITH,
    "ENDS": Operator.ENDS_WITH,
    "CONTAINS": Operator.CONTAINS,
    "MATCHES": Operator.MATCHES,
}
_FILTERED_KEYWORDS = frozenset(("AND", "OR", "XOR", "XNOR", "WITH", "ESCAPE", "NULL"))
_TERMINALS = {word: f"_{word}" if word in _FILTERED_KEYWORDS else word for word in KEYWORDS}


class _Builder:
    """Builds the expression. The parser calls a method when it completes the rule of the same name."""

    def disjunction(self, children: list[Expression]) -> Expression:
        return Or(children)

    def conjunction(self, children: list[Expression]) -> Expression:
        return And(children)

    def xor(self, children: list[Expression]) -> Expression:
        return Xor(*children)

    def xnor(self, children: list[Expression]) -> Expression:
        return Xnor(*children)

    def negated(self, children: tuple[Token, Expression]) -> Expression:
        return Not(children[1])

    def true(self, _children: list[Token]) -> Expression:
        return TRUE

    def false(self, _children: list[Token]) -> Expression:
        return FALSE

    def exists(self, children: list[Any]) -> Predicate:
        return build_predicate(children[-1], Operator.EXISTS, ())

    def not_exists(self, children: list[Any]) -> Predicate:
        return build_predicate(children[-1], Operator.NOT_EXISTS, ())

    def presence(self, children: tuple[LocatedValue, Token, Token | None]) -> Predicate:
        name, _, is_not_null = children
        return build_predicate(name, Operator.EXISTS if is_not_null else Operator.NOT_EXISTS, ())

    def comparison(self, children: tuple[LocatedValue, Token, LocatedValue]) -> Predicate:
        name, sign, operand = children
        return build_predicate(name, _COMPARISONS[sign], (operand,))

    def test(self, children: list[Any]) -> Predicate:
        name, negation, word, *operands = children
        operator = _WORD_OPERATORS[word.type]
        return build_predicate(name, operator.negated if negation else operator, operands)

    def like(self, children: tuple[LocatedValue, Token | None, Token, LocatedValue, LocatedValue | None]) -> Predicate:
        name, negation, _, pattern, escape = children
        for operand in (pattern, escape):
            if operand is not None and not isinstance(operand.value, str):
                raise error_at(ExpressionError(f"LIKE needs a string, not {operand.token}"), operand.token)
        try:
            operator, text = like_operator(str(pattern.value), None if escape is None else str(escape.value))
        except ExpressionError as error:
            raise error_at(error, (escape or pattern).token) from None
        return build_predicate(name, operator.negated if negation else operator, (LocatedValue(text, pattern.token),))

    def name(self, children: list[Token]) -> LocatedValue:
        token = children[0]
        return LocatedValue(unquote(token) if token.type == "QUOTED_NAME" else str(token), token)

    def value(self, children: list[Token]) -> LocatedValue:
        token = children[0]
        if token.type == "NUMBER":
            return parse_number_token(token)
        return LocatedValue(unquote(token) if token.type == "STRING" else token.type == "TRUE", token)


@cache
def _parser() -> Lark:
    import importlib.resources

    from lark import Lark, Token

    def keyword(token: Token) -> Token:
        # Keywords have only ASCII letters, but some other letters have an ASCII letter as their upper case.
        terminal = _TERMINALS.get(token.upper()) if token.isascii() else None
        return token if terminal is None else Token.new_borrow_pos(terminal, token.value, token)

    def comparison(token: Token) -> Token:
        return token if token in _COMPARISONS else Token.new_borrow_pos("UNKNOWN_SIGNS", token.value, token)

    builder: Any = _Builder()  # lark looks up methods by the names of rules; it does not need its own class
    return Lark(
        importlib.resources.files("matching.languages").joinpath("sql.lark").read_text(encoding="utf-8"),
        parser="lalr",
        lexer="basic",
        transformer=builder,
        lexer_callbacks={"NAME": keyword, "COMPARISON": comparison},
    )


_NAMES = frozenset(("NAME", "QUOTED_NAME"))
_VALUES = frozenset(("STRING", "NUMBER", "TRUE", "FALSE"))
_OPERATORS = frozenset(("COMPARISON", "IS", "LIKE", *_WORD_OPERATORS))
_CONNECTIVES = frozenset(("_AND", "_OR", "_XOR", "_XNOR"))
_CONDITIONS = _NAMES | {"NOT", "TRUE", "FALSE", "_OPEN"}

_EXPECTATIONS = (
    (_OPERATORS | {"NOT"}, ("an operator",)),
    (_CONDITIONS | {"EXISTS"}, ("an attribute name", "NOT", "EXISTS", "TRUE", "FALSE", "'('")),
    (_CONDITIONS, ("an attribute name", "NOT", "TRUE", "FALSE", "'('")),
    (_VALUES, ("a value",)),
    (_NAMES, ("an attribute name",)),
    (_OPERATORS - {"COMPARISON", "IS"}, ("BETWEEN", "IN", "LIKE", "STARTS WITH", "ENDS WITH", "CONTAINS", "MATCHES")),
    (_CONNECTIVES, ("AND", "OR", "XOR", "XNOR")),
    ({"_AND"}, ("AND",)),
    ({"_WITH"}, ("WITH",)),
    ({"_ESCAPE"}, ("ESCAPE",)),
    ({"NOT"}, ("NOT",)),
    ({"_NULL"}, ("NULL",)),
    ({"_OPEN"}, ("'('",)),
    ({"_COMMA"}, ("','",)),
    ({"_CLOSE"}, ("')'",)),
    ({END}, ("the end",)),
)

_OPERATOR_WORDS = ("BETWEEN", "IN", "STARTS WITH", "ENDS WITH", "CONTAINS", "MATCHES", "LIKE", "IS NULL")
# The operators of other languages, each with its equivalent here.
_OPERATOR_HABITS = {
    "=>": ">=",
    "=<": "<=",
    "===": "=",
    "!==": "!=",
    "EQ": "=",
    "NE": "!=",
    "~": "MATCHES",
    "=~": "MATCHES",
    "REGEXP": "MATCHES",
    "RLIKE": "MATCHES",
}
_CONNECTIVE_HABITS = {"!": "NOT", "&": "AND", "&&": "AND", "|": "OR", "||": "OR", "^": "XOR"}


def _expected(unexpected: Unexpected) -> list[str]:
    return describe_expected(unexpected.accepted, _EXPECTATIONS)


def _explain(unexpected: Unexpected) -> str | None:
    """A message for a common mistake, or None."""
    token, accepted = unexpected.token, unexpected.accepted
    if unexpected.is_end:
        return None
    if token.type in ("UNKNOWN_SIGNS", "NAME") and accepted >= _OPERATORS:
        known = (*_COMPARISONS, *_OPERATOR_WORDS)
        return f"unknown operator {quoted(token)}{_suggestion(token, _OPERATOR_HABITS, known)}"
    if token.type == "UNKNOWN_SIGNS" or (token.type == "NAME" and accepted & _CONNECTIVES):
        return f"unexpected {quoted(token)}{_suggestion(token, _CONNECTIVE_HABITS, ('AND', 'OR', 'XOR', 'XNOR'))}"
    if accepted >= _VALUES and not accepted & _NAMES:
        return _explain_missing_value(unexpected)
    if accepted & _NAMES:
        return _explain_missing_name(token)
    return None


def _suggestion(token: Token, habits: Mapping[str, str], known: tuple[str, ...]) -> str:
    word = token.upper()
    return f" (did you mean {habits[word]!r}?)" if word in habits else nearest(word, known)


def _explain_missing_value(unexpected: Unexpected) -> str | None:
    token = unexpected.token
    if token.type == "_CLOSE" and unexpected.previous is not None and unexpected.previous.type == "_OPEN":
        return "the list of IN is empty"
    if token.lower() in NOT_NUMBERS:
        return f"{quoted(token)} is not a value; for the string write '{token}'"
    if token.type == "NAME":
        return f"{quoted(token)} is not a value; a string stands in single quotes: '{token}'"
    if token.type == "QUOTED_NAME":
        return f"{quoted(token)} is a name; a string stands in single quotes"
    return None


def _explain_missing_name(token: Token) -> str | None:
    if token.type in _VALUES - {"TRUE", "FALSE"}:
        hint = "a name stands plain or in double quotes" if token.type == "STRING" else "the attribute stands first"
        return f"{quoted(token)} is a value; {hint}"
    if token.upper() in KEYWORDS and token.type != "NAME":
        return f"{quoted(token)} is a keyword; as a name it is written {name_text(token)}"
    return None


def _explain_character(rest: str) -> str | None:
    if rest[0] == "'":
        return f"the string {quoted(rest)} is not closed"
    return f"the name {quoted(rest)} is not closed" if rest[0] == '"' else None


_FORM = Form(
    _parser, _expected, _explain, _explain_character, counted=_OPERATORS | {"EXISTS"}, brackets={"_OPEN": "_CLOSE"}
)
