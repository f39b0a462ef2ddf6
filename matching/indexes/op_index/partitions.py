"""Level 1 of the partitioning: members by pivot, a dimension that a matching publication must have [OPI 4.1].

A publication opens the partitions of its dimensions, so the pivot of a member should be the rarest of its dimensions.
The frequencies are not well known when a member is added. So a partition reviews its members after some openings, and
again whenever the openings have doubled. A member moves if another dimension is clearly rarer than its pivot.
Partitions of frequent dimensions, where moving saves most, are reviewed first. A review costs no more than the openings
before it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic

from matching.expressions.model import Operator
from matching.indexes.op_index.dimensions import Layout, Probes, UsedDimension
from matching.indexes.op_index.members import E, Member, Pivots
from matching.indexes.op_index.operator_index import OperatorIndex, OperatorIndexFactory
from matching.indexes.op_index.operators import REWRITTEN

FIRST_REVIEW = 16
"""The number of openings before the first review of a partition."""
CLEARLY_RARER = 0.5
"""A member moves if this at least halves how often its partition is opened."""


class OperatorTable:
    """Creates the index for an operator."""

    def __init__(self, indexes: Mapping[Operator, OperatorIndexFactory], layout: Layout) -> None:
        self._indexes = indexes
        self._layout = layout

    def list_operator(self, operator: Operator) -> Operator:
        """The operator whose index stores predicates of this operator."""
        return operator if operator in self._indexes else REWRITTEN[operator]

    def new_index(self, operator: Operator) -> OperatorIndex[Any]:
        return self._indexes[operator](self._layout)


class OperatorList(Generic[E]):
    """The index of one operator, with the number of predicates in it."""

    __slots__ = ("index", "predicates")

    def __init__(self, index: OperatorIndex[E]) -> None:
        self.index = index
        self.predicates = 0


class Partition(Generic[E]):
    """The members of one pivot, with their predicates by operator."""

    __slots__ = ("_table", "lists", "members", "openings", "review_at")

    def __init__(self, table: OperatorTable) -> None:
        self._table = table
        self.lists: dict[Operator, OperatorList[E]] = {}
        self.members: dict[int, Member[E]] = {}
        self.openings = 0
        self.review_at = FIRST_REVIEW

    def insert(self, member: Member[E]) -> None:
        self.members[member.number] = member
        for target in member.targets:
            for dimension, predicate in target.entries:
                operator = self._table.list_operator(predicate.operator)
                if operator not in self.lists:
                    self.lists[operator] = OperatorList(self._table.new_index(operator))
                self.lists[operator].index.insert(dimension, predicate, target)
                self.lists[operator].predicates += 1

    def remove(self, member: Member[E]) -> None:
        del self.members[member.number]
        for target in member.targets:
            for dimension, predicate in target.entries:
                operator = self._table.list_operator(predicate.operator)
                self.lists[operator].index.remove(dimension, predicate, target)
                self.lists[operator].predicates -= 1
                if self.lists[operator].predicates == 0:
                    del self.lists[operator]

    def search(self, probes: Probes, hits: list[E]) -> None:
        self.openings += 1
        for operator_list in self.lists.values():
            operator_list.index.search(probes, hits)


class Partitions(Generic[E]):
    def __init__(self, table: OperatorTable, frequency: Callable[[UsedDimension], float]) -> None:
        self._table = table
        self._frequency = frequency
        self._by_pivot: dict[int, Partition[E]] = {}

    def insert(self, member: Member[E]) -> None:
        """Adds the member to the partitions of its rarest choice of pivots. Of equals, the first is chosen."""
        member.pivots = min(member.choices, key=self._expected_openings)
        for pivot in member.pivots:
            if pivot.number not in self._by_pivot:
                self._by_pivot[pivot.number] = Partition(self._table)
            self._by_pivot[pivot.number].insert(member)

    def remove(self, member: Member[E]) -> None:
        for pivot in member.pivots:
            partition = self._by_pivot[pivot.number]
            partition.remove(member)
            if not partition.members:
                del self._by_pivot[pivot.number]

    def search(self, probes: Probes) -> list[E]:
        """Returns the target of each true predicate in the partitions that the publication opens."""
        hits: list[E] = []
        due: list[Partition[E]] = []
        for dimension, _value in probes.pairs:
            partition = self._by_pivot.get(dimension)
            if partition is not None:
                partition.search(probes, hits)
                if partition.openings >= partition.review_at:
                    due.append(partition)
        for partition in due:
            self._review(partition)
        return hits

    def partitions(self) -> list[Partition[E]]:
        return list(self._by_pivot.values())

    def _review(self, partition: Partition[E]) -> None:
        partition.review_at = 2 * partition.openings
        for member in list(partition.members.values()):
            best = min(map(self._expected_openings, member.choices))
            if best <= CLEARLY_RARER * self._expected_openings(member.pivots):
                self.remove(member)
                self.insert(member)

    def _expected_openings(self, pivots: Pivots) -> float:
        """The expected number of partitions that a publication opens for a member with these pivots."""
        return sum(map(self._frequency, pivots))
