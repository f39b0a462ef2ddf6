"""PS-Tree: the disjoint predicate spaces of one dimension [THESIS 6, PST 4].

Predicates divide the ordered values of a dimension into spaces. Inside a space, every predicate is either true for all
values or false for all values. To find the predicates that a value satisfies, the tree finds the value's space. Each
space has a leaf. The leaf counts the predicates that cover the space and the publications whose value was in it. An
index attaches its own data to leaves. Inserting a predicate splits spaces at its ends. Deleting it merges them again.

Departs from [THESIS 6.1]: the spaces are in one sorted array instead of a trie over digits or characters. A PS-Tree is
defined by its spaces, and a binary search in C is faster than a walk over nodes in Python.
Departs from [THESIS 6.4]: two spaces merge if no live predicate ends between them. The text suggests to compare
counters, but equal counters do not imply equal predicates.

Cost, with n spaces: locate O(log n); insert and delete O(log n + spaces covered).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from matching.expressions.intervals import Interval, ValueSet
from matching.expressions.values import Dimension, TypeClass, Value, smallest


class Leaf:
    """One predicate space. An index derives its own leaf class to attach subscriptions."""

    __slots__ = ("predicates", "publications")

    def __init__(self) -> None:
        self.predicates = 0
        """The number of live predicates that cover this space."""
        self.publications = 0
        """The number of publications whose value was in this space."""

    def split(self) -> Leaf:
        """Splits the space. Returns a leaf with the same predicates for the right part, and keeps the left part."""
        right = self._copy()
        right.predicates = self.predicates
        # The values of past publications are unknown. Halving the count keeps the sum correct.
        right.publications = self.publications // 2
        self.publications -= right.publications
        return right

    def merge(self, right: Leaf) -> None:
        """Merges the space to the right into this one. The same predicates cover both."""
        self.publications += right.publications

    def _copy(self) -> Leaf:
        return type(self)()


L = TypeVar("L", bound=Leaf)


class PSTree(Generic[L]):
    """The spaces of one dimension, ascending. The first starts at the smallest value. The last has no end."""

    __slots__ = ("_cut_uses", "_cuts", "_smallest", "created_at", "dimension", "leaves", "number")

    def __init__(self, dimension: Dimension, first: L, number: int = 0, created_at: int = 0) -> None:
        self.dimension = dimension
        self.number = number
        """The position of the tree in the order of creation, over all trees of the index."""
        self.created_at = created_at
        """The number of publications that the index had matched when this tree was created."""
        self.leaves: list[L] = [first]
        self._cuts: list[Any] = []
        # The number of live predicates that end at a cut. At zero, the spaces on both sides merge.
        self._cut_uses: dict[Any, int] = {}
        self._smallest = smallest(dimension[1])

    def insert(self, values: ValueSet) -> list[L]:
        """Splits spaces at the ends of the intervals. Returns the leaves that the predicate covers."""
        for cut in self._ends(values):
            self._split_at(cut)
        covered = self.covered(values)
        for leaf in covered:
            leaf.predicates += 1
        return covered

    def delete(self, values: ValueSet) -> list[L]:
        """Uncounts the predicate. Returns the leaves that it covered. The caller must call `merge` afterwards."""
        covered = self.covered(values)
        for leaf in covered:
            leaf.predicates -= 1
        return covered

    def merge(self, values: ValueSet) -> None:
        """Removes the cuts that only the deleted predicate needed, and merges the spaces beside them."""
        for cut in self._ends(values):
            self._cut_uses[cut] -= 1
            if self._cut_uses[cut] == 0:
                del self._cut_uses[cut]
                position = bisect_left(self._cuts, cut)
                del self._cuts[position]
                self.leaves[position].merge(self.leaves.pop(position + 1))

    def locate(self, value: Value) -> L:
        """The leaf of the space that contains the value."""
        return self.leaves[bisect_right(self._cuts, value)]

    def covered(self, values: ValueSet) -> list[L]:
        """The leaves inside the values of an inserted predicate, or the leaves that any other values touch."""
        leaves: list[L] = []
        last = 0
        for lower, upper in values.intervals:
            start = max(last, bisect_right(self._cuts, lower))
            last = len(self.leaves) if upper is None else bisect_left(self._cuts, upper) + 1
            leaves += self.leaves[start:last]
        return leaves

    def matching_publications(self, values: ValueSet) -> int:
        """The number of past publications in the spaces that the values touch."""
        return sum(leaf.publications for leaf in self.covered(values))

    def spaces(self) -> list[tuple[Interval, L]]:
        """The interval and the leaf of each space."""
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
        """The number of publications located so far."""
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
        """Counts one more user of the dimension, and returns its tree. Creates the tree if there is none."""
        tree = self.get(dimension)
        if tree is None:
            self._next_number += 1
            tree = PSTree(dimension, self._new_leaf(), self._next_number, self.publications)
            self._by_class(dimension[1])[dimension[0]] = tree
            self._users[tree] = 0
        self._users[tree] += 1
        return tree

    def release(self, tree: PSTree[L]) -> None:
        """Counts one user less. Removes the tree if it was the last one."""
        self._users[tree] -= 1
        if self._users[tree] == 0:
            del self._users[tree]
            del self._by_class(tree.dimension[1])[tree.dimension[0]]

    def locate(self, publication: dict[str, Value]) -> dict[PSTree[L], L]:
        """Counts the publication at the leaves of its values. Returns these leaves, for dimensions that have a tree."""
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
