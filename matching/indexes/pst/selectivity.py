"""Sorts the conditions of a conjunction by how few publications satisfy them [THESIS 3.3].

The estimate uses the counted publications, and the shape of the condition while there are few of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from matching.expressions.conjunction import Condition
from matching.expressions.intervals import ValueSet, everything
from matching.expressions.values import Dimension, TypeClass, successor
from matching.indexes.pst.ps_tree import PSTree

PRIOR_PUBLICATIONS = 16
"""After this many publications, the counts have the same weight as the estimate from the condition's shape."""


def sort_by_selectivity(
    conditions: Iterable[Condition], tree_of: Callable[[Dimension], PSTree[Any] | None], publications: int
) -> list[Condition]:
    """Sorts the conditions. The first is the one that the fewest publications satisfy."""

    def order(condition: Condition) -> tuple[float, int | float]:
        guess, width = _shape(condition)
        tree = tree_of(condition.dimension)
        if tree is None or condition.values is None:
            return (guess, width)
        seen = publications - tree.created_at
        matching = tree.matching_publications(condition.values)
        return ((matching + guess * PRIOR_PUBLICATIONS) / (seen + PRIOR_PUBLICATIONS), width)

    return sorted(conditions, key=order)


def _shape(condition: Condition) -> tuple[float, int | float]:
    """Estimates the share of publications that satisfy the condition. Also returns its width, to break ties.

    The order is the ranking of operators in [THESIS 3.3]: =, IN, BETWEEN, one-sided, NOT IN, !=. The exact shares only
    matter relative to counted publications.
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
