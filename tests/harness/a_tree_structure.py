"""Checks the invariants of an A-Tree, and shows its structure as plain values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import TypedDict

from matching import Operator, Predicate
from matching.indexes.a_tree import ATree
from matching.indexes.a_tree.node import ASSOCIATIVE, Kind, Node


class Options(TypedDict, total=False):
    reorganisation: bool
    self_adjustment: bool
    zero_suppression: bool
    propagation_on_demand: bool


def is_one(attribute: str) -> Predicate:
    return Predicate(attribute, Operator.EQ, (1,))


def cost(index: ATree) -> int:
    """The number of nodes and edges [THESIS 9.1]."""
    structure = index.describe()
    return structure.nodes + structure.details["edges"]


def meaning(node: Node, known: dict[Node, Hashable] | None = None) -> Hashable:
    """The expression of the node, without the order of operands."""
    known = {} if known is None else known
    if node not in known:
        says: Hashable = frozenset(meaning(operand, known) for operand in node.operands)
        known[node] = (node.kind, says) if node.predicate is None else node.predicate
    return known[node]


def edges(index: ATree) -> dict[Hashable, frozenset[Hashable]]:
    """The children of each node, as expressions."""
    known: dict[Node, Hashable] = {}
    return {meaning(node, known): frozenset(meaning(child, known) for child in node.children) for node in index.nodes()}


def visited(index: ATree, number: int) -> set[Hashable]:
    """The nodes that were seen or queued for the publication with this number. The first publication has number 1."""
    return {meaning(node) for node in index.nodes() if number in (node.seen, node.queued)}


def check_structure(index: ATree) -> None:
    """Asserts all invariants of the tree."""
    nodes = list(index.nodes())
    assert len({meaning(node) for node in nodes}) == len(nodes), "one node for each expression"
    _check_uses(nodes)
    for node in nodes:
        assert node.level == 1 + max((child.level for child in node.children), default=0)
        assert _covered(node) == set(node.operands)
        assert all(node in child.parents for child in node.children)
        assert all(node in parent.children for parent in node.parents)
        assert len(set(node.children)) == len(node.children)
        if node.kind in ASSOCIATIVE:
            assert len(node.operands) != 1
            assert all(operand.kind is not node.kind for operand in node.operands)
            assert all(child.kind is node.kind or child in node.operands for child in node.children)
        _check_listening(node)


def _covered(node: Node) -> set[Node]:
    """The operands that the node's children represent."""
    covered: set[Node] = set()
    for child in node.children:
        covered |= set(child.operands) if node.kind in ASSOCIATIVE and child.kind is node.kind else {child}
    return covered


def _check_uses(nodes: list[Node]) -> None:
    uses = Counter(operand for node in nodes for operand in node.operands)
    for node in nodes:
        assert node.uses == uses[node] + len(node.ids) > 0


def _check_listening(node: Node) -> None:
    assert node.is_watched == bool(node.ids or node.listeners)
    assert set(node.sources) <= set(node.children)
    assert all(node in child.listeners for child in node.sources)
    assert all(node in listener.sources for listener in node.listeners)
    assert node.falsity_listeners == sum(listener.needs_falsity for listener in node.listeners)
    if node.is_watched and node.operands:
        assert node.sources
        if node.kind is not Kind.AND:
            assert set(node.sources) == set(node.children)
    else:
        assert not node.sources
