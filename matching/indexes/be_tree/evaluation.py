"""Verifies candidates: condition by condition, or each distinct condition once for a publication [BET 6.1].

    PlainEvaluation    evaluates every condition of every candidate, until one fails
    LazyEvaluation     evaluates a distinct condition when it is first needed, and stores the result
    BitmapEvaluation   (in `bitmap`) computes the results of all conditions beforehand for every value

A condition that the path to a leaf proves is not verified. The others are sorted by how likely they are to fail.
Conditions on attributes that are not on the path come first.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from matching.expressions.conjunction import Condition
from matching.expressions.model import Operator, Predicate
from matching.expressions.values import Value
from matching.indexes.be_tree.nodes import Subscription

Values: TypeAlias = dict[int, Value]
"""The values of a publication by number of dimension."""
Test: TypeAlias = Callable[[Any], bool]
Groups: TypeAlias = Sequence[Collection[Subscription]]
"""The candidates of each reached leaf."""


@dataclass(frozen=True, slots=True)
class Verdicts:
    ids: list[int]
    evaluated: int
    """The number of candidates for which at least one condition was evaluated."""
    tests: int
    """The number of conditions evaluated."""
    discarded: list[int]
    """For each group, the number of checks for subscriptions that do not match."""


class Evaluation(ABC):
    @abstractmethod
    def prepare(self, dimension: int, condition: Condition) -> Any:
        """Returns the data that `arrange` needs for a condition that no subscription had before."""

    @abstractmethod
    def release(self, prepared: Any) -> None:
        """Releases the data of a condition that no subscription has any more."""

    def arrange(self, prepared: list[Any]) -> Any:
        """The checks of a subscription for its present leaf, in this order."""
        return tuple(prepared)

    @abstractmethod
    def verify(self, groups: Groups, values: Values) -> Verdicts:
        """Finds the candidates that match."""


class PlainEvaluation(Evaluation):
    def prepare(self, dimension: int, condition: Condition) -> tuple[int, Test]:
        return dimension, condition_test(condition)

    def release(self, prepared: tuple[int, Test]) -> None:
        """Does nothing: there is no data to release."""

    def verify(self, groups: Groups, values: Values) -> Verdicts:
        ids: list[int] = []
        discarded: list[int] = []
        evaluated = tests = 0
        for group in groups:
            evaluated += len(group)
            wasted = 0
            for subscription in group:
                done = 0
                for dimension, test in subscription.checks:
                    done += 1
                    if dimension not in values or not test(values[dimension]):
                        wasted += done
                        break
                else:
                    if has_no_absent(subscription, values):
                        ids.append(subscription.id)
                tests += done
            discarded.append(wasted)
        return Verdicts(ids, evaluated, tests, discarded)


UNKNOWN, PASSED, FAILED = 0, 1, 2


class LazyEvaluation(Evaluation):
    """Evaluates each distinct condition at most once for a publication.

    Departs from [BET 6.1]: one byte for each distinct condition instead of a bit in a pass array and one in a fail
    array, because Python addresses bytes.
    """

    def __init__(self) -> None:
        self._numbers = Numbers()

    def prepare(self, dimension: int, condition: Condition) -> tuple[int, int, Test]:
        return self._numbers.acquire_number(), dimension, condition_test(condition)

    def release(self, prepared: tuple[int, int, Test]) -> None:
        self._numbers.release_number(prepared[0])

    def verify(self, groups: Groups, values: Values) -> Verdicts:
        verdicts = bytearray(self._numbers.limit)
        ids: list[int] = []
        discarded: list[int] = []
        evaluated = tests = 0
        for group in groups:
            wasted = 0
            for subscription in group:
                fresh = 0
                for done, (number, dimension, test) in enumerate(subscription.checks, start=1):
                    if verdicts[number] == UNKNOWN:
                        fresh += 1
                        is_true = dimension in values and test(values[dimension])
                        verdicts[number] = PASSED if is_true else FAILED
                    if verdicts[number] == FAILED:
                        wasted += done
                        break
                else:
                    if has_no_absent(subscription, values):
                        ids.append(subscription.id)
                tests += fresh
                evaluated += fresh > 0
            discarded.append(wasted)
        return Verdicts(ids, evaluated, tests, discarded)


class Numbers:
    """Allocates small numbers. A released number is the next to be used again [BET 6.1]."""

    def __init__(self) -> None:
        self.limit = 0
        """All numbers in use are below this one."""
        self._free: list[int] = []

    @property
    def in_use(self) -> int:
        return self.limit - len(self._free)

    def acquire_number(self) -> int:
        if self._free:
            return self._free.pop()
        self.limit += 1
        return self.limit - 1

    def release_number(self, number: int) -> None:
        self._free.append(number)
        if not self.in_use:
            self.limit = 0
            self._free.clear()


def has_no_absent(subscription: Subscription, values: Values) -> bool:
    """Whether the publication lacks all dimensions that the subscription's NOT EXISTS conditions name."""
    return not any(dimension in values for dimension in subscription.absent)


_WITH_OPERAND_FIRST: dict[Operator, Callable[[Any, Any], bool]] = {
    Operator.EQ: operator.eq,
    Operator.NE: operator.ne,
    Operator.LT: operator.gt,
    Operator.LE: operator.ge,
    Operator.GT: operator.lt,
    Operator.GE: operator.le,
    Operator.IN: operator.contains,
}


def condition_test(condition: Condition) -> Test:
    """The condition as a function of a value of its dimension. Uses functions in C where there are any."""
    if len(condition.predicates) > 1:
        return partial(_all_true, tuple(_predicate_test(predicate) for predicate in condition.predicates))
    return _predicate_test(condition.predicates[0])


def _predicate_test(predicate: Predicate) -> Test:
    swapped = _WITH_OPERAND_FIRST.get(predicate.operator)
    return predicate.is_true_for if swapped is None else partial(swapped, predicate.operand)


def _all_true(tests: tuple[Test, ...], value: Any) -> bool:
    return all(test(value) for test in tests)
