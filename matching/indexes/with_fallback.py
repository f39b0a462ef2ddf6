"""An index with a fallback for the expressions that it cannot store.

Brokers accept any expression with any index in their configuration: `for_any_expression("pst-bloom")`.
"""

from __future__ import annotations

from collections.abc import Mapping

from matching.errors import UnsupportedExpressionError
from matching.expressions.model import Expression
from matching.expressions.values import Value
from matching.matcher import Matcher, MatchReport, SearchResult
from matching.registry import Accepts, create, info

FALLBACK = "a-tree"


def for_any_expression(name: str) -> Matcher:
    """Creates the named index, combined with `a-tree` if it cannot store every expression."""
    index = create(name)
    return index if info(name).accepts is Accepts.ANY_EXPRESSION else WithFallback(index, create(FALLBACK))


class WithFallback(Matcher):
    """Stores an expression in the fallback if the preferred index refuses it."""

    name = "with-fallback"

    def __init__(self, preferred: Matcher, fallback: Matcher) -> None:
        super().__init__()
        self._preferred = preferred
        self._fallback = fallback

    def match_packed(self, attributes: bytes) -> MatchReport:
        """While the fallback is empty, the preferred index gets the bytes: a native index reads them itself."""
        return super().match_packed(attributes) if len(self._fallback) else self._preferred.match_packed(attributes)

    def _insert(self, id: int, expression: Expression) -> None:
        try:
            self._preferred.add(id, expression)
        except UnsupportedExpressionError:
            self._fallback.add(id, expression)

    def _delete(self, id: int, expression: Expression) -> None:
        (self._preferred if id in self._preferred else self._fallback).remove(id)

    def _search(self, publication: dict[str, Value]) -> SearchResult:
        preferred, fallback = self._preferred._search(publication), self._fallback._search(publication)
        return SearchResult(
            preferred.ids + fallback.ids,
            preferred.candidates + fallback.candidates,
            preferred.evaluated + fallback.evaluated,
        )

    def _shape(self) -> tuple[int, int, Mapping[str, int]]:
        nodes, levels, details = self._preferred._shape()
        other_nodes, other_levels, other_details = self._fallback._shape()
        figures = {**details, **{f"rest's {name}": figure for name, figure in other_details.items()}}
        return nodes + other_nodes, max(levels, other_levels), figures
