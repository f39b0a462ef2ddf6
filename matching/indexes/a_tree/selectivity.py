"""A guess at how often an expression is true, from its shape and from what subscriptions ask for.

It decides which child of an AND is its access child. Operators are ranked as in [THESIS 3.3]. Beyond that, publications
are taken to talk about what subscriptions ask for: an attribute that many predicates use is present often, and a value
that many of the attribute's equalities name is its value often. So `type = 'trade'` says little where every
subscription says it, and a rare word says a lot. Predicates of a conjunction are taken as independent, those of a
disjunction as exclusive. Only the order of the figures matters.
"""

from __future__ import annotations

import math

from matching.expressions.model import Operator, Predicate
from matching.expressions.values import Dimension
from matching.indexes.a_tree.node import Kind, Node

_SHARES = {
    Operator.STARTS_WITH: 0.05,
    Operator.ENDS_WITH: 0.1,
    Operator.BETWEEN: 0.2,
    Operator.CONTAINS: 0.2,
    Operator.MATCHES: 0.3,
    Operator.LT: 0.5,
    Operator.LE: 0.5,
    Operator.GT: 0.5,
    Operator.GE: 0.5,
    Operator.NOT_MATCHES: 0.7,
    Operator.NOT_BETWEEN: 0.8,
    Operator.NOT_CONTAINS: 0.8,
    Operator.NOT_ENDS_WITH: 0.9,
    Operator.NOT_STARTS_WITH: 0.95,
    Operator.NOT_IN: 0.95,
    Operator.NE: 0.99,
    Operator.EXISTS: 1.0,
}
"""Shares of the publications that have the attribute; the points are counted instead."""
_POINTS = frozenset((Operator.EQ, Operator.IN))
_OTHER_VALUES = 3
"""Values that publications have and that no subscription asks for, in uses."""


class Selectivity:
    def __init__(self) -> None:
        self._uses = 0
        self._uses_of_dimension: dict[Dimension, int] = {}
        self._uses_of_points: dict[Dimension, int] = {}

    def count_use(self, node: Node, times: int) -> None:
        """The node is used once more, or with -1 once less."""
        if node.predicate is None:
            return
        self._uses += times
        _count(self._uses_of_dimension, node.predicate.dimension, times)
        if node.predicate.operator in _POINTS:
            _count(self._uses_of_points, node.predicate.dimension, times)

    def share(self, node: Node) -> float:
        """The share of publications that make the node true."""
        if node.predicate is not None:
            return self._share_of_predicate(node.predicate, node.uses)
        # As uses grow, shares fall. Looking again whenever they have doubled keeps this cheap for large nodes.
        if self._uses > 2 * node.share_known_at:
            node.share = self._share_of_connective(node)
            node.share_known_at = self._uses
        return node.share

    def _share_of_connective(self, node: Node) -> float:
        shares = [
            operand.share if operand.predicate is None else self._share_of_predicate(operand.predicate, operand.uses)
            for operand in node.operands
        ]
        if node.kind is Kind.AND:
            return math.prod(shares)
        if node.kind is Kind.OR:
            return min(1.0, sum(shares))
        # Where an operand must be false, nothing is known but that it must be defined.
        return 0.5

    def _share_of_predicate(self, predicate: Predicate, uses: int) -> float:
        if predicate.operator is Operator.NOT_EXISTS:
            return 1.0
        presence = self._uses_of_dimension.get(predicate.dimension, 0) / (self._uses + 1)
        if predicate.operator in _POINTS:
            named = self._uses_of_points.get(predicate.dimension, 0)
            return presence * min(1.0, uses * len(predicate.values) / (named + _OTHER_VALUES))
        return presence * _SHARES[predicate.operator]


def _count(counts: dict[Dimension, int], dimension: Dimension, times: int) -> None:
    counts[dimension] = counts.get(dimension, 0) + times
    if counts[dimension] == 0:
        del counts[dimension]
