"""Who is told the result of a node, and who must ask for it [ATREE 5.1, 5.2.2].

A node is watched when it has subscriptions or when a watched parent listens to it. Results of watched nodes are pushed
upwards. A node that nobody watches costs a publication nothing until a parent asks for its result; a predicate that
nobody watches is not even in the predicate index.

Listening follows watching downwards: a new subscription makes its node watched, which makes the node listen to some of
its children, which makes those watched, and so on to the predicates.

Departs from [ATREE 5.2.2]: the access child of an AND is not drawn at random; it is the child that is expected to be
true least often. And what is below the other children is not evaluated in advance, only when the access child has
spoken, unless somebody else watches it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol, TypeAlias

from matching.indexes.a_tree.node import NEEDS_FALSITY, Kind, Node
from matching.indexes.a_tree.selectivity import Selectivity

Sources: TypeAlias = tuple[tuple[Node, ...], bool]
"""The children to which a node listens, and whether it asks for their falsity."""


class PredicateIndex(Protocol):
    """Finds the results of watched predicates, and knows the watched constants."""

    def add(self, node: Node) -> None: ...

    def remove(self, node: Node) -> None: ...


class Propagation(ABC):
    def __init__(self, predicates: PredicateIndex, selectivity: Selectivity) -> None:
        self._predicates = predicates
        self._selectivity = selectivity

    @abstractmethod
    def arrange(self, node: Node) -> None:
        """Decides `checked`, and the order of the children, for new children of an inner node."""

    @abstractmethod
    def _choose_sources(self, node: Node) -> Sources:
        """To whom a watched inner node listens."""

    def refresh(self, node: Node) -> None:
        """Makes listening right after the node's children, subscriptions or listeners have changed."""
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
    """Propagation on demand off: every child tells every parent, so an AND is evaluated when any child has spoken."""

    def arrange(self, node: Node) -> None:
        node.to_check = node.children if node.kind is Kind.AND else ()

    def _choose_sources(self, node: Node) -> Sources:
        return node.children, True


class OnDemandPropagation(Propagation):
    """An AND listens to its access child alone, unless somebody asks whether it is false."""

    def arrange(self, node: Node) -> None:
        if node.kind is Kind.AND:
            node.children = tuple(sorted(node.children, key=self._rarest_first))
            node.to_check = node.children[1:]
        elif node.kind is Kind.OR:
            # Who asks an OR for its result is content with the first child that is true.
            node.children = tuple(sorted(node.children, key=self._rarest_first, reverse=True))

    def _choose_sources(self, node: Node) -> Sources:
        if node.falsity_listeners or node.kind in NEEDS_FALSITY:
            return node.children, True
        return (node.children[:1] if node.kind is Kind.AND else node.children), False

    def _rarest_first(self, node: Node) -> tuple[float, int, int]:
        return self._selectivity.share(node), node.uses, node.identity
