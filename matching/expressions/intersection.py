"""Tests whether two expressions intersect (share a publication), and whether one covers the other.

An advertisement is relevant for a subscription if some publication satisfies both. A wrong "no" would lose
publications. A wrong "yes" only costs traffic. So `intersects` is exact on Boolean combinations of the basic operators
(= != < <= > >= BETWEEN IN STARTS WITH EXISTS and their negations). On others it may return a wrong True, but never a
wrong False. `covers` is exact on conjunctions of the basic operators, and never returns a wrong True.

An expression is converted once to a `Region`: a union of boxes, one for each conjunction of its disjunctive normal
form. A box maps attributes to constraints. Constraints on different attributes are independent. Two boxes therefore
share a publication exactly if their constraints on each common attribute intersect. One box covers another exactly if
each of its constraints covers the other's. An expression with more than `MAX_BOXES` conjunctions is widened to one box.
This box has the predicates that all solutions of the expression satisfy.

Undefined is not true: `a != 5` requires a number `a`, so TRUE covers it and it does not cover TRUE.

Cost: comparing two boxes takes O(attributes of the smaller one), with a binary search over intervals for each.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from matching.errors import ExpressionTooLargeError
from matching.expressions.intervals import ValueSet, is_exact, of_values, satisfying_all
from matching.expressions.model import TRUE, And, Expression, Operator, Predicate
from matching.expressions.normal_forms import Clause, as_conjunction, disjunctive_clauses, negation_normal_form
from matching.expressions.values import TypeClass, Value, after_prefix

MAX_BOXES = 128
MAX_POINTS = 256
"""Up to this many values, suffixes, substrings and patterns are tested against each value."""


def intersects(first: Expression, second: Expression) -> bool:
    """Whether a publication satisfies both. Only True can be wrong, and only with other than the basic operators."""
    return region_of(first).intersects(region_of(second))


def covers(first: Expression, second: Expression) -> bool:
    """Whether every publication that satisfies the second also satisfies the first. Only False can be wrong."""
    return first == second or region_of(first).covers(region_of(second))


def witness(first: Expression, second: Expression = TRUE) -> dict[str, Value] | None:
    """Returns a publication that satisfies both, or None if it finds none.

    For Boolean combinations of the basic operators, None proves that there is none. For others it does not.
    """
    for one in region_of(first).boxes:
        for other in region_of(second).boxes:
            publication = _example_publication(one, other)
            if publication is not None and first.matches(publication) and second.matches(publication):
                return publication
    return None


@lru_cache(maxsize=1024)
def region_of(expression: Expression) -> Region:
    """The region of an expression, from a cache."""
    return Region.of(expression)


@dataclass(frozen=True, slots=True)
class Constraint:
    """All predicates of a conjunction on one attribute. A constraint that no value satisfies is never created."""

    is_present: bool
    values: ValueSet | None = None
    """None if the constraint only requires presence or absence."""
    tests: tuple[Predicate, ...] = ()
    """Suffixes, substrings and patterns that the values must also satisfy. Intervals cannot describe them."""

    def intersects(self, other: Constraint) -> bool:
        mine, theirs = self.values, other.values
        if mine is None or theirs is None:
            return self.is_present is other.is_present
        if mine.type_class is not theirs.type_class:
            return False
        if self.tests or other.tests:
            return self.intersection(other) is not None
        return mine.intersects(theirs)

    def intersection(self, other: Constraint) -> Constraint | None:
        """The constraint that requires both, or None if no value satisfies it."""
        if self.values is None or other.values is None:
            if self.is_present is not other.is_present:
                return None
            return other if self.values is None else self
        if self.values.type_class is not other.values.type_class:
            return None
        return _make_constraint(self.values.intersection(other.values), (*self.tests, *other.tests))

    def is_within(self, other: Constraint) -> bool:
        """Whether all values of this constraint satisfy the other. Only False can be wrong, and only with tests."""
        if other.values is None:
            return self.is_present is other.is_present
        if self.values is None or self.values.type_class is not other.values.type_class:
            return False
        if not self.tests and not other.tests:
            return self.values.is_within(other.values)
        return self._is_limited_to(other.values) and all(self._implies_test(test) for test in other.tests)

    def _is_limited_to(self, values: ValueSet) -> bool:
        assert self.values is not None
        outside = self.values.intersection(values.complement()).points(MAX_POINTS)
        return outside is not None and not any(_passes(value, self.tests) for value in outside)

    def _implies_test(self, test: Predicate) -> bool:
        assert self.values is not None
        points = self.values.points(MAX_POINTS)
        if points is not None:
            return all(test.is_true_for(value) for value in points if _passes(value, self.tests))
        return _always_satisfy(self.values, self.tests, test.operator, _text(test))


ABSENT = Constraint(is_present=False)
PRESENT = Constraint(is_present=True)

Box: TypeAlias = Mapping[str, Constraint]


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Region:
    """The publications that satisfy an expression, as a union of boxes. No publication does if there are no boxes."""

    boxes: tuple[Box, ...]
    is_widened: bool = False
    """Whether the boxes contain other publications, too, because the expression has too many conjunctions."""

    @classmethod
    def of(cls, expression: Expression, limit: int = MAX_BOXES) -> Region:
        clauses, is_widened = _clauses(expression, limit)
        boxes = (_box(clause) for clause in clauses)
        return cls(tuple(box for box in boxes if box is not None), is_widened)

    def intersects(self, other: Region) -> bool:
        return any(_boxes_intersect(one, another) for one in self.boxes for another in other.boxes)

    def covers(self, other: Region) -> bool:
        """Whether each box of the other is within one box of this region.

        A box that only several boxes cover together is not found.
        """
        if self.is_widened:
            return not other.boxes
        return all(any(_box_covers(outer, inner) for outer in self.boxes) for inner in other.boxes)


def _clauses(expression: Expression, limit: int) -> tuple[tuple[Clause, ...], bool]:
    conjunction = as_conjunction(expression)
    if conjunction is not None:
        return (conjunction,), False
    try:
        return disjunctive_clauses(expression, limit), False
    except ExpressionTooLargeError:
        return (_required_predicates(expression),), True


def _required_predicates(expression: Expression) -> Clause:
    """The predicates that every solution satisfies, because only ANDs are above them."""
    found: list[Predicate] = []
    seen: set[int] = set()
    pending = [negation_normal_form(expression)]
    while pending:
        node = pending.pop()
        if isinstance(node, Predicate):
            found.append(node)
        elif isinstance(node, And) and id(node) not in seen:
            seen.add(id(node))
            pending.extend(node.children)
    return tuple(dict.fromkeys(found))


def _boxes_intersect(one: Box, other: Box) -> bool:
    if len(one) > len(other):
        one, other = other, one
    for attribute, constraint in one.items():
        opposite = other.get(attribute)
        if opposite is not None and not constraint.intersects(opposite):
            return False
    return True


def _box_covers(outer: Box, inner: Box) -> bool:
    for attribute, constraint in outer.items():
        narrower = inner.get(attribute)
        if narrower is None or not narrower.is_within(constraint):
            return False
    return True


def _box(clause: Clause) -> Box | None:
    """The box of a conjunction, or None if its predicates contradict each other."""
    by_attribute: dict[str, list[Predicate]] = {}
    for predicate in clause:
        by_attribute.setdefault(predicate.attribute, []).append(predicate)
    box: dict[str, Constraint] = {}
    for attribute, predicates in by_attribute.items():
        constraint = _constraint(predicates)
        if constraint is None:
            return None
        box[attribute] = constraint
    return box


def _constraint(predicates: list[Predicate]) -> Constraint | None:
    operators = [predicate.operator for predicate in predicates]
    if Operator.NOT_EXISTS in operators:
        return ABSENT if all(operator is Operator.NOT_EXISTS for operator in operators) else None
    about_values = [predicate for predicate in predicates if predicate.type_class is not TypeClass.ANY]
    if not about_values:
        return PRESENT
    type_class = about_values[0].type_class
    if any(predicate.type_class is not type_class for predicate in about_values):
        return None
    tests = tuple(predicate for predicate in about_values if not is_exact(predicate))
    return _make_constraint(satisfying_all(type_class, about_values), tests)


def _make_constraint(values: ValueSet, tests: tuple[Predicate, ...]) -> Constraint | None:
    if values.is_empty:
        return None
    if not tests:
        return Constraint(True, values)
    points = values.points(MAX_POINTS)
    if points is not None:
        passing = [value for value in points if _passes(value, tests)]
        return Constraint(True, of_values(values.type_class, passing)) if passing else None
    if any(_always_satisfy(values, tests, test.operator.negated, _text(test)) for test in tests):
        return None
    return Constraint(True, values, tests)


def _passes(value: Value, tests: tuple[Predicate, ...]) -> bool:
    return all(test.is_true_for(value) for test in tests)


def _text(test: Predicate) -> str:
    return str(test.values[0])


def _always_satisfy(values: ValueSet, tests: tuple[Predicate, ...], conclusion: Operator, text: str) -> bool:
    """Whether `conclusion text` is true for all of these values that pass the tests. Only False can be wrong."""
    if any(_implies(test.operator, _text(test), conclusion, text) for test in tests):
        return True
    if conclusion is Operator.ENDS_WITH:
        return text == ""
    if conclusion is Operator.CONTAINS:
        return all(text in _common_prefix(str(lower), upper) for lower, upper in values.intervals)
    return False


def _implies(premise: Operator, known: str, conclusion: Operator, text: str) -> bool:
    """Whether every string that satisfies `premise known` satisfies `conclusion text`. Only False can be wrong."""
    match premise, conclusion:
        case Operator.ENDS_WITH, Operator.ENDS_WITH:
            return known.endswith(text)
        case Operator.ENDS_WITH, Operator.NOT_ENDS_WITH:
            # The shorter of two suffixes of a string is a suffix of the longer one.
            return not known.endswith(text) and not text.endswith(known)
        case ((Operator.ENDS_WITH | Operator.CONTAINS), Operator.CONTAINS):
            return text in known
        case Operator.NOT_CONTAINS, (Operator.NOT_CONTAINS | Operator.NOT_ENDS_WITH):
            return known in text
        case Operator.NOT_ENDS_WITH, Operator.NOT_ENDS_WITH:
            return text.endswith(known)
        case _:
            return premise is conclusion and known == text


def _common_prefix(lower: str, upper: Value | None) -> str:
    """The longest common prefix of all strings in [lower, upper)."""
    if not isinstance(upper, str):
        return ""
    same = 0
    while same < min(len(lower), len(upper)) and lower[same] == upper[same]:
        same += 1
    # The strings of ['aby', 'abz') share one character more than its two ends.
    longer = lower[: same + 1]
    following = after_prefix(longer)
    return longer if following is None or upper <= following else lower[:same]


def _example_publication(one: Box, other: Box) -> dict[str, Value] | None:
    publication: dict[str, Value] = {}
    for attribute in {**one, **other}:
        constraint = _intersection(one.get(attribute), other.get(attribute))
        if constraint is None:
            return None
        if constraint.is_present:
            value = next(_examples(constraint), None)
            if value is None:
                return None
            publication[attribute] = value
    return publication


def _intersection(one: Constraint | None, other: Constraint | None) -> Constraint | None:
    if one is None or other is None:
        return other if one is None else one
    return one.intersection(other)


def _examples(constraint: Constraint) -> Iterator[Value]:
    """Iterates over values that satisfy the constraint, plain ones first. At least one, unless it has tests."""
    if constraint.values is None:
        yield True
        return
    for value in _candidates(constraint):
        if value in constraint.values and _passes(value, constraint.tests):
            yield value


def _candidates(constraint: Constraint) -> Iterator[Value]:
    assert constraint.values is not None
    wanted = [test for test in constraint.tests if test.operator in (Operator.CONTAINS, Operator.ENDS_WITH)]
    needles = "".join(_text(test) for test in sorted(wanted, key=lambda test: test.operator is Operator.ENDS_WITH))
    if constraint.values.type_class is TypeClass.NUMBER:
        yield 0
    for lower, upper in constraint.values.intervals:
        if lower == -math.inf and isinstance(upper, int | float):
            yield float(upper) - 1
        if isinstance(lower, str):
            yield lower + needles
        yield lower
