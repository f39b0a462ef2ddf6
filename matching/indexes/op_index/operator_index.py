"""The interface of the index of an operator: it stores predicates and returns the targets of those that are true.

Each partition has one such index for each operator that its members use [OPI 4.2, 6.2]. To add your own index for an
operator, derive from `OperatorIndex`. Derive from `ValueIndex` if predicates on different dimensions share nothing.
Then pass a table with your class to `OpIndex`:

    OpIndex(operator_indexes={**OPERATOR_INDEXES, Operator.CONTAINS: each_dimension(MyContains)})
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeAlias, TypeVar

from matching.expressions.model import Predicate
from matching.expressions.values import Value
from matching.indexes.op_index.dimensions import Layout, Probes


class Target:
    """The object that a true predicate is counted for: a conjunction, or a disjunction of a CNF subscription."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number
        """Unique in an index, and larger than the numbers of all earlier targets."""


T = TypeVar("T", bound=Target)


class OperatorIndex(ABC, Generic[T]):
    """The predicates of one operator in one partition, on all dimensions."""

    __slots__ = ()

    @abstractmethod
    def insert(self, dimension: int, predicate: Predicate, target: T) -> None:
        """Adds a predicate. It is never called twice with the same arguments. `dimension` is the dimension's number."""

    @abstractmethod
    def remove(self, dimension: int, predicate: Predicate, target: T) -> None:
        """Removes a predicate that `insert` added."""

    @abstractmethod
    def match(self, dimension: int, value: Value) -> Iterable[T]:
        """Returns one target for each predicate on the dimension that is true for the value."""

    @property
    @abstractmethod
    def nodes(self) -> int:
        """The number of parts of the structure. An index without predicates has none."""

    def search(self, probes: Probes, hits: list[T]) -> None:
        """Appends the matches of all pairs of a publication."""
        for dimension, value in probes.pairs:
            hits.extend(self.match(dimension, value))


OperatorIndexFactory: TypeAlias = Callable[[Layout], OperatorIndex[Any]]


class ValueIndex(ABC, Generic[T]):
    """The predicates of one operator on one dimension, in one partition."""

    __slots__ = ()

    @abstractmethod
    def insert(self, predicate: Predicate, target: T) -> None: ...

    @abstractmethod
    def remove(self, predicate: Predicate, target: T) -> None: ...

    @abstractmethod
    def match(self, value: Any) -> Iterable[T]:
        """Returns the targets of the predicates that are true for a value of the dimension's class."""

    @property
    @abstractmethod
    def nodes(self) -> int:
        """The number of parts of the structure. An index without predicates has none."""


def each_dimension(value_index: Callable[[], ValueIndex[Any]]) -> OperatorIndexFactory:
    """Creates the factory for an operator from a value index. Each dimension gets its own value index."""

    def create(_layout: Layout) -> OperatorIndex[Any]:
        return ByDimension(value_index)

    return create


class ByDimension(OperatorIndex[T]):
    __slots__ = ("_by_dimension", "_new")

    def __init__(self, new: Callable[[], ValueIndex[T]]) -> None:
        self._new = new
        self._by_dimension: dict[int, ValueIndex[T]] = {}

    def insert(self, dimension: int, predicate: Predicate, target: T) -> None:
        if dimension not in self._by_dimension:
            self._by_dimension[dimension] = self._new()
        self._by_dimension[dimension].insert(predicate, target)

    def remove(self, dimension: int, predicate: Predicate, target: T) -> None:
        self._by_dimension[dimension].remove(predicate, target)
        if self._by_dimension[dimension].nodes == 0:
            del self._by_dimension[dimension]

    def match(self, dimension: int, value: Value) -> Iterable[T]:
        index = self._by_dimension.get(dimension)
        return () if index is None else index.match(value)

    @property
    def nodes(self) -> int:
        return sum(index.nodes for index in self._by_dimension.values())


class Presence(ValueIndex[T]):
    """EXISTS: true for every value of the dimension."""

    __slots__ = ("_targets",)

    def __init__(self) -> None:
        self._targets: dict[int, T] = {}

    def insert(self, predicate: Predicate, target: T) -> None:
        self._targets[target.number] = target

    def remove(self, predicate: Predicate, target: T) -> None:
        del self._targets[target.number]

    def match(self, value: Any) -> Iterable[T]:
        return self._targets.values()

    @property
    def nodes(self) -> int:
        return min(1, len(self._targets))
