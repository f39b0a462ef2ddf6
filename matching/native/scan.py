"""The native linear scan: the baseline for measuring the native indexes. It accepts any expression.

It returns the same ids as `matching.indexes.scan`. The expressions are stored in one array of instructions that is read
from front to back. The evaluation of an expression stops as soon as its result is decided.
"""

from __future__ import annotations

from collections.abc import Mapping

from matching import _native
from matching.errors import ValueRefusedError
from matching.expressions.model import Expression
from matching.expressions.values import LARGEST_INT, SMALLEST_INT, Publication, Value, check_publication
from matching.matcher import Matcher, MatchReport, SearchResult, unpack_attributes


class NativeScan(Matcher):
    name = "scan"

    def __init__(self) -> None:
        super().__init__()
        self._scan = _native.ExpressionScan()

    def match(self, publication: Publication) -> MatchReport:
        ids = self._scan.match(publication)
        if ids is None:
            ids = self._scan.match(check_publication(publication))
            assert ids is not None, "the native core takes every publication that Python has checked"
        stored = len(self._expressions)
        return MatchReport(ids, stored, candidates=stored, evaluated=stored)

    def match_packed(self, attributes: bytes) -> MatchReport:
        ids = self._scan.match_packed(attributes)
        if ids is None:
            return self.match(unpack_attributes(attributes))
        stored = len(self._expressions)
        return MatchReport(ids, stored, candidates=stored, evaluated=stored)

    def _insert(self, id: int, expression: Expression) -> None:
        if not SMALLEST_INT <= id <= LARGEST_INT:
            raise ValueRefusedError(f"subscription id {id} does not fit in 64 bits, which the native backend needs")
        if not self._scan.add(id, expression):
            raise TypeError(f"an index holds expressions of matching.model, not {expression!r}")

    def _delete(self, id: int, expression: Expression) -> None:
        self._scan.remove(id)

    def _search(self, publication: dict[str, Value]) -> SearchResult:
        report = self.match(publication)
        return SearchResult(list(report.ids), report.candidates, report.evaluated)

    def _shape(self) -> tuple[int, int, Mapping[str, int]]:
        return len(self), min(1, len(self)), {}

    def _structure_bytes(self) -> int:
        return self._scan.bytes()
