"""PS-Tree: the disjoint predicate spaces of one dimension [THESIS 6, PST 4].

Predicates cut the order of a dimension's values into spaces; inside a space, every predicate has one answer. Finding
what a value satisfies becomes finding its space. A leaf is a space: it counts the predicates that cover it and the
publications that fell into it, and carries what the index above attaches to it. Inserting a predicate splits spaces
at its ends, deleting it merges neighbours again.

Departs from [THESIS 6.1]: the spaces stand in one sorted array instead of a trie over digits or characters, because
a PS-Tree is defined by the spaces it maintains, and a binary search in C beats a walk over nodes in Python.
Departs from [THESIS 6.4]: two spaces merge when no live predicate ends between them. Equal counters, which the text
suggests, do not imply equal predicates.

Cost, with n spaces: locate O(log n); insert and delete O(log n) and the spaces covered.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from matching.expressions.intervals import Interval, ValueSet
from matching.expressions.values import Dimension, TypeClass, Value, smallest


class Leaf:
    """One predicate space. An index derives its own leaf to attach subscriptions."""

    __slots__ = ("predicates", "publications")

    def __init__(self) -> None:
        self.predicates = 0
        """Live predicates that cover this space."""
        self.publications = 0
        """Publications seen whose value fell into this space."""

    def split(self) -> Leaf:
        """The right part of this space, a leaf with the same predicates; the left part stays here."""
        right = self._copy()
        right.predicates = self.predicates
        # Where in the space the past publications fell is unknown; halves keep the sum right.
        right.publications = self.publications // 2
        self.publications -= right.publications
        return right

    def merge(self, right: Leaf) -> None:
        """Takes in the space to the right, which the same predicates cover."""
        self.publications += right.publications

    def _copy(self) -> Leaf:
        return type(self)()


L = TypeVar("L", bound=Leaf)


class PSTree(Generic[L]):
    """The spaces of one dimension, ascending. The first starts at the smallest value, the last has no end."""

    __slots__ = ("_cut_uses", "_cuts", "_smallest", "created_at", "dimension", "leaves", "number")

    def __init__(self, dimension: Dimension, first: L, number: int = 0, created_at: int = 0) -> None:
        self.dimension = dimension
        self.number = number
        """Orders the dimensions of an index by when they first appeared."""
        self.created_at = created_at
        """How many publications the index had seen when this tree was made."""
        self.leaves: list[L] = [first]
        self._cuts: list[Any] = []
        # How many live predicates end at a cut; without any, the spaces on both sides are one.
        self._cut_uses: dict[Any, int] = {}
        self._smallest = smallest(dimension[1])

    def insert(self, values: ValueSet) -> list[L]:
        """Cuts at the ends of the intervals; returns the leaves that the predicate covers."""
        for cut in self._ends(values):
            self._split_at(cut)
        covered = self.covered(values)
        for leaf in covered:
            leaf.predicates += 1
        return covered

    def delete(self, values: ValueSet) -> list[L]:
        """Counts the predicate out; returns the leaves that it covered. `merge` then joins what it kept apart."""
        covered = self.covered(values)
        for leaf in covered:
            leaf.predicates -= 1
        return covered

    def merge(self, values: ValueSet) -> None:
        """Removes the cuts that only the deleted predicate needed."""
        for cut in self._ends(values):
            self._cut_uses[cut] -= 1
            if self._cut_uses[cut] == 0:
                del self._cut_uses[cut]
                position = bisect_left(self._cuts, cut)
                del self._cuts[position]
                self.leaves[position].merge(self.leaves.pop(position + 1))

    def locate(self, value: Value) -> L:
        """The leaf whose space holds the value."""
        return self.leaves[bisect_right(self._cuts, value)]

    def covered(self, values: ValueSet) -> list[L]:
        """The leaves inside an inserted predicate's intervals, or touched by any others'."""
        leaves: list[L] = []
        last = 0
        for lower, upper in values.intervals:
            start = max(last, bisect_right(self._cuts, lower))
            last = len(self.leaves) if upper is None else bisect_left(self._cuts, upper) + 1
            leaves += self.leaves[start:last]
        return leaves

    def matching_publications(self, values: ValueSet) -> int:
        """How many past publications fell into the spaces that the values touch."""
        return sum(leaf.publications for leaf in self.covered(values))

    def spaces(self) -> list[tuple[Interval, L]]:
        """Each space's interval with its leaf."""
        lowers = [self._smallest, *self._cuts]
        uppers = [*self._cuts, None]
        return [((lower, upper), leaf) for lower, upper, leaf in zip(lowers, uppers, self.leaves, strict=True)]

    def _ends(self, values: ValueSet) -> Iterator[Any]:
        for lower, upper in values.intervals:
            if lower != self._smallest:
                yield lower
            if upper is not None:
                yield upper

    def _split_at(self, cut: Any) -> None:
        if cut in self._cut_uses:
            self._cut_uses[cut] += 1
            return
        self._cut_uses[cut] = 1
        position = bisect_left(self._cuts, cut)
        self._cuts.insert(position, cut)
        right: Any = self.leaves[position].split()
        self.leaves.insert(position + 1, right)


class PSTrees(Generic[L]):
    """The PS-Trees of an index, one for each dimension that its predicates use."""

    def __init__(self, new_leaf: Callable[[], L]) -> None:
        self.publications = 0
        """Publications located so far."""
        self._new_leaf = new_leaf
        self._next_number = 0
        self._numbers: dict[str, PSTree[L]] = {}
        self._strings: dict[str, PSTree[L]] = {}
        self._booleans: dict[str, PSTree[L]] = {}
        self._users: dict[PSTree[L], int] = {}

    def __iter__(self) -> Iterator[PSTree[L]]:
        return iter(self._users)

    def __len__(self) -> int:
        return len(self._users)

    def get(self, dimension: Dimension) -> PSTree[L] | None:
        return self._by_class(dimension[1]).get(dimension[0])

    def acquire(self, dimension: Dimension) -> PSTree[L]:
        """The dimension's tree, for one more predicate; made when there is none."""
        tree = self.get(dimension)
        if tree is None:
            self._next_number += 1
            tree = PSTree(dimension, self._new_leaf(), self._next_number, self.publications)
            self._by_class(dimension[1])[dimension[0]] = tree
            self._users[tree] = 0
        self._users[tree] += 1
        return tree

    def release(self, tree: PSTree[L]) -> None:
        """One predicate less; a tree without predicates goes."""
        self._users[tree] -= 1
        if self._users[tree] == 0:
            del self._users[tree]
            del self._by_class(tree.dimension[1])[tree.dimension[0]]

    def locate(self, publication: dict[str, Value]) -> dict[PSTree[L], L]:
        """The leaf of each value that some predicate could ask for, counted there as an event."""
        self.publications += 1
        located: dict[PSTree[L], L] = {}
        by_type = {int: self._numbers, float: self._numbers, str: self._strings, bool: self._booleans}
        for attribute, value in publication.items():
            tree = by_type[type(value)].get(attribute)
            if tree is not None:
                leaf = tree.locate(value)
                leaf.publications += 1
                located[tree] = leaf
        return located

    def _by_class(self, type_class: TypeClass) -> dict[str, PSTree[L]]:
        if type_class is TypeClass.NUMBER:
            return self._numbers
        return self._strings if type_class is TypeClass.STRING else self._booleans
