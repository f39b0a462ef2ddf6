"""NOT IN, NOT BETWEEN, NOT STARTS WITH and other negations: all predicates whose opposite is not true.

A predicate is either true or false for a value of its class, so the index of the opposite operator finds the false
ones. Cost: that of the opposite index, and match O(predicates on the dimension). Most of these are true anyway.
"""

from __future__ import annotations

from typing import Any, Generic

from matching.expressions.model import Predicate
from matching.expressions.values import Value
from matching.indexes.op_index.dimensions import Layout
from matching.indexes.op_index.operator_index import OperatorIndex, OperatorIndexFactory, T, Target


class Opposite(Target, Generic[T]):
    """Represents one negated predicate in the index of the opposites. A target may have several."""

    __slots__ = ("target",)

    def __init__(self, number: int, target: T) -> None:
        super().__init__(number)
        self.target = target


def negated(positive: OperatorIndexFactory) -> OperatorIndexFactory:
    """Creates the factory for an operator from the factory for its opposite."""

    def create(layout: Layout) -> OperatorIndex[Any]:
        return Negation(positive(layout))

    return create


class Negation(OperatorIndex[T]):
    __slots__ = ("_by_dimension", "_next_number", "_opposites")

    def __init__(self, opposites: OperatorIndex[Opposite[T]]) -> None:
        self._opposites = opposites
        self._by_dimension: dict[int, dict[tuple[int, Predicate], Opposite[T]]] = {}
        self._next_number = 0

    def insert(self, dimension: int, predicate: Predicate, target: T) -> None:
        opposite = Opposite(self._next_number, target)
        self._next_number += 1
        self._by_dimension.setdefault(dimension, {})[target.number, predicate] = opposite
        self._opposites.insert(dimension, predicate.negation, opposite)

    def remove(self, dimension: int, predicate: Predicate, target: T) -> None:
        opposite = self._by_dimension[dimension].pop((target.number, predicate))
        if not self._by_dimension[dimension]:
            del self._by_dimension[dimension]
        self._opposites.remove(dimension, predicate.negation, opposite)

    def match(self, dimension: int, value: Value) -> list[T]:
        opposites_here = self._by_dimension.get(dimension)
        if opposites_here is None:
            return []
        false = set(self._opposites.match(dimension, value))
        return [opposite.target for opposite in opposites_here.values() if opposite not in false]

    @property
    def nodes(self) -> int:
        return self._opposites.nodes
