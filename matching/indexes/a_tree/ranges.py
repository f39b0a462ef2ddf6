"""Finds the ranges that contain a value. A search takes O(result), plus a logarithm for each level in use.

A range with one end is found by that end in a sorted list. A range with two ends is stored at its fork. Values are
encoded as strings of bits that sort like the values. The fork of a range is the first position at which the bits of its
two ends differ. It cuts the range in two. A value left of the cut is in the range if it is not below the lower end. A
value right of the cut is in the range if it is below the upper end. Both cases select a slice of a sorted list. Only
the forks on the path of the value are searched, at most one for each depth. The structure is an interval tree with
fixed cuts. The place of a range does not depend on other ranges or on the order of insertion.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from typing import Any, TypeAlias

from matching.expressions.intervals import ValueSet
from matching.expressions.values import Value, smallest
from matching.indexes.a_tree.node import Node

_DIGIT = 9
"""The number of bits that encode a byte or the end of the bytes. The end sorts before every byte."""
_Prefix: TypeAlias = tuple[bytes, int]


class Ranges:
    """The ranges of one dimension, with the nodes of their predicates."""

    __slots__ = ("_below", "_everywhere", "_forks", "_from", "_smallest")

    def __init__(self, values: ValueSet) -> None:
        """Creates an index for ranges of the same class as these values."""
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
        """The nodes of the ranges that contain the value. The ranges of a node are disjoint, so none occurs twice."""
        found = [*self._everywhere, *self._below.after(value), *self._from.up_to(value)]
        if self._forks:
            bits = _bits(value)
            for depth, forks in self._forks.items():
                fork = forks.get(_prefix(bits, depth))
                if fork is not None:
                    found += fork.containing(value, _is_right(bits, depth))
        return found


class _Ends:
    """Nodes sorted by one end of their ranges."""

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
        """False for ranges whose two ends have the same bits."""
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
    """Encodes the value as bytes that sort like the values. Large integers may have the same bytes as a neighbour."""
    if isinstance(value, str):
        return value.encode()
    # -0.0 equals 0.0, so both must have the same bits. Adding zero converts -0.0 to 0.0.
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
