"""Chooses which results are pushed to parents and which are pulled by them [ATREE 5.1, 5.2.2].

A node is watched if it has subscriptions, or if a watched parent listens to it. Results of watched nodes are pushed
upwards. An unwatched node costs a publication nothing until a parent pulls its result. An unwatched predicate is not in
the predicate index.

Watching extends downwards. A new subscription makes its node watched. The node then listens to some of its children,
which makes them watched, and so on down to the predicates.

Departs from [ATREE 5.2.2]: the access child of an AND is not chosen at random. It is the child that is expected to be
true least often. The nodes below the other children are not evaluated in advance. They are evaluated when the access
child is true, unless another node watches them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol, TypeAlias

from matching.indexes.a_tree.node import NEEDS_FALSITY, Kind, Node
from matching.indexes.a_tree.selectivity import Selectivity

Sources: TypeAlias = tuple[tuple[Node, ...], bool]
"""The children that a node listens to, and whether it needs their false results, too."""


class PredicateIndex(Protocol):
    """Stores the watched predicates and constants, and finds their results."""

    def add(self, node: Node) -> None: ...

    def remove(self, node: Node) -> None: ...


class Propagation(ABC):
    def __init__(self, predicates: PredicateIndex, selectivity: Selectivity) -> None:
        self._predicates = predicates
        self._selectivity = selectivity

    @abstractmethod
    def arrange(self, node: Node) -> None:
        """Sets `to_check` and the order of the children, after an inner node got new children."""

    @abstractmethod
    def _choose_sources(self, node: Node) -> Sources:
        """The children that a watched inner node listens to."""

    def refresh(self, node: Node) -> None:
        """Updates listeners and watching, after the node's children, subscriptions or listeners have changed."""
        pending = [node]
        while pending:
            changed = pending.pop()
            is_watched = bool(changed.ids or changed.listeners)
            if changed.is_inner:
                self._listen(changed, self._choose_sources(changed) if is_watched else ((), False), pending)
            elif is_watched and not changed.is_watched:
                self._predicates.add(changed)
            elif changed.is_watched and not is_watched:
                self._predicates.remove(changed)
            changed.is_watched = is_watched

    def _listen(self, node: Node, chosen: Sources, pending: list[Node]) -> None:
        sources, needs_falsity = chosen
        if sources == node.sources and needs_falsity is node.needs_falsity:
            return
        for child in node.sources:
            del child.listeners[node]
            child.falsity_listeners -= node.needs_falsity
        for child in sources:
            child.listeners[node] = None
            child.falsity_listeners += needs_falsity
        pending += dict.fromkeys(node.sources + sources)
        node.sources, node.needs_falsity = sources, needs_falsity


class FullPropagation(Propagation):
    """Propagation on demand is off: a result is pushed to all parents, so any child triggers an AND."""

    def arrange(self, node: Node) -> None:
        node.to_check = node.children if node.kind is Kind.AND else ()

    def _choose_sources(self, node: Node) -> Sources:
        return node.children, True


class OnDemandPropagation(Propagation):
    """An AND listens only to its access child, unless a listener needs to know whether the AND is false."""

    def arrange(self, node: Node) -> None:
        if node.kind is Kind.AND:
            node.children = tuple(sorted(node.children, key=self._rarest_first))
            node.to_check = node.children[1:]
        elif node.kind is Kind.OR:
            # Pulling the result of an OR stops at the first child that is true.
            node.children = tuple(sorted(node.children, key=self._rarest_first, reverse=True))

    def _choose_sources(self, node: Node) -> Sources:
        if node.falsity_listeners or node.kind in NEEDS_FALSITY:
            return node.children, True
        return (node.children[:1] if node.kind is Kind.AND else node.children), False

    def _rarest_first(self, node: Node) -> tuple[float, int, int]:
        return self._selectivity.share(node), node.uses, node.identity
