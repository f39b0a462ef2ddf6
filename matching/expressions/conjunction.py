"""A conjunction by dimension.

Several predicates on one dimension are one condition: their values are intersected. An empty intersection is a
subscription that never matches.
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
    """What a conjunction asks of one dimension."""

    dimension: Dimension
    predicates: tuple[Predicate, ...]
    values: ValueSet | None
    """None when a tree cannot narrow it down: EXISTS, suffixes, substrings and patterns alone."""
    is_exact: bool
    """Is the condition true for exactly these values, so that the predicates need no evaluation?"""


def require_conjunction(index: str, expression: Expression) -> Clause:
    clause = as_conjunction(expression)
    if clause is None:
        raise UnsupportedExpressionError(index, "conjunctions", f"{expression!r} has a disjunction")
    return clause


def conditions_of(predicates: Iterable[Predicate]) -> tuple[Condition, ...]:
    """The conditions in order of first appearance. NOT EXISTS is none: no value of the publication leads to it."""
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
