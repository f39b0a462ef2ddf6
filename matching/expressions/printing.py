"""Writes expressions as text, with as few parentheses as possible: `parse(to_text(expression)) == expression`.

Binding from strong to weak: NOT, AND, XOR and XNOR (left to right), OR. A node inside a node of the same kind has
parentheses, because `a AND b AND c` is one AND of three. `NOT EXISTS a` is a predicate. The negation of `EXISTS a` is
therefore written `NOT (EXISTS a)`.

An expression with shared nodes can be exponentially larger when written out. It is refused beyond a limit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from matching.errors import ExpressionTooLargeError
from matching.expressions.model import (
    PRESENCE_OPERATORS,
    RANGE_OPERATORS,
    SET_OPERATORS,
    And,
    Expression,
    Not,
    Operator,
    Or,
    Predicate,
    Xnor,
    Xor,
)
from matching.expressions.values import Value

LARGEST_TEXT_PREDICATES = 1_000_000
LARGEST_TEXT_NODES = 4 * LARGEST_TEXT_PREDICATES
"""Constants and NOTs do not count as predicates, so they have a limit of their own."""

KEYWORDS = frozenset(
    [
        "AND",
        "BETWEEN",
        "CONTAINS",
        "ENDS",
        "ESCAPE",
        "EXISTS",
        "FALSE",
        "IN",
        "IS",
        "LIKE",
        "MATCHES",
        "NOT",
        "NULL",
        "OR",
        "STARTS",
        "TRUE",
        "WITH",
        "XNOR",
        "XOR",
    ]
)
PLAIN_NAME = re.compile(r"[^\W\d]\w*(?:\.\w+)*")
"""Like NAME of the grammar: parts of letters, digits and underscores, joined by dots, no digit at the start."""

_OR, _XOR, _AND, _NOT, _LEAF = range(5)
_BINDING: dict[type[Expression], int] = {Or: _OR, Xor: _XOR, Xnor: _XOR, And: _AND, Not: _NOT, Predicate: _LEAF}
_WORDS: dict[type[Expression], str] = {Or: " OR ", Xor: " XOR ", Xnor: " XNOR ", And: " AND "}


def to_text(expression: Expression) -> str:
    """Writes the expression in the SQL-like form."""
    check_written_size(expression)
    return write(expression, _leaf_text, _parts)


def write(
    expression: Expression,
    leaf: Callable[[Expression], str],
    parts: Callable[[Expression], Sequence[str | Expression]],
) -> str:
    """Writes the expression without recursion. `leaf` writes a node without children, `parts` splits any other."""
    written: list[str] = []
    pending: list[str | Expression] = [expression]
    while pending:
        part = pending.pop()
        if isinstance(part, str):
            written.append(part)
        elif part.children:
            pending.extend(reversed(parts(part)))
        else:
            written.append(leaf(part))
    return "".join(written)


def check_written_size(expression: Expression) -> None:
    """Raises ExpressionTooLargeError if the tree, with shared nodes written out, is too large for text."""
    if expression.size > LARGEST_TEXT_PREDICATES:
        raise ExpressionTooLargeError(
            "the text of the expression, in predicates,", expression.size, LARGEST_TEXT_PREDICATES
        )
    written: dict[int, int] = {}
    for node in expression.nodes():
        written[id(node)] = 1 + sum(written[id(child)] for child in node.children)
    if written[id(expression)] > LARGEST_TEXT_NODES:
        raise ExpressionTooLargeError(
            "the text of the expression, in nodes,", written[id(expression)], LARGEST_TEXT_NODES
        )


def _leaf_text(node: Expression) -> str:
    if isinstance(node, Predicate):
        return predicate_text(node)
    return "TRUE" if isinstance(node, And) else "FALSE"


def _parts(node: Expression) -> list[str | Expression]:
    if isinstance(node, Not):
        child = node.children[0]
        is_exists = isinstance(child, Predicate) and child.operator is Operator.EXISTS
        return ["NOT ", *_grouped(child, is_exists or _binding(child) < _NOT)]
    own = _binding(node)
    parts: list[str | Expression] = []
    for position, child in enumerate(node.children):
        if position:
            parts.append(_WORDS[type(node)])
        is_left_of_chain = own == _XOR and position == 0
        parts += _grouped(child, _binding(child) < own if is_left_of_chain else _binding(child) <= own)
    return parts


def _binding(node: Expression) -> int:
    return _BINDING[type(node)] if node.children else _LEAF


def _grouped(node: Expression, needs_parentheses: bool) -> Sequence[str | Expression]:
    return ("(", node, ")") if needs_parentheses else (node,)


def predicate_text(predicate: Predicate) -> str:
    name, operator = name_text(predicate.attribute), predicate.operator
    if operator in PRESENCE_OPERATORS:
        return f"{operator} {name}"
    if operator in SET_OPERATORS:
        return f"{name} {operator} ({', '.join(map(value_text, predicate.values))})"
    if operator in RANGE_OPERATORS:
        lowest, highest = predicate.values
        return f"{name} {operator} {value_text(lowest)} AND {value_text(highest)}"
    return f"{name} {operator} {value_text(predicate.values[0])}"


def name_text(name: str) -> str:
    """The attribute name, in double quotes if it is a keyword or not plain."""
    if PLAIN_NAME.fullmatch(name) and name.upper() not in KEYWORDS:
        return name
    return '"' + name.replace('"', '""') + '"'


def value_text(value: Value) -> str:
    """The value as text that parses to the same value and type: 1.0 stays a float, 1 an int."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return repr(value)
