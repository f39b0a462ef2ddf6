"""A fast parser for plain conjunctions such as `symbol = 'IBM' AND price BETWEEN 80 AND 120`.

Most subscriptions have this shape, and a broker parses thousands of them when clients connect. All other texts, and all
invalid ones, are left to the grammar. The grammar alone defines the language. Tests check that this parser returns the
same expression as the grammar.
"""

from __future__ import annotations

import re

from matching.errors import ExpressionError, ValueRefusedError
from matching.expressions.model import And, Expression, Operator, Predicate
from matching.expressions.printing import KEYWORDS
from matching.expressions.values import Value
from matching.languages.tokens import NUMBER, parse_number

_VALUE = rf"'[^']*(?:''[^']*)*'(?!')|{NUMBER.pattern}(?![\w.])"
_CONDITION = re.compile(
    rf"""\s*(?P<name>[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+)*)
    \s*(?:(?P<sign>=|!=|<=|>=|<|>)(?![=<>!~^&|])\s*(?P<value>{_VALUE})
       |\bBETWEEN\s*(?P<low>{_VALUE})\s*\bAND\b\s*(?P<high>{_VALUE}))
    \s*(?:\bAND\b(?P<more>)|$)""",
    re.VERBOSE | re.ASCII,
)
_OPERATORS = {
    "=": Operator.EQ,
    "!=": Operator.NE,
    "<": Operator.LT,
    "<=": Operator.LE,
    ">": Operator.GT,
    ">=": Operator.GE,
}


def parse_plain_conjunction(text: str, max_predicates: int) -> Expression | None:
    """Parses the text, or returns None if the grammar must parse it."""
    predicates: list[Predicate] = []
    position, expects_more = 0, True
    try:
        while expects_more:
            condition = _CONDITION.match(text, position)
            if condition is None or len(predicates) >= max_predicates:
                return None
            name, sign, value, low, high, more = condition.groups()
            if name.upper() in KEYWORDS:
                return None
            if sign is not None:
                predicates.append(Predicate(name, _OPERATORS[sign], (_value(value),)))
            else:
                predicates.append(Predicate(name, Operator.BETWEEN, (_value(low), _value(high))))
            position, expects_more = condition.end(), more is not None
    except (ExpressionError, ValueRefusedError):
        return None
    return predicates[0] if len(predicates) == 1 else And(predicates)


def _value(text: str) -> Value:
    return text[1:-1].replace("''", "'") if text[0] == "'" else parse_number(text)
