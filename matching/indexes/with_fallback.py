"""A conjunctive index for what it can hold, and another for the rest.

Brokers take any expression, whatever index their configuration names: `for_any_expression("pst-bloom")`.
"""

from __future__ import annotations

from collections.abc import Mapping

from matching.errors import UnsupportedExpressionError
from matching.expressions.model import Expression
from matching.expressions.values import Value
from matching.matcher import Found, Matcher, MatchReport
from matching.registry import Accepts, create, info

REST = "a-tree"


def for_any_expression(name: str) -> Matcher:
    """The named index, together with `a-tree` if there are expressions that it cannot hold."""
    index = create(name)
    return index if info(name).accepts is Accepts.ANY_EXPRESSION else WithFallback(index, create(REST))


class WithFallback(Matcher):
    name = "with-fallback"

    def __init__(self, preferred: Matcher, rest: Matcher) -> None:
        super().__init__()
        self._preferred = preferred
        self._rest = rest

    def match_packed(self, attributes: bytes) -> MatchReport:
        """A native index reads the bytes itself, so while the other one is empty nothing is unpacked."""
        return super().match_packed(attributes) if len(self._rest) else self._preferred.match_packed(attributes)

    def _insert(self, id: int, expression: Expression) -> None:
        try:
            self._preferred.add(id, expression)
        except UnsupportedExpressionError:
            self._rest.add(id, expression)

    def _delete(self, id: int, expression: Expression) -> None:
        (self._preferred if id in self._preferred else self._rest).remove(id)

    def _search(self, publication: dict[str, Value]) -> Found:
        preferred, rest = self._preferred._search(publication), self._rest._search(publication)
        return Found(
            preferred.ids + rest.ids, preferred.candidates + rest.candidates, preferred.evaluated + rest.evaluated
        )

    def _shape(self) -> tuple[int, int, Mapping[str, int]]:
        nodes, levels, details = self._preferred._shape()
        other_nodes, other_levels, other_details = self._rest._shape()
        figures = {**details, **{f"rest's {name}": figure for name, figure in other_details.items()}}
        return nodes + other_nodes, max(levels, other_levels), figures
