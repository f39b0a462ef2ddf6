"""The dimensions in use, their frequency in publications, and the lookups of one publication.

An attribute of the papers is a dimension here: a name with a class. `EXISTS a` has a separate dimension, which every
publication with an `a` has.

Frequencies decide pivots [OPI 4.1]. Before the first publication, a dimension is assumed to be as frequent in
publications as in subscriptions. Each publication reduces the weight of this estimate. Only dimensions that a
subscription mentions are counted, so memory does not grow with publications.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field

from matching.expressions.values import Dimension, TypeClass, Value

PRIOR_PUBLICATIONS = 16
"""After this many publications, the counts have the same weight as the estimate from the subscriptions."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The layout of predicate lists."""

    segment_size: int
    signature_bits: int

    def dimension_bit(self, dimension: int) -> int:
        # Dimensions are numbered in sequence, so no hash function would spread them better.
        return 1 << dimension % self.signature_bits

    def value_bit(self, dimension: int, value: Value) -> int:
        """The bit of a value. Equal values, such as 1 and 1.0, have the same bit.

        Strings do not use `hash`, because it differs between runs of Python.
        """
        hashed = zlib.crc32(value.encode()) if isinstance(value, str) else hash(value)
        return 1 << (dimension * 31 + hashed) % self.signature_bits


class UsedDimension:
    """A dimension that stored subscriptions mention."""

    __slots__ = ("created_at", "dimension", "mentions", "number", "publications")

    def __init__(self, dimension: Dimension, number: int, created_at: int) -> None:
        self.dimension = dimension
        self.number = number
        """Increases with each new dimension. It is never used again for another dimension."""
        self.created_at = created_at
        """The number of publications before this dimension was first mentioned."""
        self.mentions = 0
        self.publications = 0
        """The number of publications since then that had the dimension."""


@dataclass(slots=True)
class SignedPairs:
    """The pairs of a publication by signature bit. A list is searched only for pairs whose bit it has."""

    signature: int = 0
    by_bit: dict[int, list[tuple[int, Value]]] = field(default_factory=dict)

    def add(self, bit: int, pair: tuple[int, Value]) -> None:
        self.signature |= bit
        self.by_bit.setdefault(bit, []).append(pair)


@dataclass(slots=True)
class Probes:
    """The lookups of one publication: pairs of a dimension's number and a value."""

    pairs: list[tuple[int, Value]] = field(default_factory=list)
    by_dimension: SignedPairs = field(default_factory=SignedPairs)
    by_value: SignedPairs = field(default_factory=SignedPairs)
    segments_searched: int = 0
    """The number of segments that the lists searched for this publication."""


class Dimensions:
    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._members = 0
        self._publications = 0
        self._next_number = 0
        self._numbers: dict[str, UsedDimension] = {}
        self._strings: dict[str, UsedDimension] = {}
        self._booleans: dict[str, UsedDimension] = {}
        self._present: dict[str, UsedDimension] = {}

    def __len__(self) -> int:
        return len(self._numbers) + len(self._strings) + len(self._booleans) + len(self._present)

    def acquire(self, dimensions: Iterable[Dimension]) -> dict[Dimension, UsedDimension]:
        """Counts one more member that mentions these dimensions. Returns them in the given order."""
        self._members += 1
        acquired: dict[Dimension, UsedDimension] = {}
        for dimension in dimensions:
            if dimension not in acquired:
                acquired[dimension] = self._mention(dimension)
        return acquired

    def release(self, dimensions: Iterable[UsedDimension]) -> None:
        """Counts one member less. Removes a dimension that no member mentions. Expects the result of `acquire`."""
        self._members -= 1
        for used in dimensions:
            used.mentions -= 1
            if used.mentions == 0:
                name, type_class = used.dimension
                del self._by_class(type_class)[name]

    def frequency(self, used: UsedDimension) -> float:
        """The expected share of publications that have the dimension."""
        guess = used.mentions / self._members
        seen = self._publications - used.created_at
        return (guess * PRIOR_PUBLICATIONS + used.publications) / (PRIOR_PUBLICATIONS + seen)

    def probe(self, publication: dict[str, Value]) -> Probes:
        """Counts the publication. Returns its pairs on the dimensions that a member mentions."""
        self._publications += 1
        probes = Probes()
        by_type = {int: self._numbers, float: self._numbers, str: self._strings, bool: self._booleans}
        for name, value in publication.items():
            for used in (by_type[type(value)].get(name), self._present.get(name)):
                if used is not None:
                    used.publications += 1
                    pair = (used.number, value)
                    probes.pairs.append(pair)
                    probes.by_dimension.add(self._layout.dimension_bit(used.number), pair)
                    probes.by_value.add(self._layout.value_bit(used.number, value), pair)
        return probes

    def _mention(self, dimension: Dimension) -> UsedDimension:
        name, type_class = dimension
        same_class = self._by_class(type_class)
        if name not in same_class:
            same_class[name] = UsedDimension(dimension, self._next_number, self._publications)
            self._next_number += 1
        same_class[name].mentions += 1
        return same_class[name]

    def _by_class(self, type_class: TypeClass) -> dict[str, UsedDimension]:
        match type_class:
            case TypeClass.NUMBER:
                return self._numbers
            case TypeClass.STRING:
                return self._strings
            case TypeClass.BOOLEAN:
                return self._booleans
            case TypeClass.ANY:
                return self._present
