"""How nodes are built from other nodes: reorganisation and self-adjustment [ATREE 4.2.2, 4.2.3, 4.2.4].

An AND or an OR may stand on nodes that already combine some of its operands. Which ones is a set cover problem, solved
greedily: again and again the node that covers most of what is still uncovered. Reorganisation does this for a node
that arrives; self-adjustment does it again for the nodes above one that arrives or goes.

Departs from [ATREE Algorithm 3]: self-adjustment computes a node's whole cover again instead of putting the new node
in the place of its own children. Ties between equally good sets are broken by size and by ID, never by age. With both
optimisations a node's children are therefore a function of its operands and of the nodes there are, and the cost of
the index, nodes and edges, is the same for every order of arrival and departure. The papers observe this without an
argument, and the local step alone does not give it. Without self-adjustment the nodes are still the same, because a
cover uses nodes and never makes any; the edges are not.

Departs from [ATREE Algorithm 4]: a cover does not count as a use of the nodes in it. A node lives as long as some
subscription or some other node needs its expression; then its parents get new children, as [ATREE 4.2.4] says in words.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from matching.indexes.a_tree.node import ASSOCIATIVE, Kind, Node
from matching.indexes.a_tree.subsets import SubsetIndex

Rebuilt: TypeAlias = tuple[Node, Sequence[Node]]
"""A node, and the children that it gets."""


class Covers:
    """The nodes that can be parts of covers, by connective."""

    def __init__(self) -> None:
        self._subsets = {kind: SubsetIndex() for kind in Kind if kind in ASSOCIATIVE}

    def add(self, node: Node) -> None:
        self._subsets[node.kind].add(node)

    def remove(self, node: Node) -> None:
        self._subsets[node.kind].remove(node)

    def greedy(self, node: Node) -> Sequence[Node]:
        """What the node is best built from, of all that there is."""
        if len(node.operands) < 3:
            return node.operands
        return greedy_cover(node, [part for part in self._subsets[node.kind].within(node.operands) if part is not node])


def greedy_cover(node: Node, parts: Iterable[Node]) -> Sequence[Node]:
    """[ATREE Algorithm 2] with parts whose operands are all among the node's. What none covers stays an operand."""
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
        """Nobody will ask."""

    def remove(self, node: Node) -> None:
        """Nothing was kept."""


class Reorganisation(Protocol):
    def children_of(self, node: Node) -> Sequence[Node]:
        """What a new AND or OR is built from."""


class SelfAdjustment(Protocol):
    def after_creation(self, node: Node) -> Iterable[Rebuilt]:
        """The nodes that change because this AND or OR is there."""

    def after_removal(self, node: Node) -> Iterable[Rebuilt]:
        """The parents of this AND or OR, with what they are built from when it is gone."""


@dataclass(frozen=True, slots=True)
class Organisation:
    covers: Covers
    reorganisation: Reorganisation
    adjustment: SelfAdjustment


class NoReorganisation:
    """Reorganisation off."""

    def children_of(self, node: Node) -> Sequence[Node]:
        return node.operands


class CoverReorganisation:
    """Reorganisation on."""

    def __init__(self, covers: Covers) -> None:
        self._covers = covers

    def children_of(self, node: Node) -> Sequence[Node]:
        return self._covers.greedy(node)


class NoSelfAdjustment:
    """Self-adjustment off: nobody changes for a new node, and what goes leaves its children to its parents."""

    def after_creation(self, node: Node) -> Iterable[Rebuilt]:
        return ()

    def after_removal(self, node: Node) -> Iterable[Rebuilt]:
        for parent in list(node.parents):
            kept = [child for child in parent.children if child is not node]
            yield parent, list(dict.fromkeys([*kept, *node.children]))


class CoverSelfAdjustment:
    """Self-adjustment on."""

    def __init__(self, covers: Covers) -> None:
        self._covers = covers

    def after_creation(self, node: Node) -> Iterable[Rebuilt]:
        for larger in supersets(node):
            # Beside the parts that beat all others, the new one is chosen here exactly when it is chosen among all.
            parts = [child for child in larger.children if child.kind is larger.kind]
            if node in greedy_cover(larger, [*parts, node]):
                yield larger, self._covers.greedy(larger)

    def after_removal(self, node: Node) -> Iterable[Rebuilt]:
        for parent in list(node.parents):
            yield parent, self._covers.greedy(parent)


def supersets(node: Node) -> list[Node]:
    """The nodes of the same connective with all of this node's operands and more.

    All of them stand above each of the operands, so it is enough to look above the one with the fewest uses.
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
