"""Matching without the zero suppression filter: true and false are propagated, undefined is not [ATREE 5.1].

Expressions are stored unchanged. Because of NOT, XOR and XNOR, a node can be true because others are false. So every
predicate on an attribute of the publication must be decided, and false results are propagated like true ones.

With propagation on demand, an AND listens only to its access child and is evaluated only if that child is true. This is
correct if no listener needs to know whether the AND is false, so it is not used below NOT, XOR and XNOR. The papers do
not mention this.
"""

from __future__ import annotations

from collections.abc import Sequence

from matching.expressions.model import Expression, Truth
from matching.expressions.values import Value
from matching.indexes.a_tree.node import Kind, Node
from matching.indexes.a_tree.predicates import DecidedPredicates
from matching.indexes.a_tree.queues import LevelQueues
from matching.matcher import SearchResult


class ThreeValued:
    def __init__(self) -> None:
        self.predicates = DecidedPredicates()
        self._number = 0

    def stored_form(self, expression: Expression) -> Expression:
        return expression

    def search(self, publication: dict[str, Value]) -> SearchResult:
        self._number += 1
        return _Search(self._number, publication).run(self.predicates)


class _Search:
    """Propagates the results for one publication, from the lowest level to the highest."""

    __slots__ = ("_evaluated", "_number", "_publication", "_queues")

    def __init__(self, number: int, publication: dict[str, Value]) -> None:
        self._number = number
        self._publication = publication
        self._queues = LevelQueues(number)
        self._evaluated = 0

    def run(self, predicates: DecidedPredicates) -> SearchResult:
        ids: list[int] = []
        candidates = 0
        for node, truth in predicates.decided(self._publication):
            candidates += len(node.ids)
            self._push(node, truth, ids)
        while reached := self._queues.pop_lowest():
            for node in reached:
                candidates += len(node.ids)
                self._push(node, self._combine_children(node), ids)
        return SearchResult(ids, candidates, self._evaluated)

    def _push(self, node: Node, truth: Truth, ids: list[int]) -> None:
        self._evaluated += 1
        if truth is None:
            return
        node.seen = self._number
        node.truth = truth
        self._queues.put(node.listeners)
        if truth:
            ids += node.ids

    def _combine_children(self, node: Node) -> Truth:
        """The result of a node after a child pushed its result.

        It may be undefined because no listener needs to know whether it is false.
        """
        if node.kind is Kind.OR and not node.falsity_listeners:
            return True if any(child.truth for child in node.children if child.seen == self._number) else None
        if node.kind is Kind.AND:
            return self._conjunction(node)
        return combined(node.kind, [self._known(child) for child in node.children])

    def _conjunction(self, node: Node) -> Truth:
        result: Truth = True
        for child in node.children:
            truth = self._known(child)
            if truth is False:
                return False
            if truth is None:
                result = None
                if not node.falsity_listeners:
                    break
        return result

    def _known(self, node: Node) -> Truth:
        """The result of a child on a finished level, for a parent that another child pushed its result to."""
        if node.seen == self._number:
            return node.truth
        if node.is_watched:
            # The node is not true. If the parent needed to know that it is false, the result would have been pushed.
            return None
        return self._pull(node)

    def _pull(self, target: Node) -> Truth:
        """Evaluates an unwatched node and the nodes below it, each at most once.

        If no listener needs to know whether a node is false, it may be false although no result was pushed. Such nodes
        are evaluated too, watched or not.
        """
        walk = [(target, False)]
        while walk:
            node, is_ready = walk.pop()
            if node.seen == self._number or node.falsity_listeners:
                continue
            if node.predicate is not None:
                self._record(node, node.predicate.evaluate(self._publication))
            elif is_ready:
                truths = [child.truth if child.seen == self._number else None for child in node.children]
                self._record(node, combined(node.kind, truths))
            else:
                walk.append((node, True))
                walk += [(child, False) for child in node.children]
        return target.truth

    def _record(self, node: Node, truth: Truth) -> None:
        node.seen = self._number
        node.truth = truth
        self._evaluated += 1


def combined(kind: Kind, truths: Sequence[Truth]) -> Truth:
    """[ATREE Table 2]."""
    match kind:
        case Kind.AND:
            return False if False in truths else None if None in truths else True
        case Kind.OR:
            return True if True in truths else None if None in truths else False
        case Kind.NOT:
            return None if truths[0] is None else not truths[0]
        case Kind.XOR:
            return None if None in truths else truths[0] is not truths[1]
        case _:
            return None if None in truths else truths[0] is truths[1]
