"""What an operator's index is: predicates of one operator go in, a value comes, the targets of the true ones go out.

Each partition has one such index for each operator that its members use [OPI 4.2, 6.2]. To give an operator an index
of your own, derive from `OperatorIndex`, or from `ValueIndex` when the predicates on different dimensions have
nothing to share, and hand a table with your class to `OpIndex`:

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
    """What a true predicate counts for: a conjunction, or one disjunction of a CNF subscription."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number
        """Unique in an index, and larger than those of all targets made before."""


T = TypeVar("T", bound=Target)


class OperatorIndex(ABC, Generic[T]):
    """The predicates of one operator, on whatever dimensions, in one partition."""

    __slots__ = ()

    @abstractmethod
    def insert(self, dimension: int, predicate: Predicate, target: T) -> None:
        """Never called twice with the same three; `dimension` is the number of the predicate's dimension."""

    @abstractmethod
    def remove(self, dimension: int, predicate: Predicate, target: T) -> None:
        """Takes out what `insert` put in."""

    @abstractmethod
    def match(self, dimension: int, value: Value) -> Iterable[T]:
        """The targets of the dimension's predicates that are true for the value: one for each such predicate."""

    @property
    @abstractmethod
    def nodes(self) -> int:
        """Parts of the structure. An index without predicates has none, and is dropped."""

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
        """The targets of the predicates that are true for a value of the dimension's class."""

    @property
    @abstractmethod
    def nodes(self) -> int:
        """Parts of the structure; none without predicates."""


def each_dimension(value_index: Callable[[], ValueIndex[Any]]) -> OperatorIndexFactory:
    """An operator's index that keeps a value index for each dimension."""

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
    """EXISTS: true for whatever value led here."""

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
