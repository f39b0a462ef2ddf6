"""Bitmap evaluation: the conditions that a value satisfies are computed on insertion, not on matching [BET 6.1].

Every dimension has a row of bits for each value, with one bit for each distinct condition on that dimension. The values
of a publication select their rows. A condition of a candidate is true if its bit is set in the row. Conditions are not
evaluated, except those that are not sets of intervals (suffixes, substrings, patterns). These are tested if all bits of
a candidate are set.

Departs from [BET 6.1]: a row represents a space between the ends of conditions, not a single value, because the domains
are open. A PS-Tree stores these spaces. So every insertion and deletion updates the bitmap. It is never rebuilt or
combined with a lazy part. The rows of a dimension have only bits of its own conditions. The paper saves this space by
reordering bits.

Cost: a dimension with n distinct conditions has up to 2n rows of n bits. This is small for the small domains of the
paper, and large for thousands of different floating-point bounds on one attribute.
"""

from __future__ import annotations

from typing import NamedTuple

from matching.expressions.conjunction import Condition
from matching.expressions.intervals import ValueSet
from matching.expressions.values import Dimension, Value
from matching.indexes.be_tree.evaluation import (
    Evaluation,
    Groups,
    Numbers,
    Test,
    Values,
    Verdicts,
    condition_test,
    has_no_absent,
)
from matching.indexes.pst.ps_tree import Leaf, PSTree

PRESENT = 1
"""The first bit of every row. It is always set, and represents conditions that any value satisfies."""


class Row(Leaf):
    """One space of values, with a bit for each condition that the values satisfy."""

    __slots__ = ("bits",)

    def __init__(self) -> None:
        super().__init__()
        self.bits = PRESENT

    def _copy(self) -> Row:
        copy = Row()
        copy.bits = self.bits
        return copy


class PreparedBit(NamedTuple):
    dimension: int
    bit: int
    values: ValueSet | None
    test: Test | None
    """The test that is necessary if the bit is set, or None."""


class Checks(NamedTuple):
    bits: tuple[tuple[int, int], ...]
    """Pairs of dimension and bit."""
    tests: tuple[tuple[int, Test], ...]


class BitmapEvaluation(Evaluation):
    def __init__(self) -> None:
        self._dimensions: dict[int, Bitmap] = {}

    def prepare(self, dimension: int, condition: Condition) -> PreparedBit:
        test = None if condition.is_exact else condition_test(condition)
        if condition.values is None:
            return PreparedBit(dimension, PRESENT, None, test)
        bitmap = self._dimensions.get(dimension)
        if bitmap is None:
            bitmap = self._dimensions[dimension] = Bitmap(condition.dimension)
        return PreparedBit(dimension, bitmap.insert(condition.values), condition.values, test)

    def release(self, prepared: PreparedBit) -> None:
        if prepared.values is None:
            return
        bitmap = self._dimensions[prepared.dimension]
        bitmap.delete(prepared.values, prepared.bit)
        if bitmap.is_empty:
            del self._dimensions[prepared.dimension]

    def arrange(self, prepared: list[PreparedBit]) -> Checks:
        bits = tuple((each.dimension, each.bit) for each in prepared)
        return Checks(bits, tuple((each.dimension, each.test) for each in prepared if each.test is not None))

    def verify(self, groups: Groups, values: Values) -> Verdicts:
        rows = self._rows(values)
        ids: list[int] = []
        discarded: list[int] = []
        evaluated = tests = 0
        for group in groups:
            wasted = 0
            for subscription in group:
                checks: Checks = subscription.checks
                for done, (dimension, bit) in enumerate(checks.bits, start=1):
                    if not rows.get(dimension, 0) & bit:
                        wasted += done
                        break
                else:
                    needed = 0
                    for dimension, test in checks.tests:
                        needed += 1
                        if not test(values[dimension]):
                            wasted += len(checks.bits)
                            break
                    else:
                        if has_no_absent(subscription, values):
                            ids.append(subscription.id)
                    tests += needed
                    evaluated += needed > 0
            discarded.append(wasted)
        return Verdicts(ids, evaluated, tests, discarded)

    def _rows(self, values: Values) -> dict[int, int]:
        rows: dict[int, int] = {}
        for dimension, value in values.items():
            bitmap = self._dimensions.get(dimension)
            rows[dimension] = PRESENT if bitmap is None else bitmap.row(value)
        return rows


class Bitmap:
    """The rows of one dimension."""

    def __init__(self, dimension: Dimension) -> None:
        self._numbers = Numbers()
        self._tree: PSTree[Row] = PSTree(dimension, Row())

    @property
    def is_empty(self) -> bool:
        return self._numbers.in_use == 0

    def row(self, value: Value) -> int:
        return self._tree.locate(value).bits

    def insert(self, values: ValueSet) -> int:
        """Allocates a bit for these values and sets it in all their rows."""
        bit = PRESENT << (self._numbers.acquire_number() + 1)
        for row in self._tree.insert(values):
            row.bits |= bit
        return bit

    def delete(self, values: ValueSet, bit: int) -> None:
        for row in self._tree.delete(values):
            row.bits &= ~bit
        self._tree.merge(values)
        self._numbers.release_number(bit.bit_length() - 2)
