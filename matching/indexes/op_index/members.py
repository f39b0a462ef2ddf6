"""The members of partitions: conjunctions, which count true predicates, and CNF subscriptions, which set bits.

A subscription in disjunctive normal form has several conjunctions under one id. A subscription in conjunctive normal
form is one member with a bit for each of its disjunctions [OPI 6.1]. NOT EXISTS is stored separately. It is checked
against the names of the publication if all else is true.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, TypeAlias, TypeVar

from matching.expressions.model import Operator, Predicate
from matching.expressions.normal_forms import Clause
from matching.expressions.values import Dimension
from matching.indexes.op_index.dimensions import Dimensions, UsedDimension
from matching.indexes.op_index.operator_index import Target

Entry: TypeAlias = tuple[int, Predicate]
"""A predicate with the number of its dimension."""

Pivots: TypeAlias = tuple[UsedDimension, ...]
"""Dimensions of which a publication must have at least one to satisfy the member."""


class IndexedTarget(Target):
    """A target with the predicates that are counted for it."""

    __slots__ = ("entries",)

    def __init__(self, number: int, entries: tuple[Entry, ...]) -> None:
        super().__init__(number)
        self.entries = entries


E = TypeVar("E", bound=IndexedTarget)
E_co = TypeVar("E_co", bound=IndexedTarget, covariant=True)


class Member(Protocol[E_co]):
    """An item of a partition."""

    id: int
    """The id of the subscription."""
    mentioned: Pivots
    """All dimensions of the member."""
    pivots: Pivots
    """The dimensions whose partitions contain the member."""

    @property
    def number(self) -> int: ...

    @property
    def targets(self) -> Sequence[E_co]: ...

    @property
    def choices(self) -> Sequence[Pivots]:
        """The possible pivots."""
        ...


class Conjunction(IndexedTarget):
    """True if all of its predicates are counted. Its pivot may be any of its dimensions."""

    __slots__ = ("absent", "id", "mentioned", "needed", "pivots")

    def __init__(self, id: int, number: int, clause: Clause, dimensions: Dimensions) -> None:
        counted = indexed_predicates(clause)
        used = dimensions.acquire(predicate.dimension for predicate in counted)
        super().__init__(number, _entries(counted, used))
        self.id = id
        self.needed = len(counted)
        self.absent = absent_names(clause)
        self.mentioned = tuple(used.values())
        self.pivots: Pivots = ()

    @property
    def targets(self) -> Sequence[Conjunction]:
        return (self,)

    @property
    def choices(self) -> Sequence[Pivots]:
        return [(used,) for used in self.mentioned]


class Disjunction(IndexedTarget):
    """A disjunction of a CNF subscription. Any true predicate sets its bit."""

    __slots__ = ("bit", "owner")

    def __init__(self, number: int, entries: tuple[Entry, ...], owner: CnfSubscription, bit: int) -> None:
        super().__init__(number, entries)
        self.owner = owner
        self.bit = bit


class CnfSubscription:
    """True if all bits are set. Its pivots are the dimensions of one of its disjunctions, which must be true.

    Departs from [OPI 6.1]: the disjunctions with the fewest dimensions are preferred, not those with the fewest
    predicates. There is a copy of the subscription for each pivot, and several predicates may share a pivot.
    """

    __slots__ = ("absent", "all_bits", "choices", "id", "mentioned", "number", "pivots", "targets")

    def __init__(self, id: int, numbers: Iterator[int], clauses: Sequence[Clause], dimensions: Dimensions) -> None:
        used = dimensions.acquire(predicate.dimension for clause in clauses for predicate in indexed_predicates(clause))
        self.id = id
        self.number = next(numbers)
        self.all_bits = (1 << len(clauses)) - 1
        self.absent = tuple((name, 1 << place) for place, clause in enumerate(clauses) for name in absent_names(clause))
        """Attribute names, each with the bit that its absence sets."""
        self.targets = tuple(
            Disjunction(next(numbers), _entries(indexed_predicates(clause), used), self, 1 << place)
            for place, clause in enumerate(clauses)
        )
        self.mentioned = tuple(used.values())
        self.pivots: Pivots = ()
        self.choices = tuple(tuple(used[each] for each in clause) for clause in pivot_choices(clauses))


def indexed_predicates(clause: Clause) -> Clause:
    """The predicates that are stored in operator indexes: all but NOT EXISTS."""
    return tuple(predicate for predicate in clause if predicate.operator is not Operator.NOT_EXISTS)


def absent_names(clause: Clause) -> tuple[str, ...]:
    """The attributes of the NOT EXISTS predicates."""
    return tuple(predicate.attribute for predicate in clause if predicate.operator is Operator.NOT_EXISTS)


def pivot_choices(clauses: Sequence[Clause]) -> list[tuple[Dimension, ...]]:
    """The smallest sets of dimensions of which a publication must have one to make all disjunctions true.

    A disjunction with NOT EXISTS requires no dimension. An empty disjunction is false and has an empty set of
    dimensions, so a subscription with it is in no partition.
    """
    demanding = [clause for clause in clauses if not absent_names(clause)]
    choices = [tuple(dict.fromkeys(predicate.dimension for predicate in clause)) for clause in demanding]
    smallest = min(map(len, choices))
    return [choice for choice in choices if len(choice) == smallest]


def _entries(clause: Clause, used: dict[Dimension, UsedDimension]) -> tuple[Entry, ...]:
    return tuple((used[predicate.dimension].number, predicate) for predicate in clause)
