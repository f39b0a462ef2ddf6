"""PSTHash: N access predicates at once, with a hash table over N-dimensional predicate spaces [THESIS 8].

The access conditions of a subscription are its N most selective conditions, on N distinct dimensions. Each covers some
spaces of its dimension's PS-Tree. The subscription is recorded under every combination of one space from each. A
publication leads to one space in each of its dimensions. The combinations of N of these spaces are looked up. The
subscriptions found there already satisfy N conditions, and the other conditions are verified.

When a space is split, the records under the old space are copied to keys with the new one. When two spaces merge, the
records of the right one are removed. Subscriptions with fewer than N usable conditions are stored as in PSTBloom, in
the same index [THESIS 8, note 1].

Departs from [THESIS 8.2]: a condition is skipped if it would record a subscription under more than `most_keys`
combinations. Two wide ranges over a large domain have millions of them.

Cost: match O(attributes * log spaces + C(attributes, N) + candidates); add and remove O(combinations covered).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from matching.expressions.conjunction import Condition, conditions_of, require_conjunction
from matching.expressions.intervals import ValueSet
from matching.expressions.model import Expression, Predicate
from matching.expressions.normal_forms import Clause
from matching.expressions.values import Dimension, Value
from matching.indexes.pst.bloom import PSTBloom
from matching.indexes.pst.ps_tree import Leaf, PSTree, PSTrees
from matching.indexes.pst.selectivity import sort_by_selectivity
from matching.matcher import Matcher, SearchResult

SpaceKey: TypeAlias = tuple[int, ...]
"""One space number from each of N dimensions, in the order in which the dimensions were created."""


class Record:
    """One subscription in the hash table."""

    __slots__ = ("access", "id", "to_verify")

    def __init__(
        self, id: int, access: tuple[tuple[Dimension, ValueSet], ...], to_verify: tuple[Predicate, ...]
    ) -> None:
        self.id = id
        self.access = access
        self.to_verify = to_verify


class SpaceLeaf(Leaf):
    __slots__ = ("keys", "space", "table")

    def __init__(self, table: SpaceTable) -> None:
        super().__init__()
        self.table = table
        self.space = table.register(self)
        """Unique over all dimensions."""
        self.keys: dict[SpaceKey, None] = {}
        """The keys of the table that contain this space, in the order in which they were added."""

    def _copy(self) -> SpaceLeaf:
        right = SpaceLeaf(self.table)
        self.table.copy_records(self, right)
        return right

    def merge(self, right: Leaf) -> None:
        super().merge(right)
        assert isinstance(right, SpaceLeaf)
        self.table.drop_records(right)


class SpaceTable:
    """Maps combinations of spaces to the subscriptions recorded under them."""

    def __init__(self) -> None:
        self.records: dict[SpaceKey, dict[int, Record]] = {}
        self._spaces: dict[int, SpaceLeaf] = {}
        self._next_space = 0

    def register(self, leaf: SpaceLeaf) -> int:
        self._next_space += 1
        self._spaces[self._next_space] = leaf
        return self._next_space

    def unregister(self, leaf: SpaceLeaf) -> None:
        del self._spaces[leaf.space]

    def add(self, key: SpaceKey, record: Record) -> None:
        if key not in self.records:
            self._add_key(key, {})
        self.records[key][record.id] = record

    def discard(self, key: SpaceKey, id: int) -> None:
        del self.records[key][id]
        if not self.records[key]:
            self._remove_key(key)

    def copy_records(self, left: SpaceLeaf, right: SpaceLeaf) -> None:
        for key in left.keys:
            position = key.index(left.space)
            renamed = (*key[:position], right.space, *key[position + 1 :])
            self._add_key(renamed, dict(self.records[key]))

    def drop_records(self, leaf: SpaceLeaf) -> None:
        for key in list(leaf.keys):
            self._remove_key(key)
        self.unregister(leaf)

    def _add_key(self, key: SpaceKey, records: dict[int, Record]) -> None:
        self.records[key] = records
        for space in key:
            self._spaces[space].keys[key] = None

    def _remove_key(self, key: SpaceKey) -> None:
        del self.records[key]
        for space in key:
            del self._spaces[space].keys[key]


class PSTHash(Matcher):
    """The index `pst-hash`."""

    name = "pst-hash"

    def __init__(self, access_predicates: int = 2, most_keys: int = 256) -> None:
        """`access_predicates` is N of the papers. A larger N finds fewer candidates and takes more memory."""
        super().__init__()
        if access_predicates < 2:
            raise ValueError(f"access_predicates is {access_predicates}; with fewer than 2, use pst-bloom")
        self._access_predicates = access_predicates
        self._most_keys = most_keys
        self._table = SpaceTable()
        self._trees: PSTrees[SpaceLeaf] = PSTrees(lambda: SpaceLeaf(self._table))
        self._records: dict[int, Record] = {}
        self._fallback = PSTBloom()

    def _insert(self, id: int, expression: Expression) -> None:
        clause = require_conjunction(self.name, expression)
        access = self._choose_access(clause)
        if access is None:
            self._fallback.insert_clause(id, clause)
            return
        decided = {predicate for condition in access if condition.is_exact for predicate in condition.predicates}
        to_verify = tuple(predicate for predicate in clause if predicate not in decided)
        trees = sorted((self._trees.acquire(condition.dimension) for condition in access), key=_tree_number)
        values = {condition.dimension: condition.values for condition in access if condition.values is not None}
        record = Record(id, tuple((tree.dimension, values[tree.dimension]) for tree in trees), to_verify)
        self._records[id] = record
        covered = [tree.insert(values[tree.dimension]) for tree in trees]
        for key in _keys(covered):
            self._table.add(key, record)

    def _choose_access(self, clause: Clause) -> list[Condition] | None:
        """Returns the N most selective conditions within `most_keys`, or None if there are fewer than N."""
        usable = [condition for condition in conditions_of(clause) if condition.values is not None]
        access: list[Condition] = []
        keys = 1
        for condition in sort_by_selectivity(usable, self._trees.get, self._trees.publications):
            spaces = self._spaces_covered(condition)
            if keys * spaces <= self._most_keys:
                access.append(condition)
                keys *= spaces
            if len(access) == self._access_predicates:
                return access
        return None

    def _spaces_covered(self, condition: Condition) -> int:
        assert condition.values is not None
        tree = self._trees.get(condition.dimension)
        # Each interval of the condition can split two of the spaces that it touches.
        return len(condition.values.intervals) if tree is None else len(tree.covered(condition.values))

    def _delete(self, id: int, expression: Expression) -> None:
        if id not in self._records:
            self._fallback.delete_clause(id)
            return
        record = self._records.pop(id)
        trees = [self._tree(dimension) for dimension, _ in record.access]
        covered = [tree.delete(values) for tree, (_, values) in zip(trees, record.access, strict=True)]
        for key in _keys(covered):
            self._table.discard(key, id)
        for tree, (_, values) in zip(trees, record.access, strict=True):
            tree.merge(values)
            self._trees.release(tree)
            if self._trees.get(tree.dimension) is None:
                self._table.unregister(tree.leaves[0])

    def _tree(self, dimension: Dimension) -> PSTree[SpaceLeaf]:
        tree = self._trees.get(dimension)
        assert tree is not None
        return tree

    def _search(self, publication: dict[str, Value]) -> SearchResult:
        located = self._trees.locate(publication)
        spaces = [leaf.space for tree, leaf in sorted(located.items(), key=_located_tree_number) if leaf.keys]
        fallback = self._fallback._search(publication)
        ids, candidates, evaluated = fallback.ids, fallback.candidates, fallback.evaluated
        records = self._table.records
        for key in itertools.combinations(spaces, self._access_predicates):
            found = records.get(key)
            if found is None:
                continue
            candidates += len(found)
            evaluated += len(found)
            for id, record in found.items():
                for predicate in record.to_verify:
                    if predicate.evaluate(publication) is not True:
                        break
                else:
                    ids.append(id)
        return SearchResult(ids, candidates, evaluated)

    def _shape(self) -> tuple[int, int, Mapping[str, int]]:
        nodes, levels, details = self._fallback._shape()
        spaces = sum(len(tree.leaves) for tree in self._trees)
        figures = {
            "trees": len(self._trees),
            "spaces": spaces,
            "keys": len(self._table.records),
            "records": sum(map(len, self._table.records.values())),
            "in PSTBloom's part": self._fallback.clause_count,
        }
        figures |= {f"PSTBloom's {name}": figure for name, figure in details.items()}
        return spaces + len(self._table.records) + nodes, max(levels, 3 if self._trees else 0), figures


def _tree_number(tree: PSTree[SpaceLeaf]) -> int:
    return tree.number


def _located_tree_number(located: tuple[PSTree[SpaceLeaf], SpaceLeaf]) -> int:
    return located[0].number


def _keys(covered: Iterable[list[SpaceLeaf]]) -> Iterable[SpaceKey]:
    return itertools.product(*([leaf.space for leaf in leaves] for leaves in covered))
