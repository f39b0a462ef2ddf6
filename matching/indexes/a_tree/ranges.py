"""Which of many ranges hold a value? Time is that of the answer, and a logarithm for each level in use.

A range without an end on one side is found by its other end, in a sorted list. A range between two values is kept at
its fork: values are read as strings of bits that sort as the values do, and where the bits of a range's two ends first
differ, the range is cut in two. A value on the left of the cut is in the range if it is not below its lower end, one on
the right if it is below its upper end: both are a slice of a sorted list. Only the forks on the value's own path
matter, one for each depth at most. So it is an interval tree whose cuts are fixed in advance: a range has one place,
whatever else is there and whenever it came.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from typing import Any, TypeAlias

from matching.expressions.intervals import ValueSet
from matching.expressions.values import Value, smallest
from matching.indexes.a_tree.node import Node

_DIGIT = 9
"""Bits for a byte, or for the end of the bytes, which comes before every byte."""
_Prefix: TypeAlias = tuple[bytes, int]


class Ranges:
    """The ranges of one dimension, and the nodes whose predicates they satisfy."""

    __slots__ = ("_below", "_everywhere", "_forks", "_from", "_smallest")

    def __init__(self, values: ValueSet) -> None:
        """For ranges of the same class as these values."""
        self._smallest = smallest(values.type_class)
        self._everywhere: dict[Node, None] = {}
        self._below = _Ends()
        self._from = _Ends()
        self._forks: dict[int, dict[_Prefix, _Fork]] = {}

    @property
    def is_empty(self) -> bool:
        return not (self._everywhere or self._below.nodes or self._from.nodes or self._forks)

    def add(self, values: ValueSet, node: Node) -> None:
        for lower, upper in values.intervals:
            if upper is None and lower == self._smallest:
                self._everywhere[node] = None
            elif upper is None:
                self._from.add(lower, node)
            elif lower == self._smallest:
                self._below.add(upper, node)
            else:
                depth, prefix = _fork_of(lower, upper)
                forks = self._forks.setdefault(depth, {})
                if prefix not in forks:
                    forks[prefix] = _Fork(is_cut=_bits(lower) != _bits(upper))
                forks[prefix].lower.add(lower, node)
                forks[prefix].upper.add(upper, node)

    def remove(self, values: ValueSet, node: Node) -> None:
        for lower, upper in values.intervals:
            if upper is None and lower == self._smallest:
                del self._everywhere[node]
            elif upper is None:
                self._from.remove(lower, node)
            elif lower == self._smallest:
                self._below.remove(upper, node)
            else:
                depth, prefix = _fork_of(lower, upper)
                fork = self._forks[depth][prefix]
                fork.lower.remove(lower, node)
                fork.upper.remove(upper, node)
                if not fork.lower.nodes:
                    del self._forks[depth][prefix]
                if not self._forks[depth]:
                    del self._forks[depth]

    def containing(self, value: Value) -> list[Node]:
        """A node's ranges are disjoint: none comes twice."""
        found = [*self._everywhere, *self._below.after(value), *self._from.up_to(value)]
        if self._forks:
            bits = _bits(value)
            for depth, forks in self._forks.items():
                fork = forks.get(_prefix(bits, depth))
                if fork is not None:
                    found += fork.containing(value, _is_right(bits, depth))
        return found


class _Ends:
    """Nodes by one end of their ranges, ascending."""

    __slots__ = ("ends", "nodes")

    def __init__(self) -> None:
        self.ends: list[Any] = []
        self.nodes: list[Node] = []

    def add(self, end: Value, node: Node) -> None:
        position = bisect_right(self.ends, end)
        self.ends.insert(position, end)
        self.nodes.insert(position, node)

    def remove(self, end: Value, node: Node) -> None:
        position = self.nodes.index(node, bisect_left(self.ends, end))
        del self.ends[position]
        del self.nodes[position]

    def up_to(self, value: Value) -> list[Node]:
        return self.nodes[: bisect_right(self.ends, value)]

    def after(self, value: Value) -> list[Node]:
        return self.nodes[bisect_right(self.ends, value) :]


class _Fork:
    __slots__ = ("is_cut", "lower", "upper")

    def __init__(self, is_cut: bool) -> None:
        self.is_cut = is_cut
        """False for the ranges between numbers that have the same bits."""
        self.lower = _Ends()
        self.upper = _Ends()

    def containing(self, value: Value, is_right: bool) -> list[Node]:
        if not self.is_cut:
            started = set(self.lower.up_to(value))
            return [node for node in self.upper.after(value) if node in started]
        return self.upper.after(value) if is_right else self.lower.up_to(value)


def _fork_of(lower: Value, upper: Value) -> tuple[int, _Prefix]:
    low, high = _bits(lower), _bits(upper)
    shorter = min(len(low), len(high))
    same = next((place for place in range(shorter) if low[place] != high[place]), shorter)
    differing = _digit(low, same) ^ _digit(high, same)
    depth = _DIGIT * (same + 1) - differing.bit_length()
    return depth, _prefix(low, depth)


def _bits(value: Value) -> bytes:
    """Bytes in the order of the values. Large integers may share theirs with a neighbour."""
    if isinstance(value, str):
        return value.encode()
    # Adding zero makes -0.0, which is equal to 0.0, the same number.
    (bits,) = struct.unpack(">Q", struct.pack(">d", float(value) + 0.0))
    is_negative = bits >> 63
    return struct.pack(">Q", bits ^ 0xFFFF_FFFF_FFFF_FFFF if is_negative else bits | 1 << 63)


def _digit(bits: bytes, position: int) -> int:
    return bits[position] + 1 if position < len(bits) else 0


def _prefix(bits: bytes, depth: int) -> _Prefix:
    whole, rest = divmod(depth, _DIGIT)
    return bits[:whole], _digit(bits, whole) >> (_DIGIT - rest)


def _is_right(bits: bytes, depth: int) -> bool:
    whole, rest = divmod(depth, _DIGIT)
    return bool(_digit(bits, whole) >> (_DIGIT - 1 - rest) & 1)
