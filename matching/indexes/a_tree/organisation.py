"""How nodes are built from other nodes: reorganisation and self-adjustment [ATREE 4.2.2, 4.2.3, 4.2.4].

An AND or an OR may have children that already combine some of its operands. Choosing them is a set cover problem. It is
solved greedily: each step chooses the node that covers the most uncovered operands. Reorganisation does this for a new
node. Self-adjustment repeats it for the nodes above a node that is added or removed.

Departs from [ATREE Algorithm 3]: self-adjustment computes the whole cover of a node again. The paper replaces the
children that the new node has in common with it. Ties between equally good sets are broken by size and by ID, never by
age. With both optimisations, the children of a node therefore depend only on its operands and on the nodes in the
graph. The number of nodes and edges is the same for every order of additions and removals. The papers observe this
without an argument, and the local step alone does not ensure it. Without self-adjustment the nodes are still the same,
because a cover uses nodes and never creates any. The edges differ.

Departs from [ATREE Algorithm 4]: a cover does not count as a use of the nodes in it. A node is removed when no
subscription and no other node uses its expression. Its parents then get new children, as the text of [ATREE 4.2.4]
says.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from matching.indexes.a_tree.node import ASSOCIATIVE, Kind, Node
from matching.indexes.a_tree.subsets import SubsetIndex

Rebuilt: TypeAlias = tuple[Node, Sequence[Node]]
"""A node and its new children."""


class Covers:
    """The nodes that can be parts of covers, by connective."""

    def __init__(self) -> None:
        self._subsets = {kind: SubsetIndex() for kind in Kind if kind in ASSOCIATIVE}

    def add(self, node: Node) -> None:
        self._subsets[node.kind].add(node)

    def remove(self, node: Node) -> None:
        self._subsets[node.kind].remove(node)

    def greedy(self, node: Node) -> Sequence[Node]:
        """The children for the node, chosen from all nodes of its connective."""
        if len(node.operands) < 3:
            return node.operands
        return greedy_cover(node, [part for part in self._subsets[node.kind].within(node.operands) if part is not node])


def greedy_cover(node: Node, parts: Iterable[Node]) -> Sequence[Node]:
    """[ATREE Algorithm 2], with parts whose operands are all operands of the node.

    An operand that no part covers is a child itself.
    """
    candidates = sorted(parts, key=lambda part: (len(part.operands), part.identity), reverse=True)
    uncovered = set(node.operands)
    chosen: list[Node] = []
    while candidates and uncovered:
        best = _best_part(uncovered, candidates)
        chosen.append(best)
        uncovered.difference_update(best.operands)
        candidates = [part for part in candidates if not uncovered.isdisjoint(part.operands)]
    return [*chosen, *(operand for operand in node.operands if operand in uncovered)]


def _best_part(uncovered: set[Node], largest_first: Sequence[Node]) -> Node:
    best, gain = largest_first[0], 0
    for part in largest_first:
        if len(part.operands) <= gain:
            break
        covered = len(uncovered.intersection(part.operands))
        if covered > gain:
            best, gain = part, covered
    return best


class NoCovers(Covers):
    """For an index that builds every node from its operands."""

    def add(self, node: Node) -> None:
        """Does nothing."""

    def remove(self, node: Node) -> None:
        """Does nothing."""


class Reorganisation(Protocol):
    def children_of(self, node: Node) -> Sequence[Node]:
        """The children of a new AND or OR."""


class SelfAdjustment(Protocol):
    def after_creation(self, node: Node) -> Iterable[Rebuilt]:
        """The nodes that get new children because this AND or OR was created."""

    def after_removal(self, node: Node) -> Iterable[Rebuilt]:
        """The parents of this AND or OR, with their children after its removal."""


@dataclass(frozen=True, slots=True)
class Organisation:
    covers: Covers
    reorganisation: Reorganisation
    adjustment: SelfAdjustment


class NoReorganisation:
    """Reorganisation is off: a node is built from its operands."""

    def children_of(self, node: Node) -> Sequence[Node]:
        return node.operands


class CoverReorganisation:
    """Reorganisation is on: a node is built from a greedy cover."""

    def __init__(self, covers: Covers) -> None:
        self._covers = covers

    def children_of(self, node: Node) -> Sequence[Node]:
        return self._covers.greedy(node)


class NoSelfAdjustment:
    """Self-adjustment is off: a new node changes no other. The parents of a removed node get its children."""

    def after_creation(self, node: Node) -> Iterable[Rebuilt]:
        return ()

    def after_removal(self, node: Node) -> Iterable[Rebuilt]:
        for parent in list(node.parents):
            kept = [child for child in parent.children if child is not node]
            yield parent, list(dict.fromkeys([*kept, *node.children]))


class CoverSelfAdjustment:
    """Self-adjustment is on: the covers of affected nodes are computed again."""

    def __init__(self, covers: Covers) -> None:
        self._covers = covers

    def after_creation(self, node: Node) -> Iterable[Rebuilt]:
        for larger in supersets(node):
            # The present parts won against all others. So the new node is chosen among them exactly if it is
            # chosen among all.
            parts = [child for child in larger.children if child.kind is larger.kind]
            if node in greedy_cover(larger, [*parts, node]):
                yield larger, self._covers.greedy(larger)

    def after_removal(self, node: Node) -> Iterable[Rebuilt]:
        for parent in list(node.parents):
            yield parent, self._covers.greedy(parent)


def supersets(node: Node) -> list[Node]:
    """The nodes of the same connective that have all operands of this node and more.

    All of them are above each of the operands, so it is enough to search above the operand with the fewest uses.
    """
    rarest = min(node.operands, key=lambda operand: (operand.uses, operand.serial))
    wanted = set(node.operands)
    above = dict.fromkeys(parent for parent in rarest.parents if parent.kind is node.kind)
    pending = list(above)
    while pending:
        for parent in pending.pop().parents:
            if parent.kind is node.kind and parent not in above:
                above[parent] = None
                pending.append(parent)
    return [larger for larger in above if larger is not node and wanted.issubset(larger.operands)]
