"""A conjunction by dimension, and which of its conditions rules out the most publications.

Several predicates on one dimension are one condition: their values are intersected, and an empty intersection is a
subscription that never matches. A condition's selectivity is estimated from the publications seen so far, and from
its shape while there are none [THESIS 3.3].
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from matching.errors import UnsupportedExpressionError
from matching.intervals import ValueSet, everything, is_exact, satisfying_all
from matching.model import Expression, Operator, Predicate
from matching.normal_forms import Clause, as_conjunction
from matching.ps_tree import PSTree
from matching.values import Dimension, TypeClass, successor

PRIOR_EVENTS = 16
"""After this many publications, what was seen weighs as much as the guess from the condition's shape."""


@dataclass(frozen=True, slots=True)
class Condition:
    """What a conjunction asks of one dimension."""

    dimension: Dimension
    predicates: tuple[Predicate, ...]
    values: ValueSet | None
    """None when a tree cannot narrow it down: EXISTS, suffixes, substrings and patterns alone."""
    is_exact: bool
    """Is the condition true for exactly these values, so that the predicates need no evaluation?"""


def conjunction_or_refuse(index: str, expression: Expression) -> Clause:
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


def by_selectivity(
    conditions: Iterable[Condition], tree_of: Callable[[Dimension], PSTree[Any] | None], events: int
) -> list[Condition]:
    """The conditions, the one that fewest publications satisfy first."""

    def order(condition: Condition) -> tuple[float, int | float]:
        guess, width = _shape(condition)
        tree = tree_of(condition.dimension)
        if tree is None or condition.values is None:
            return (guess, width)
        seen = events - tree.born
        matching = tree.matching_events(condition.values)
        return ((matching + guess * PRIOR_EVENTS) / (seen + PRIOR_EVENTS), width)

    return sorted(conditions, key=order)


def _shape(condition: Condition) -> tuple[float, int | float]:
    """A guess at the share of publications that satisfy the condition, and its width to break ties.

    The order is [THESIS 3.3]'s ranking of operators: =, IN, BETWEEN, one-sided, NOT IN, !=. The shares themselves
    matter only beside counted events.
    """
    if condition.values is None:
        return (1.0 if condition.is_exact else 0.6, 0)
    intervals = condition.values.intervals
    if not intervals:
        return (0.0, 0)
    if all(successor(lower) == upper for lower, upper in intervals):
        return (0.01 if len(intervals) == 1 else 0.05, len(intervals))
    if len(intervals) > 2 or (len(intervals) == 2 and _is_unbounded(condition)):
        return (0.95 if len(intervals) == 2 else 0.9, -len(intervals))
    return (0.5 if _is_unbounded(condition) else 0.25, _width(condition.values))


def _is_unbounded(condition: Condition) -> bool:
    assert condition.values is not None
    intervals = condition.values.intervals
    return intervals[-1][1] is None or intervals[0][0] == everything(condition.dimension[1]).intervals[0][0]


def _width(values: ValueSet) -> int | float:
    if values.type_class is not TypeClass.NUMBER:
        return 0
    widths: list[float] = [float(upper) - float(lower) for lower, upper in values.intervals if upper is not None]
    return sum(widths)
