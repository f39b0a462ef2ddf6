"""PSTBloom: an access predicate finds a subscription, Bloom signatures prune, the rest is evaluated [THESIS 7].

The access condition of a subscription is its most selective condition. The subscription is attached to the leaves of
that dimension's PS-Tree that the condition covers. For each other condition, the number of the subscription is added to
the signatures of the leaves that this condition covers. A publication leads to one leaf in each of its dimensions. The
subscriptions attached to these leaves are the candidates. A candidate cannot match if its number is missing from the
signature of another dimension's leaf. The conditions of the remaining candidates are evaluated.

Departs from [THESIS 7.1]: a signature has one bit for each number modulo its width, and the width grows with the
members of the dimension. Numbers are assigned in sequence, so no hash function would spread them better.
Departs from [THESIS 7.2]: a condition that covers more than half of its dimension's spaces is only evaluated and not
added to signatures. It would change most of the signatures and prune few candidates.
Departs from [THESIS 7.4]: a Bloom filter cannot remove one member. Bits of removed subscriptions stay until as many
members were removed as the dimension has. Then its signatures are rebuilt, at constant cost per removal. Results stay
correct, because candidates are verified.

Cost: match O(attributes * log spaces + candidates); add and remove O(spaces covered).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from matching.expressions.conjunction import Condition, conditions_of, require_conjunction
from matching.expressions.intervals import ValueSet
from matching.expressions.model import Expression, Predicate
from matching.expressions.normal_forms import Clause
from matching.expressions.values import CLASS_BY_TYPE, Dimension, TypeClass, Value
from matching.indexes.pst.ps_tree import Leaf, PSTree, PSTrees
from matching.indexes.pst.selectivity import sort_by_selectivity
from matching.matcher import Matcher, SearchResult

MIN_SIGNATURE_BITS = 64
BITS_PER_MEMBER = 2


class BloomLeaf(Leaf):
    __slots__ = ("attached", "signature")

    def __init__(self) -> None:
        super().__init__()
        self.attached: dict[int, Entry] = {}
        """Subscriptions whose access condition covers this space, by number."""
        self.signature = bytearray()
        """One bit for each number of a subscription with another condition that covers this space."""

    def _copy(self) -> BloomLeaf:
        copy = BloomLeaf()
        copy.attached = dict(self.attached)
        copy.signature = bytearray(self.signature)
        return copy


class Entry:
    """One stored subscription."""

    __slots__ = ("access", "id", "number", "pruning", "signed", "to_verify")

    def __init__(self, id: int, number: int, access: Condition | None, signed: tuple[Condition, ...]) -> None:
        self.id = id
        self.number = number
        self.access = access
        """None if the subscription has no condition that a value of a publication can lead to."""
        self.signed = signed
        self.pruning: tuple[Signatures, ...] = ()
        """The dimensions in which the signature of the publication's leaf must contain this number."""
        self.to_verify: tuple[Predicate, ...] = ()
        """The predicates that must still be evaluated."""


