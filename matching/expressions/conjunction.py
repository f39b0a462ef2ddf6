"""Groups the predicates of a conjunction by dimension.

The predicates on one dimension form one condition, whose values are the intersection of theirs. If an intersection is
empty, the subscription never matches.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from matching.errors import UnsupportedExpressionError
from matching.expressions.intervals import ValueSet, is_exact, satisfying_all
from matching.expressions.model import Expression, Operator, Predicate
from matching.expressions.normal_forms import Clause, as_conjunction
from matching.expressions.values import Dimension, TypeClass


@dataclass(frozen=True, slots=True)
class Condition:
    """All predicates of a conjunction on one dimension."""

    dimension: Dimension
    predicates: tuple[Predicate, ...]
    values: ValueSet | None
    """The values to search a tree by. None if the predicates do not restrict them to intervals.

    That is so if there are only EXISTS, suffixes, substrings and patterns.
    """
    is_exact: bool
    """Whether the condition is true for exactly these values, so that the predicates need no evaluation."""


def require_conjunction(index: str, expression: Expression) -> Clause:
    """Returns the predicates of a conjunction. Raises UnsupportedExpressionError for any other expression."""
    clause = as_conjunction(expression)
    if clause is None:
        raise UnsupportedExpressionError(index, "conjunctions", f"{expression!r} has a disjunction")
    return clause


def conditions_of(predicates: Iterable[Predicate]) -> tuple[Condition, ...]:
    """Returns the conditions in the order of first occurrence.

    NOT EXISTS is left out, because no value of a publication leads to it.
    """
    grouped: dict[Dimension, list[Predicate]] = {}
    for predicate in predicates:
        if predicate.operator is not Operator.NOT_EXISTS:
            grouped.setdefault(predicate.dimension, []).append(predicate)
    return tuple(_condition(dimension, together) for dimension, together in grouped.items())


def _condition(dimension: Dimension, predicates: list[Predicate]) -> Condition:
    if dimension[1] is TypeClass.ANY:
        return Condition(dimension, tuple(predicates), None, True)
    values = satisfying_all(dimension[1], predicates)
    exact = all(is_exact(predicate) for predicate in predicates)
    return Condition(dimension, tuple(predicates), None if values.is_everything else values, exact)
