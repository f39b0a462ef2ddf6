"""From the targets of true predicates to the subscriptions that match [OPI 4.3, 5, 6.1].

Departs from [OPI 4.3]: counters start from zero when a publication first touches them, instead of being set to the
subscriptions' sizes and counted down, so that a publication pays only for what it touches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from matching.expressions.model import Expression
from matching.expressions.values import Value
from matching.indexes.op_index.members import CnfSubscription, Conjunction, Disjunction
from matching.matcher import SearchResult


class Tally:
    """Collects what one publication finds. A subscription may be touched by several of its conjunctions."""

    def __init__(self, publication: dict[str, Value]) -> None:
        self._publication = publication
        self._matching: dict[int, None] = {}
        self._candidates: set[int] = set()
        self._evaluated: set[int] = set()

    def count(self, hits: list[Conjunction]) -> None:
        """One hit for each true predicate."""
        counts = Counter(hits)
        self._candidates.update([conjunction.id for conjunction in counts])
        for conjunction, count in counts.items():
            if count == conjunction.needed and (not conjunction.absent or self._are_absent(conjunction)):
                self._matching[conjunction.id] = None

    def mark(self, hits: list[Disjunction]) -> None:
        """One hit for each true predicate, and again for each partition through which it was reached."""
        bits: dict[CnfSubscription, int] = {}
        for disjunction in hits:
            owner = disjunction.owner
            bits[owner] = bits.get(owner, 0) | disjunction.bit
        for subscription, marked in bits.items():
            self._candidates.add(subscription.id)
            if marked | self._bits_by_absence(subscription) == subscription.all_bits:
                self._matching[subscription.id] = None

    def evaluate(self, expressions: Mapping[int, Expression]) -> None:
        self._candidates.update(expressions)
        self._evaluated.update(expressions)
        for id, expression in expressions.items():
            if expression.matches(self._publication):
                self._matching[id] = None

    def found(self) -> SearchResult:
        return SearchResult(list(self._matching), len(self._candidates), len(self._evaluated))

    def _are_absent(self, conjunction: Conjunction) -> bool:
        self._evaluated.add(conjunction.id)
        return not any(name in self._publication for name in conjunction.absent)

    def _bits_by_absence(self, subscription: CnfSubscription) -> int:
        bits = 0
        for name, bit in subscription.absent:
            self._evaluated.add(subscription.id)
            if name not in self._publication:
                bits |= bit
        return bits
