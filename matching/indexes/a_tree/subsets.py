"""Which stored sets of operands are contained in a given one?

A trie over the operands in a fixed order: a set is the path of its members, the newest node first, because new nodes
tend to be rare ones. A search follows only paths whose members are all in the given set, so that a popular operand
does not make it slow. A path that belongs to one set alone is not written out.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from matching.indexes.a_tree.node import Node


class _Branch:
    __slots__ = ("beyond", "ending")

    def __init__(self) -> None:
        self.ending: Node | None = None
        """The set that is the path so far."""
        self.beyond: dict[Node, _Place] = {}


_Place: TypeAlias = _Branch | Node


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
            place = branch.beyond.get(member)
            if place is None:
                branch.beyond[member] = node
                return
            if isinstance(place, Node):
                place = branch.beyond[member] = _written_out(place, depth)
            branch = place
        branch.ending = node

    def remove(self, node: Node) -> None:
        walked: list[tuple[_Branch, Node]] = []
        branch = self._root
        for member in _path(node):
            walked.append((branch, member))
            place = branch.beyond[member]
            if isinstance(place, Node):
                del branch.beyond[member]
                break
            branch = place
        else:
            branch.ending = None
        for above, member in reversed(walked):
            below = above.beyond.get(member)
            if isinstance(below, _Branch):
                _shorten(above, member, below)

    def within(self, operands: Iterable[Node]) -> list[Node]:
        """The stored nodes all of whose operands are among these."""
        wanted = dict.fromkeys(operands)
        found: list[Node] = []
        pending = [self._root]
        while pending:
            branch = pending.pop()
            if branch.ending is not None:
                found.append(branch.ending)
            beyond = branch.beyond
            # The path so far is in descending order, hence so is whatever goes on: the smaller side is walked.
            common = (
                [m for m in beyond if m in wanted] if len(beyond) < len(wanted) else [m for m in wanted if m in beyond]
            )
            for member in common:
                place = beyond[member]
                if isinstance(place, _Branch):
                    pending.append(place)
                elif wanted.keys() >= set(place.operands):
                    found.append(place)
        return found


def _written_out(node: Node, depth: int) -> _Branch:
    branch = _Branch()
    path = _path(node)
    if len(path) == depth:
        branch.ending = node
    else:
        branch.beyond[path[depth]] = node
    return branch


def _shorten(above: _Branch, member: Node, branch: _Branch) -> None:
    """Takes away a branch that leads nowhere, or to one set alone."""
    if branch.ending is None and not branch.beyond:
        del above.beyond[member]
    elif not branch.beyond:
        assert branch.ending is not None
        above.beyond[member] = branch.ending
    elif branch.ending is None and len(branch.beyond) == 1:
        (only,) = branch.beyond.values()
        if isinstance(only, Node):
            above.beyond[member] = only
