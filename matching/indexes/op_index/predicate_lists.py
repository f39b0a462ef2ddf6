"""Predicate lists: predicates of one operator sorted by dimension and operand, in segments with signatures [OPI 4.2].

For a value, the true predicates of a dimension are adjacent. Those of `<=` are from the value on, those of `>=` up to
it. Those of `=` are at it, those of `!=` before and after it. A list is a chain of sorted segments with a directory of
their first keys. The signature of a segment has a bit for each of its dimensions, or for each dimension and operand if
the operator is `=`. A segment is not searched if the bit of a publication's pair is missing.

Departs from [OPI 4.2]: segments are blocks of bounded size that split and merge. The paper has a fixed number of
classes of attributes. Here insertion costs the same in a list of any length, and no list is sorted again. Predicates on
one dimension may span segments. The list also has a signature, the union of its segments' signatures. For most short
lists, this signature is enough to skip the list.
Departs from [OPI 4.2]: BETWEEN is one entry that is sorted by its lower end, not two entries. Inside a disjunction, two
entries could not be distinguished, and one of them alone would count a condition that is only half true.

Cost, with n predicates in s segments: insert and remove O(log n + segment + s). A match is O(log n + true predicates),
for BETWEEN O(log n + intervals that start before the value).
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from functools import reduce
from math import inf
from operator import or_
from typing import Any, Generic, TypeAlias

from matching.expressions.model import Predicate
from matching.expressions.values import Value
from matching.indexes.op_index.dimensions import Layout, Probes, SignedPairs
from matching.indexes.op_index.operator_index import OperatorIndex, T

Key: TypeAlias = tuple[Any, ...]
"""Dimension, operand, number of the target. Shorter tuples are used as ends of ranges: they sort before all tuples that
continue them. (dimension, operand, infinity) sorts after all keys with that operand."""


class Segment(Generic[T]):
    __slots__ = ("keys", "signature", "targets")

    def __init__(self, keys: list[Key], targets: list[T], signature: int) -> None:
        self.keys = keys
        self.targets = targets
        """The target of each key."""
        self.signature = signature


class PredicateList(OperatorIndex[T]):
    """The chain of segments. A subclass for each operator defines the ranges to search."""

    __slots__ = ("_firsts", "_layout", "_segments", "_signature")

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._segments: list[Segment[T]] = []
        self._firsts: list[Key] = []
        """The directory: the first key of each segment."""
        self._signature = 0

    @abstractmethod
    def _collect(self, bit: int, dimension: int, value: Any, hits: list[T]) -> int:
        """Appends the targets of predicates that are true for the value. Returns the number of segments searched."""

    def _keys(self, dimension: int, predicate: Predicate, number: int) -> Iterable[Key]:
        return ((dimension, predicate.values[0], number),)

    def _bit(self, dimension: int, operand: Value) -> int:
        return self._layout.dimension_bit(dimension)

    def _signed(self, probes: Probes) -> SignedPairs:
        return probes.by_dimension

    def insert(self, dimension: int, predicate: Predicate, target: T) -> None:
        for key in self._keys(dimension, predicate, target.number):
            self._insert_key(key, target)

    def remove(self, dimension: int, predicate: Predicate, target: T) -> None:
        for key in self._keys(dimension, predicate, target.number):
            self._remove_key(key)

    def match(self, dimension: int, value: Value) -> list[T]:
        hits: list[T] = []
        self._collect(self._bit(dimension, value), dimension, value, hits)
        return hits

    def search(self, probes: Probes, hits: list[T]) -> None:
        signed = self._signed(probes)
        common = self._signature & signed.signature
        while common:
            bit = common & -common
            common ^= bit
            for dimension, value in signed.by_bit[bit]:
                probes.segments_searched += self._collect(bit, dimension, value, hits)

    @property
    def nodes(self) -> int:
        return len(self._segments)

    def segments(self) -> list[tuple[Key, ...]]:
        """The keys of each segment, in order."""
        return [tuple(segment.keys) for segment in self._segments]

    def _scan(self, bit: int, low: Key, high: Key, value: Any, hits: list[T]) -> int:
        """Appends the targets of the keys in [low, high). Returns the number of segments searched."""
        searched = 0
        firsts = self._firsts
        start = bisect_right(firsts, low, 1) - 1
        stop = bisect_left(firsts, high, start)
        for segment in self._segments[start:stop]:
            if segment.signature & bit:
                searched += 1
                self._collect_from(segment, low, high, value, hits)
        return searched

    def _collect_from(self, segment: Segment[T], low: Key, high: Key, value: Any, hits: list[T]) -> None:
        start = bisect_left(segment.keys, low)
        hits += segment.targets[start : bisect_left(segment.keys, high, start)]

    def _segment_at(self, key: Key) -> int:
        """The position of the last segment that starts at or before the key, or the first segment if none does."""
        return bisect_right(self._firsts, key, 1) - 1

    def _insert_key(self, key: Key, target: T) -> None:
        bit = self._bit(key[0], key[1])
        self._signature |= bit
        if not self._segments:
            self._segments.append(Segment([key], [target], bit))
            self._firsts.append(key)
            return
        index = self._segment_at(key)
        segment = self._segments[index]
        position = bisect_left(segment.keys, key)
        segment.keys.insert(position, key)
        segment.targets.insert(position, target)
        segment.signature |= bit
        self._firsts[index] = segment.keys[0]
        if len(segment.keys) > self._layout.segment_size:
            self._split(index)

    def _remove_key(self, key: Key) -> None:
        index = self._segment_at(key)
        segment = self._segments[index]
        position = bisect_left(segment.keys, key)
        del segment.keys[position], segment.targets[position]
        if segment.keys:
            self._firsts[index] = segment.keys[0]
            segment.signature = self._signature_of(segment.keys)
            self._merge_with_next(index)
            self._merge_with_next(index - 1)
        else:
            del self._segments[index], self._firsts[index]
        self._signature = reduce(or_, [each.signature for each in self._segments], 0)

    def _split(self, index: int) -> None:
        left = self._segments[index]
        middle = len(left.keys) // 2
        keys, targets = left.keys[middle:], left.targets[middle:]
        right = Segment(keys, targets, self._signature_of(keys))
        del left.keys[middle:], left.targets[middle:]
        left.signature = self._signature_of(left.keys)
        self._segments.insert(index + 1, right)
        self._firsts.insert(index + 1, keys[0])

    def _merge_with_next(self, index: int) -> None:
        """Merges two segments that together fill at most half a segment. The result does not split again soon."""
        if not 0 <= index < len(self._segments) - 1:
            return
        left, right = self._segments[index : index + 2]
        if len(left.keys) + len(right.keys) <= self._layout.segment_size // 2:
            left.keys += right.keys
            left.targets += right.targets
            left.signature |= right.signature
            del self._segments[index + 1], self._firsts[index + 1]

    def _signature_of(self, keys: list[Key]) -> int:
        return reduce(or_, [self._bit(key[0], key[1]) for key in keys])


class Equal(PredicateList[T]):
    """`=` and IN. An IN has an entry for each of its values. A publication's value equals at most one of them."""

    __slots__ = ()

    def _collect(self, bit: int, dimension: int, value: Any, hits: list[T]) -> int:
        return self._scan(bit, (dimension, value), (dimension, value, inf), value, hits)

    def _keys(self, dimension: int, predicate: Predicate, number: int) -> Iterable[Key]:
        return [(dimension, operand, number) for operand in predicate.values]

    def _bit(self, dimension: int, operand: Value) -> int:
        return self._layout.value_bit(dimension, operand)

    def _signed(self, probes: Probes) -> SignedPairs:
        return probes.by_value


