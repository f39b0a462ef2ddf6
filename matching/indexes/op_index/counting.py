"""Finds the subscriptions that match from the targets of true predicates [OPI 4.3, 5, 6.1].

Departs from [OPI 4.3]: a counter starts at zero when a publication first touches it. The paper sets all counters to the
sizes of the subscriptions and counts down. Here a publication only costs time for the counters that it touches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from matching.expressions.model import Expression
from matching.expressions.values import Value
from matching.indexes.op_index.members import CnfSubscription, Conjunction, Disjunction
from matching.matcher import SearchResult


class Tally:
    """Collects the results for one publication. Several conjunctions of a subscription may contribute."""

    def __init__(self, publication: dict[str, Value]) -> None:
        self._publication = publication
        self._matching: dict[int, None] = {}
        self._candidates: set[int] = set()
        self._evaluated: set[int] = set()

    def count(self, hits: list[Conjunction]) -> None:
        """Counts the hits of conjunctions. There is one hit for each true predicate."""
        counts = Counter(hits)
        self._candidates.update([conjunction.id for conjunction in counts])
        for conjunction, count in counts.items():
            if count == conjunction.needed and (not conjunction.absent or self._check_absence(conjunction)):
                self._matching[conjunction.id] = None

    def mark(self, hits: list[Disjunction]) -> None:
        """Sets the bits of CNF subscriptions. There is one hit for each true predicate in each opened partition."""
        bits: dict[CnfSubscription, int] = {}
        for disjunction in hits:
            owner = disjunction.owner
            bits[owner] = bits.get(owner, 0) | disjunction.bit
        for subscription, marked in bits.items():
            self._candidates.add(subscription.id)
            if marked | self._check_absence_bits(subscription) == subscription.all_bits:
                self._matching[subscription.id] = None

    def evaluate(self, expressions: Mapping[int, Expression]) -> None:
        """Evaluates expressions that have no pivot."""
        self._candidates.update(expressions)
        self._evaluated.update(expressions)
        for id, expression in expressions.items():
            if expression.matches(self._publication):
                self._matching[id] = None

    def found(self) -> SearchResult:
        return SearchResult(list(self._matching), len(self._candidates), len(self._evaluated))

    def _check_absence(self, conjunction: Conjunction) -> bool:
        self._evaluated.add(conjunction.id)
        return not any(name in self._publication for name in conjunction.absent)

    def _check_absence_bits(self, subscription: CnfSubscription) -> int:
        bits = 0
        for name, bit in subscription.absent:
            self._evaluated.add(subscription.id)
            if name not in self._publication:
                bits |= bit
        return bits
