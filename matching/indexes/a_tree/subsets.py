"""Finds the stored sets of operands that are subsets of a given set.

The index is a trie over the operands in a fixed order. A set is stored as the path of its members, with the newest node
first, because new nodes tend to be rare. A search follows only paths whose members are all in the given set, so a
popular operand does not make it slow. The rest of a path that only one set uses is not stored as branches.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from matching.indexes.a_tree.node import Node


class _Branch:
    __slots__ = ("children", "node")

    def __init__(self) -> None:
        self.node: Node | None = None
        """The node whose operands are exactly the path to this branch."""
        self.children: dict[Node, _Child] = {}


_Child: TypeAlias = _Branch | Node


def _path(node: Node) -> tuple[Node, ...]:
    return node.operands[::-1]


class SubsetIndex:
    """Nodes of one connective, by their operands."""

    def __init__(self) -> None:
        self._root = _Branch()

    def add(self, node: Node) -> None:
        path = _path(node)
        branch = self._root
        for depth, member in enumerate(path, start=1):
            child = branch.children.get(member)
            if child is None:
                branch.children[member] = node
                return
            if isinstance(child, Node):
                child = branch.children[member] = _expand(child, depth)
            branch = child
        branch.node = node

    def remove(self, node: Node) -> None:
        path: list[tuple[_Branch, Node]] = []
        branch = self._root
        for member in _path(node):
            path.append((branch, member))
            child = branch.children[member]
            if isinstance(child, Node):
                del branch.children[member]
                break
            branch = child
        else:
            branch.node = None
        for above, member in reversed(path):
            below = above.children.get(member)
            if isinstance(below, _Branch):
                _collapse(above, member, below)

    def within(self, operands: Iterable[Node]) -> list[Node]:
        """The stored nodes whose operands are all among these."""
        wanted = dict.fromkeys(operands)
        found: list[Node] = []
        pending = [self._root]
        while pending:
            branch = pending.pop()
            if branch.node is not None:
                found.append(branch.node)
            children = branch.children
            # Paths are in descending order, so no member can occur again below. The loop runs over the smaller table.
            common = (
                [m for m in children if m in wanted]
                if len(children) < len(wanted)
                else [m for m in wanted if m in children]
            )
            for member in common:
                child = children[member]
                if isinstance(child, _Branch):
                    pending.append(child)
                elif wanted.keys() >= set(child.operands):
                    found.append(child)
        return found


def _expand(node: Node, depth: int) -> _Branch:
    branch = _Branch()
    path = _path(node)
    if len(path) == depth:
        branch.node = node
    else:
        branch.children[path[depth]] = node
    return branch


def _collapse(above: _Branch, member: Node, branch: _Branch) -> None:
    """Removes a branch that has no sets, or replaces it by its only set."""
    if branch.node is None and not branch.children:
        del above.children[member]
    elif not branch.children:
        assert branch.node is not None
        above.children[member] = branch.node
    elif branch.node is None and len(branch.children) == 1:
        (only,) = branch.children.values()
        if isinstance(only, Node):
            above.children[member] = only
