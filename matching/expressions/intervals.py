"""Sets of values of one class, as sorted disjoint half-open intervals.

The order of every class is discrete (see `values`). An interval `[lower, upper)` can therefore describe open and closed
ends: `x > 3` starts at the successor of 3. An interval whose upper end is None has no upper end. Two sets are equal as
Python objects exactly if they contain the same values. `is_empty` is exact.

PS-Tree splits dimensions at the ends of these intervals [THESIS 6]. Intersection and covering use them directly.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, TypeAlias

from matching.expressions.model import Operator, Predicate
from matching.expressions.values import TypeClass, Value, after_prefix, smallest, successor

Bound: TypeAlias = Value | None
Interval: TypeAlias = tuple[Value, Bound]


@dataclass(frozen=True, slots=True)
class ValueSet:
    """A set of values of one class, as sorted and disjoint intervals."""

    type_class: TypeClass
    intervals: tuple[Interval, ...]

    @property
    def is_empty(self) -> bool:
        return not self.intervals

    @property
    def is_everything(self) -> bool:
        return self.intervals == ((smallest(self.type_class), None),)

    def points(self, at_most: int) -> tuple[Value, ...] | None:
        """The values one by one, ascending, or None if there are more than `at_most`."""
        if len(self.intervals) > at_most:
            return None
        found: list[Value] = []
        for lower, upper in self.intervals:
            value: Bound = lower
            while value is not None and value != upper:
                if len(found) == at_most or not _is_countable(value, upper):
                    return None
                found.append(value)
                value = successor(value)
        return tuple(found)

    def __contains__(self, value: Value) -> bool:
        position = bisect_right(self.intervals, value, key=_START) - 1
        return position >= 0 and _is_before(value, self.intervals[position][1])

    def intersects(self, other: ValueSet) -> bool:
        """Whether the sets share a value. O(s log l) for s intervals in the smaller set and l in the larger."""
        few, many = self.intervals, other.intervals
        if len(few) > len(many):
            few, many = many, few
        for lower, upper in few:
            # Of the intervals that start before this one ends, the last one also ends last.
            position = (len(many) if upper is None else bisect_left(many, upper, key=_START)) - 1
            if position >= 0 and _is_before(lower, many[position][1]):
                return True
        return False

    def intersection(self, other: ValueSet) -> ValueSet:
        """The values in both sets. Linear in the number of intervals of both."""
        common: list[Interval] = []
        mine, theirs = 0, 0
        while mine < len(self.intervals) and theirs < len(other.intervals):
            (lower, upper), (other_lower, other_upper) = self.intervals[mine], other.intervals[theirs]
            start: Any = max(lower, other_lower)
            end = _smaller(upper, other_upper)
            if _is_before(start, end):
                common.append((start, end))
            if end == upper:
                mine += 1
            if end == other_upper:
                theirs += 1
        return ValueSet(self.type_class, tuple(common))

    def complement(self) -> ValueSet:
        """All other values of the class."""
        gaps: list[Interval] = []
        start: Bound = smallest(self.type_class)
        for lower, upper in self.intervals:
            if start is not None and start < lower:  # type: ignore[operator]
                gaps.append((start, lower))
            start = upper
            if upper is None:
                break
        if start is not None:
            gaps.append((start, None))
        return ValueSet(self.type_class, tuple(gaps))

    def is_within(self, other: ValueSet) -> bool:
        """Whether the other set contains all values of this one."""
        return self.intersection(other) == self


_START = itemgetter(0)


def _is_countable(value: Value, upper: Bound) -> bool:
    """Whether repeated successors of the value reach the upper end.

    Between two strings there are infinitely many others, unless they differ only in NUL characters at the end.
    """
    return not isinstance(value, str) or (isinstance(upper, str) and upper.startswith(value))


def _is_before(value: Any, bound: Bound) -> bool:
    return bound is None or bool(value < bound)


def _smaller(first: Any, second: Any) -> Bound:
    smaller: Bound
    if first is None or second is None:
        smaller = second if first is None else first
    else:
        smaller = min(first, second)
    return smaller


def everything(type_class: TypeClass) -> ValueSet:
    """The set of all values of the class."""
    return ValueSet(type_class, ((smallest(type_class), None),))


def of_values(type_class: TypeClass, values: Iterable[Value]) -> ValueSet:
    """The set of these values. Adjacent values form one interval."""
    joined: list[Interval] = []
    for value in sorted(set(values)):
        if joined and joined[-1][1] == value:
            joined[-1] = (joined[-1][0], successor(value))
        else:
            joined.append((value, successor(value)))
    return ValueSet(type_class, tuple(joined))


def _between(type_class: TypeClass, lower: Bound, upper: Bound) -> ValueSet:
    if lower is None or not _is_before(lower, upper):
        return ValueSet(type_class, ())
    return ValueSet(type_class, ((lower, upper),))


def satisfying(predicate: Predicate) -> ValueSet:
    """The values of the predicate's class for which it is true, or a larger set: see `is_exact`."""
    kind, values = predicate.type_class, predicate.values
    match predicate.operator:
        case Operator.EQ | Operator.IN:
            return of_values(kind, values)
        case Operator.LT:
            return _between(kind, smallest(kind), values[0])
        case Operator.LE:
            return _between(kind, smallest(kind), successor(values[0]))
        case Operator.GE:
            return _between(kind, values[0], None)
        case Operator.GT:
            return _between(kind, successor(values[0]), None)
        case Operator.BETWEEN:
            return _between(kind, values[0], successor(values[1]))
        case Operator.STARTS_WITH:
            return _between(kind, values[0], after_prefix(str(values[0])))
        case Operator.NE | Operator.NOT_IN | Operator.NOT_BETWEEN | Operator.NOT_STARTS_WITH:
            return satisfying(predicate.negation).complement()
        case _:
            return everything(kind)


def satisfying_all(type_class: TypeClass, predicates: Iterable[Predicate]) -> ValueSet:
    """The intersection of `satisfying` for these predicates of one class.

    Sets are intersected in pairs, then the results in pairs. A thousand `!=` on one attribute therefore take
    O(n log n).
    """
    sets = [satisfying(predicate) for predicate in predicates] or [everything(type_class)]
    while len(sets) > 1:
        odd_one = sets[-1:] if len(sets) % 2 else []
        sets = [one.intersection(other) for one, other in zip(sets[0::2], sets[1::2], strict=False)] + odd_one
    return sets[0]


INEXACT_OPERATORS = frozenset(
    (
        Operator.ENDS_WITH,
        Operator.NOT_ENDS_WITH,
        Operator.CONTAINS,
        Operator.NOT_CONTAINS,
        Operator.MATCHES,
        Operator.NOT_MATCHES,
    )
)


def is_exact(predicate: Predicate) -> bool:
    """Whether `satisfying` is exact. It is not for suffixes, substrings and patterns, which are not intervals."""
    return predicate.operator not in INEXACT_OPERATORS
