"""Hypothesis strategies for values, predicates, expressions and publications.

Domains are small, so that matches are frequent. Most predicates and publications use an attribute with its usual class:
`a` and `b` are numbers, `s` and `t` strings, `f` is a boolean. Both draw from the same few values. The rest are hard
cases for indexes. They have other classes under the same name, missing attributes, integers that no double can
represent, and infinite numbers in publications. They also have empty and non-ASCII strings, and names that need quotes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from hypothesis import strategies as st

from matching.expressions.model import (
    FALSE,
    ORDER_OPERATORS,
    PATTERN_OPERATORS,
    PRESENCE_OPERATORS,
    RANGE_OPERATORS,
    SET_OPERATORS,
    STRING_OPERATORS,
    TRUE,
    And,
    Expression,
    Not,
    Operator,
    Or,
    Predicate,
    Xnor,
    Xor,
)
from matching.expressions.values import TypeClass, Value

USUAL_CLASSES = {
    "a": TypeClass.NUMBER,
    "b": TypeClass.NUMBER,
    "s": TypeClass.STRING,
    "t": TypeClass.STRING,
    "f": TypeClass.BOOLEAN,
    "dev.temp_1": TypeClass.NUMBER,
    'x "y"': TypeClass.STRING,
    "and": TypeClass.BOOLEAN,
}
ATTRIBUTES = ("a", "b", "s", "t", "f")
"""Enough for an index. The odd names are for round trips of the languages."""
ODD_ATTRIBUTES = tuple(USUAL_CLASSES)

SMALL_INTS = (-2, -1, 0, 1, 2, 3, 4, 5)
LARGE_INTS = (2**53 - 1, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, 2**63 - 2, -(2**63))
SMALL_FLOATS = (-1.5, -0.0, 0.0, 0.5, 1.0, 2.0, 2.5, 4.5)
LARGE_FLOATS = (float(2**53), 2.0**63, -(2.0**63), 2.0**64, 1e300, -1.7976931348623157e308, 5e-324)
INFINITIES = (float("inf"), float("-inf"))
STRINGS = ("", "a", "b", "aa", "ab", "ba", "aba", "abb", "é", "aé", "'", "it's", '"', "%", "_a", "\0", "😀", "a\nb")
PATTERNS = ("a", "^a", "b$", "^ab?$", "a|é", "^$", "a.b", "(a+)+$", "[^ab]", "(?i)A", "(?s)a.b", "'")


def numbers() -> st.SearchStrategy[Value]:
    """Finite numbers, as in predicates. Most are small."""
    small = st.sampled_from([*SMALL_INTS, *SMALL_FLOATS])
    return st.one_of(small, small, small, st.sampled_from([*LARGE_INTS, *LARGE_FLOATS]))


def strings() -> st.SearchStrategy[Value]:
    return st.one_of(st.sampled_from(STRINGS), st.text(alphabet="ab'é", max_size=3))


@cache
def values_of(type_class: TypeClass) -> st.SearchStrategy[Value]:
    return {TypeClass.NUMBER: numbers(), TypeClass.STRING: strings(), TypeClass.BOOLEAN: st.booleans()}[type_class]


def values() -> st.SearchStrategy[Value]:
    """Any value of a predicate."""
    return st.one_of(numbers(), strings(), st.booleans())


@cache
def published_values() -> st.SearchStrategy[Value]:
    """Any value of a publication, including infinite numbers."""
    return st.one_of(values(), st.sampled_from(INFINITIES))


@st.composite
def predicates(
    draw: st.DrawFn,
    attributes: Sequence[str] = ATTRIBUTES,
    operators: Sequence[Operator] = tuple(Operator),
) -> Predicate:
    attribute = draw(st.sampled_from(attributes))
    type_class = draw(_classes(attribute))
    fitting = [operator for operator in operators if _fits(operator, type_class)]
    operator = draw(st.sampled_from(fitting or operators))
    if not fitting:
        type_class = TypeClass.STRING if operator in STRING_OPERATORS else TypeClass.NUMBER
    return Predicate(attribute, operator, draw(_operands(operator, type_class)))


@cache
def _classes(attribute: str) -> st.SearchStrategy[TypeClass]:
    usual = USUAL_CLASSES.get(attribute, TypeClass.NUMBER)
    return st.sampled_from((usual, usual, usual, usual, TypeClass.NUMBER, TypeClass.STRING, TypeClass.BOOLEAN))


def _fits(operator: Operator, type_class: TypeClass) -> bool:
    if operator in STRING_OPERATORS:
        return type_class is TypeClass.STRING
    return type_class is not TypeClass.BOOLEAN or operator not in ORDER_OPERATORS


@cache
def _operands(operator: Operator, type_class: TypeClass) -> st.SearchStrategy[tuple[Value, ...]]:
    if operator in PRESENCE_OPERATORS:
        return st.just(())
    if operator in PATTERN_OPERATORS:
        return st.tuples(st.sampled_from(PATTERNS))
    one = values_of(type_class)
    if operator in SET_OPERATORS:
        return st.lists(one, min_size=1, max_size=4).map(tuple)
    if operator in RANGE_OPERATORS:
        pairs = st.tuples(one, one)
        # Most are in order, as people write them. The reverse is allowed, and matches no value.
        in_order: st.SearchStrategy[tuple[Value, ...]] = pairs.map(lambda pair: tuple(sorted(pair)))
        return st.one_of(in_order, in_order, in_order, pairs)
    return st.tuples(one)


def conjunctions(
    min_size: int = 1,
    max_size: int = 4,
    attributes: Sequence[str] = ATTRIBUTES,
    operators: Sequence[Operator] = tuple(Operator),
) -> st.SearchStrategy[Expression]:
    """A predicate, or an AND of several, often on the same attribute. Also TRUE if `min_size` is 0."""
    parts = st.lists(predicates(attributes, operators), min_size=min_size, max_size=max_size)
    return parts.map(And.of)


def expressions(
    max_leaves: int = 12,
    attributes: Sequence[str] = ATTRIBUTES,
    operators: Sequence[Operator] = tuple(Operator),
) -> st.SearchStrategy[Expression]:
    """Any expression: nested, with all connectives, constants, and repeated subexpressions."""
    one = predicates(attributes, operators)
    leaves = st.one_of(one, one, one, one, one, st.sampled_from((TRUE, FALSE)))
    return st.recursive(leaves, _combined, max_leaves=max_leaves)


def _combined(parts: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    several = st.lists(parts, min_size=2, max_size=4)
    return st.one_of(
        several.map(And),
        several.map(Or),
        parts.map(Not),
        st.builds(Xor, parts, parts),
        st.builds(Xnor, parts, parts),
        st.tuples(st.sampled_from(_REPETITIONS), parts, parts).map(lambda drawn: drawn[0](drawn[1], drawn[2])),
    )


_REPETITIONS: tuple[Callable[[Expression, Expression], Expression], ...] = (
    lambda one, other: And((one, other, one)),
    lambda one, other: Or((And((one, other)), And((Not(one), other)))),
    lambda one, other: Xor(one, And((one, other))),
    lambda one, other: Or((Xnor(one, other), Xor(other, one))),
)


@st.composite
def publications(
    draw: st.DrawFn, attributes: Sequence[str] = ATTRIBUTES, max_size: int | None = None
) -> dict[str, Value]:
    """Some of the attributes. Most values are of the attribute's usual class."""
    chosen = draw(st.lists(st.sampled_from(attributes), unique=True, max_size=max_size))
    publication: dict[str, Value] = {}
    for attribute in chosen:
        publication[attribute] = draw(_published_under(attribute))
    return publication


@cache
def _published_under(attribute: str) -> st.SearchStrategy[Value]:
    usual = values_of(USUAL_CLASSES.get(attribute, TypeClass.NUMBER))
    return st.one_of(usual, usual, usual, published_values())