class Signatures:
    """The signatures of one dimension: their members and their width."""

    __slots__ = ("mask", "members", "stale", "tree")

    def __init__(self, tree: PSTree[BloomLeaf]) -> None:
        self.tree = tree
        self.members: dict[int, ValueSet] = {}
        self._rebuild()

    def add(self, number: int, values: ValueSet, covered: list[BloomLeaf]) -> None:
        self.members[number] = values
        if len(self.members) * BITS_PER_MEMBER > self.mask:
            self._rebuild()
            return
        _sign(number & self.mask, covered)

    def discard(self, number: int) -> None:
        del self.members[number]
        self.stale += 1
        if self.stale > len(self.members):
            self._rebuild()

    def _rebuild(self) -> None:
        """Rebuilds all signatures at twice the width that the members need.

        The next rebuild then comes after as many additions as there are members.
        """
        width = MIN_SIGNATURE_BITS
        while width < 2 * BITS_PER_MEMBER * len(self.members):
            width *= 2
        self.mask = width - 1
        self.stale = 0
        for leaf in self.tree.leaves:
            leaf.signature = bytearray(width // 8)
        for number, values in self.members.items():
            _sign(number & self.mask, self.tree.covered(values))


def _sign(position: int, leaves: list[BloomLeaf]) -> None:
    byte, bit = position >> 3, 1 << (position & 7)
    for leaf in leaves:
        leaf.signature[byte] |= bit


class PSTBloom(Matcher):
    """The index `pst-bloom`."""

    name = "pst-bloom"

    def __init__(self) -> None:
        super().__init__()
        self._trees: PSTrees[BloomLeaf] = PSTrees(BloomLeaf)
        self._signatures: dict[PSTree[BloomLeaf], Signatures] = {}
        self._entries: dict[int, Entry] = {}
        self._numbers = itertools.count()
        # Subscriptions whose access condition is satisfied by any value of the dimension, and those that have none.
        self._by_presence: dict[Dimension, dict[int, Entry]] = {}
        self._unconditional: dict[int, Entry] = {}

    def _insert(self, id: int, expression: Expression) -> None:
        self.insert_clause(id, require_conjunction(self.name, expression))

    def insert_clause(self, id: int, clause: Clause) -> None:
        """Stores a conjunction of these predicates, for indexes that use this one."""
        ranked = sort_by_selectivity(conditions_of(clause), self._trees.get, self._trees.publications)
        access = ranked[0] if ranked else None
        signed = tuple(condition for condition in ranked[1:] if self._is_worth_signing(condition))
        entry = Entry(id, next(self._numbers), access, signed)
        decided = set(access.predicates) if access is not None and access.is_exact else set()
        entry.to_verify = tuple(predicate for predicate in clause if predicate not in decided)
        self._attach(entry)
        entry.pruning = tuple(self._sign(entry.number, condition) for condition in signed)
        self._entries[id] = entry

    def _is_worth_signing(self, condition: Condition) -> bool:
        if condition.values is None:
            return False
        tree = self._trees.get(condition.dimension)
        # A new condition usually splits two of the spaces that it touches.
        return tree is None or 2 * len(tree.covered(condition.values)) <= len(tree.leaves) + 2

    @property
    def clause_count(self) -> int:
        return len(self._entries)

    def _attach(self, entry: Entry) -> None:
        access = entry.access
        if access is None:
            self._unconditional[entry.number] = entry
        elif access.values is None:
            self._by_presence.setdefault(access.dimension, {})[entry.number] = entry
        else:
            for leaf in self._trees.acquire(access.dimension).insert(access.values):
                leaf.attached[entry.number] = entry

    def _sign(self, number: int, condition: Condition) -> Signatures:
        assert condition.values is not None
        tree = self._trees.acquire(condition.dimension)
        if tree not in self._signatures:
            self._signatures[tree] = Signatures(tree)
        self._signatures[tree].add(number, condition.values, tree.insert(condition.values))
        return self._signatures[tree]

    def _delete(self, id: int, expression: Expression) -> None:
        self.delete_clause(id)

    def delete_clause(self, id: int) -> None:
        entry = self._entries.pop(id)
        self._detach(entry)
        for condition, signatures in zip(entry.signed, entry.pruning, strict=True):
            assert condition.values is not None
            signatures.discard(entry.number)
            if not signatures.members:
                del self._signatures[signatures.tree]
            self._release_values(signatures.tree, condition.values)

    def _detach(self, entry: Entry) -> None:
        access = entry.access
        if access is None:
            del self._unconditional[entry.number]
        elif access.values is None:
            del self._by_presence[access.dimension][entry.number]
            if not self._by_presence[access.dimension]:
                del self._by_presence[access.dimension]
        else:
            tree = self._trees.get(access.dimension)
            assert tree is not None
            for leaf in tree.covered(access.values):
                del leaf.attached[entry.number]
            self._release_values(tree, access.values)

    def _release_values(self, tree: PSTree[BloomLeaf], values: ValueSet) -> None:
        tree.delete(values)
        tree.merge(values)
        self._trees.release(tree)

    def _search(self, publication: dict[str, Value]) -> SearchResult:
        located = self._trees.locate(publication)
        lists = [leaf.attached for leaf in located.values() if leaf.attached]
        lists += self._lists_by_presence(publication)
        lists.append(self._unconditional)
        ids: list[int] = []
        evaluated = 0
        for attached in lists:
            for number, entry in attached.items():
                for signatures in entry.pruning:
                    leaf = located.get(signatures.tree)
                    position = number & signatures.mask
                    if leaf is None or not leaf.signature[position >> 3] >> (position & 7) & 1:
                        break
                else:
                    evaluated += 1
                    for predicate in entry.to_verify:
                        if predicate.evaluate(publication) is not True:
                            break
                    else:
                        ids.append(entry.id)
        return SearchResult(ids, candidates=sum(map(len, lists)), evaluated=evaluated)

    def _lists_by_presence(self, publication: dict[str, Value]) -> list[dict[int, Entry]]:
        if not self._by_presence:
            return []
        lists = []
        for attribute, value in publication.items():
            for type_class in (CLASS_BY_TYPE[type(value)], TypeClass.ANY):
                attached = self._by_presence.get((attribute, type_class))
                if attached:
                    lists.append(attached)
        return lists

    def _shape(self) -> tuple[int, int, Mapping[str, int]]:
        leaves = sum(len(tree.leaves) for tree in self._trees)
        details = {
            "trees": len(self._trees),
            "spaces": leaves,
            "attachments": sum(len(leaf.attached) for tree in self._trees for leaf in tree.leaves),
            "signature bits": sum((each.mask + 1) * len(each.tree.leaves) for each in self._signatures.values()),
            "by presence": sum(map(len, self._by_presence.values())),
            "unconditional": len(self._unconditional),
        }
        levels = 2 if self._trees else min(1, len(self._entries))
        return leaves + len(self._by_presence) + len(self._unconditional), levels, details
