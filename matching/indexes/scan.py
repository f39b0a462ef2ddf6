"""Linear scan: the specification that every other index is tested against.

Semantics: [THESIS 3.2], any expression. Cost: add and remove O(1); match O(predicates stored).
"""

from __future__ import annotations

from collections.abc import Mapping

from matching.expressions.model import Expression
from matching.expressions.values import Value
from matching.matcher import Matcher, SearchResult


class LinearScan(Matcher):
    name = "scan"

    def _insert(self, id: int, expression: Expression) -> None:
        """Does nothing: `Matcher` stores the expressions."""

    def _delete(self, id: int, expression: Expression) -> None:
        """Does nothing."""

    def _search(self, publication: dict[str, Value]) -> SearchResult:
        ids = [id for id, expression in self._expressions.items() if expression.matches(publication)]
        return SearchResult(ids, candidates=len(self), evaluated=len(self))

    def _shape(self) -> tuple[int, int, Mapping[str, int]]:
        return len(self), min(1, len(self)), {}
