"""Estimates how often an expression is true, from its shape and from the stored subscriptions.

The estimate selects the access child of an AND. Operators are ranked as in [THESIS 3.3]. Publications are assumed to
resemble subscriptions. An attribute that many predicates use is assumed to be present often. A value that many of the
attribute's equalities name is assumed to occur often. So `type = 'trade'` is not selective if every subscription has
it, and a rare word is selective. Predicates of a conjunction are assumed to be independent, those of a disjunction
exclusive. Only the order of the estimates matters.
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
"""The assumed share of the publications with the attribute. EQ and IN are not listed, because they are counted."""
_POINTS = frozenset((Operator.EQ, Operator.IN))
_OTHER_VALUES = 3
"""The assumed number of uses of values that occur in publications but in no subscription."""


class Selectivity:
    def __init__(self) -> None:
        self._uses = 0
        self._uses_of_dimension: dict[Dimension, int] = {}
        self._uses_of_points: dict[Dimension, int] = {}

    def count_use(self, node: Node, times: int) -> None:
        """Counts a use of the node. `times` is 1 for a new use and -1 for a removed one."""
        if node.predicate is None:
            return
        self._uses += times
        _count(self._uses_of_dimension, node.predicate.dimension, times)
        if node.predicate.operator in _POINTS:
            _count(self._uses_of_points, node.predicate.dimension, times)

    def share(self, node: Node) -> float:
        """The estimated share of publications for which the node is true."""
        if node.predicate is not None:
            return self._share_of_predicate(node.predicate, node.uses)
        # Shares fall as uses grow. Estimating again only when uses have doubled keeps this cheap for large nodes.
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
        # An operand may have to be false. All that is known then is that it must be defined.
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
