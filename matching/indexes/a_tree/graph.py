"""The nodes and edges of an A-Tree, and their maintenance while expressions are added and removed [ATREE 4.2].

There is one node for each distinct expression. An edge leads from a child to a parent. The level of a node is always
higher than the levels of its children. No function recurses, because expressions may be thousands of levels deep.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush

from matching.expressions.model import Predicate
from matching.indexes.a_tree.identities import Identities, NodeTable
from matching.indexes.a_tree.node import ASSOCIATIVE, Kind, Node
from matching.indexes.a_tree.organisation import Organisation, Rebuilt
from matching.indexes.a_tree.propagation import Propagation
from matching.indexes.a_tree.selectivity import Selectivity


class Graph:
    def __init__(
        self,
        identities: Identities,
        organisation: Organisation,
        propagation: Propagation,
        selectivity: Selectivity,
    ) -> None:
        self._identities = identities
        self._covers = organisation.covers
        self._reorganisation = organisation.reorganisation
        self._adjustment = organisation.adjustment
        self._propagation = propagation
        self._selectivity = selectivity
        self._table = NodeTable()
        self._next_serial = 0
        self._new_nodes: list[Node] = []

    def __iter__(self) -> Iterator[Node]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)

    def predicate(self, predicate: Predicate) -> Node:
        """Returns the node of the predicate. Creates it if there is none."""
        identity = self._identities.of_predicate(predicate)
        node = self._table.find_predicate(identity, predicate)
        if node is None:
            node = self._new_node(Kind.PREDICATE, predicate, (), identity)
        return node

    def connective(self, kind: Kind, operands: Sequence[Node]) -> Node:
        """Returns the node that combines the operands. Creates it if there is none.

        The operands must be distinct and may be in any order. An operand of an AND must not be an AND, and an operand
        of an OR must not be an OR.
        """
        ordered = tuple(sorted(operands, key=lambda operand: operand.serial))
        identity = self._identities.of_connective(kind, ordered)
        node = self._table.find_connective(identity, kind, ordered)
        if node is None:
            node = self._new_node(kind, None, ordered, identity)
            self._link(node)
        return node

    def subscribe(self, node: Node, id: int) -> None:
        """Adds a subscription to the node. Removes the nodes created for it that have no use."""
        node.ids[id] = None
        self._use(node)
        self._propagation.refresh(node)
        # A node is created after its operands. In reverse order, a node therefore comes after the nodes that use it.
        for made in reversed(self._new_nodes):
            if made.uses == 0:
                self._remove(made)
        self._new_nodes.clear()

    def unsubscribe(self, node: Node, id: int) -> None:
        """Removes a subscription from the node. Removes all nodes that then have no use."""
        del node.ids[id]
        self._propagation.refresh(node)
        pending = [node]
        while pending:
            released = pending.pop()
            self._release(released)
            if released.uses == 0:
                pending += released.operands
                self._unlink(released)

    def _use(self, node: Node) -> None:
        node.uses += 1
        self._selectivity.count_use(node, 1)

    def _release(self, node: Node) -> None:
        node.uses -= 1
        self._selectivity.count_use(node, -1)

    def _new_node(self, kind: Kind, predicate: Predicate | None, operands: tuple[Node, ...], identity: int) -> Node:
        self._next_serial += 1
        node = Node(kind, predicate, operands, identity, self._next_serial)
        self._table.add(node)
        self._new_nodes.append(node)
        return node

    def _link(self, node: Node) -> None:
        for operand in node.operands:
            self._use(operand)
        if not node.is_inner or node.kind not in ASSOCIATIVE:
            self._build(node, node.operands)
            return
        self._build(node, self._reorganisation.children_of(node))
        self._covers.add(node)
        self._rebuild(self._adjustment.after_creation(node))

    def _remove(self, node: Node) -> None:
        for operand in node.operands:
            self._release(operand)
        self._unlink(node)

    def _unlink(self, node: Node) -> None:
        """Removes the node from the table and from its children. Its parents are rebuilt from other nodes."""
        self._table.remove(node)
        if node.is_inner and node.kind in ASSOCIATIVE:
            self._covers.remove(node)
            self._rebuild(self._adjustment.after_removal(node))
        for child in node.children:
            del child.parents[node]

    def _rebuild(self, changes: Iterable[Rebuilt]) -> None:
        for node, children in changes:
            self._build(node, children)

    def _build(self, node: Node, children: Sequence[Node]) -> None:
        for child in node.children:
            del child.parents[node]
        for child in children:
            child.parents[node] = None
        node.children = tuple(children)
        self._propagation.arrange(node)
        self._update_levels(node)
        self._propagation.refresh(node)

    def _update_levels(self, node: Node) -> None:
        """Updates levels upwards in the order of the old levels, so that each node is computed once."""
        pending = [(node.level, node.serial, node)]
        queued = {node}
        while pending:
            _, _, changed = heappop(pending)
            level = 1 + max((child.level for child in changed.children), default=0)
            if level == changed.level:
                continue
            changed.level = level
            for parent in changed.parents:
                if parent not in queued:
                    queued.add(parent)
                    heappush(pending, (parent.level, parent.serial, parent))
