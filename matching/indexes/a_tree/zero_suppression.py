"""Matching with the zero suppression filter: only true results are propagated [ATREE 5.2.1].

Expressions are stored without NOT, XOR and XNOR, with negations inside the predicates. So no node can be true because
another node is false. False and undefined need not be distinguished: a node that was not found to be true is not true.
"""

from __future__ import annotations

from collections.abc import Iterator

from matching.expressions.model import Expression
from matching.expressions.normal_forms import negation_normal_form
from matching.expressions.values import Value
from matching.indexes.a_tree.node import Kind, Node
from matching.indexes.a_tree.predicates import SatisfiedPredicates
from matching.indexes.a_tree.queues import LevelQueues
from matching.matcher import SearchResult


class ZeroSuppressed:
    def __init__(self) -> None:
        self.predicates = SatisfiedPredicates()
        self._number = 0

    def stored_form(self, expression: Expression) -> Expression:
        return negation_normal_form(expression)

    def search(self, publication: dict[str, Value]) -> SearchResult:
        self._number += 1
        search = _Search(self._number, publication)
        return search.run(*self.predicates.satisfied(publication))


class _Search:
    """Propagates the results for one publication, from the lowest level to the highest."""

    __slots__ = ("_evaluated", "_number", "_publication")

    def __init__(self, number: int, publication: dict[str, Value]) -> None:
        self._number = number
        self._publication = publication
        self._evaluated = 0

    def run(self, satisfied: list[Node], failed: int) -> SearchResult:
        ids: list[int] = []
        candidates = 0
        self._evaluated = len(satisfied) + failed
        queues = LevelQueues(self._number)
        true = satisfied
        while True:
            for node in true:
                node.seen = self._number
                node.truth = True
                ids += node.ids
                queues.put(node.listeners)
            reached = queues.pop_lowest()
            if not reached:
                return SearchResult(ids, candidates + len(ids), self._evaluated)
            self._evaluated += len(reached)
            true = []
            for node in reached:
                # An OR has no children to check, because it was reached from a true child.
                if self._are_true(node.to_check):
                    true.append(node)
                else:
                    candidates += len(node.ids)

    def _are_true(self, nodes: tuple[Node, ...]) -> bool:
        for node in nodes:
            if node.seen == self._number:
                if not node.truth:
                    return False
            elif node.is_watched or not self._pull(node):
                # Lower levels are finished, so a watched node that is true has been seen.
                return False
        return True

    def _pull(self, target: Node) -> bool:
        """Evaluates an unwatched node and the nodes below that it needs, each at most once."""
        if target.predicate is not None:
            return self._evaluate(target)
        walk: list[tuple[Node, Iterator[Node]]] = [(target, iter(target.children))]
        while walk:
            node, children = walk[-1]
            deciding = node.kind is Kind.OR
            for child in children:
                if child.seen == self._number:
                    truth = child.truth is True
                elif child.is_watched:
                    truth = False
                elif child.predicate is not None:
                    truth = self._evaluate(child)
                else:
                    walk.append((child, iter(child.children)))
                    break
                if truth is deciding:
                    self._resolve(node, deciding, walk)
                    break
            else:
                self._resolve(node, not deciding, walk)
        return target.truth is True

    def _resolve(self, node: Node, truth: bool, walk: list[tuple[Node, Iterator[Node]]]) -> None:
        """Records the result of this node, and of the nodes above it on the walk that the result decides."""
        walk.pop()
        self._record(node, truth)
        while walk and (walk[-1][0].kind is Kind.OR) is truth:
            above, _ = walk.pop()
            self._record(above, truth)

    def _evaluate(self, node: Node) -> bool:
        assert node.predicate is not None
        truth = node.predicate.evaluate(self._publication) is True
        self._record(node, truth)
        return truth

    def _record(self, node: Node, truth: bool) -> None:
        node.seen = self._number
        node.truth = truth
        self._evaluated += 1