class NotEqual(PredicateList[T]):
    __slots__ = ()

    def _collect(self, bit: int, dimension: int, value: Any, hits: list[T]) -> int:
        return self._scan(bit, (dimension,), (dimension, value), value, hits) + self._scan(
            bit, (dimension, value, inf), (dimension + 1,), value, hits
        )


class Less(PredicateList[T]):
    """The value is less than the operand, so the range is the operands after the value."""

    __slots__ = ()

    def _collect(self, bit: int, dimension: int, value: Any, hits: list[T]) -> int:
        return self._scan(bit, (dimension, value, inf), (dimension + 1,), value, hits)


class LessOrEqual(PredicateList[T]):
    __slots__ = ()

    def _collect(self, bit: int, dimension: int, value: Any, hits: list[T]) -> int:
        return self._scan(bit, (dimension, value), (dimension + 1,), value, hits)


class Greater(PredicateList[T]):
    __slots__ = ()

    def _collect(self, bit: int, dimension: int, value: Any, hits: list[T]) -> int:
        return self._scan(bit, (dimension,), (dimension, value), value, hits)


class GreaterOrEqual(PredicateList[T]):
    __slots__ = ()

    def _collect(self, bit: int, dimension: int, value: Any, hits: list[T]) -> int:
        return self._scan(bit, (dimension,), (dimension, value, inf), value, hits)


class Between(PredicateList[T]):
    """Sorted by the lower end. The upper end is the last part of the key."""

    __slots__ = ()

    def _collect(self, bit: int, dimension: int, value: Any, hits: list[T]) -> int:
        return self._scan(bit, (dimension,), (dimension, value, inf), value, hits)

    def _keys(self, dimension: int, predicate: Predicate, number: int) -> Iterable[Key]:
        lower, upper = predicate.values
        return ((dimension, lower, number, upper),)

    def _collect_from(self, segment: Segment[T], low: Key, high: Key, value: Any, hits: list[T]) -> None:
        start = bisect_left(segment.keys, low)
        stop = bisect_left(segment.keys, high, start)
        hits += [
            target
            for key, target in zip(segment.keys[start:stop], segment.targets[start:stop], strict=True)
            if key[3] >= value
        ]
