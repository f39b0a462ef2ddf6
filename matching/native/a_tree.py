"""The native backend of the A-Tree: it returns the same ids as `matching.indexes.a_tree.tree`, in C++.

Departs from the Python specification in points that do not change results. Nodes are built from their operands. There
is no reorganisation and no self-adjustment, because these make an insertion search for covers. Nodes are evaluated in
the order in which they are reached, not level by level. A disjunction with one listener is skipped. `evaluated`
therefore counts fewer nodes.

Input that is not plainly a publication or MessagePack is left to the checks in Python, so both backends raise the same
errors. Patterns are matched by the same RE2 as in Python.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from matching import _native
from matching.errors import ValueRefusedError
from matching.expressions.model import Expression
from matching.expressions.values import LARGEST_INT, SMALLEST_INT, Publication, Value, check_publication
from matching.matcher import DestinationReport, Matcher, MatchReport, SearchResult, unpack_attributes


class NativeATree(Matcher):
    name = "a-tree"

    def __init__(self, *, identity_bits: int = 32) -> None:
        """With fewer bits, the IDs of expressions collide. This costs time but does not change results."""
        if not 0 <= identity_bits <= 32:
            raise ValueError(f"identity_bits is {identity_bits}; it must lie between 0 and 32")
        super().__init__()
        self._tree = _native.ATree(identity_bits)

    def add(self, id: int, expression: Expression | str, destination: str | None = None) -> None:
        super().add(id, expression, destination)
        if destination is not None:
            self._tree.set_destination(id, destination)

    def match(self, publication: Publication) -> MatchReport:
        answer = self._tree.match(publication)
        if answer is None:
            answer = _not_none(self._tree.match(check_publication(publication)))
        return MatchReport(answer[0], len(self._expressions), answer[1], answer[2])

    def match_packed(self, attributes: bytes) -> MatchReport:
        answer = self._tree.match_packed(attributes)
        return self.match(unpack_attributes(attributes)) if answer is None else self._to_report(answer)

    def match_many(self, publications: Iterable[Publication], threads: int = 1) -> list[MatchReport]:
        """Matches on several threads. Other Python threads run meanwhile, but they cannot change the index."""
        if threads < 1:
            raise ValueError(f"threads is {threads}; at least 1 is needed")
        listed = list(publications)
        answers = self._tree.match_many(listed, threads)
        return [
            self.match(publication) if answer is None else self._to_report(answer)
            for publication, answer in zip(listed, answers, strict=True)
        ]

    def match_destinations(self, publication: Publication) -> DestinationReport:
        answer = self._tree.match_destinations(publication)
        if answer is None:
            answer = _not_none(self._tree.match_destinations(check_publication(publication)))
        candidates, evaluated, destinations = answer
        if destinations is None:
            # A subscription that matches has no destination. The match by ids reports which one.
            return super().match_destinations(publication)
        return DestinationReport(tuple(sorted(destinations)), len(self._expressions), candidates, evaluated)

    def match_packed_destinations(self, attributes: bytes) -> DestinationReport:
        answer = self._tree.match_packed_destinations(attributes)
        if answer is None or answer[2] is None:
            return self.match_destinations(unpack_attributes(attributes))
        return DestinationReport(tuple(sorted(answer[2])), len(self._expressions), answer[0], answer[1])

    def _to_report(self, answer: _native.Answer) -> MatchReport:
        ids, candidates, evaluated = answer
        return MatchReport(ids, len(self._expressions), candidates, evaluated)

    def _insert(self, id: int, expression: Expression) -> None:
        if not SMALLEST_INT <= id <= LARGEST_INT:
            raise ValueRefusedError(f"subscription id {id} does not fit in 64 bits, which the native backend needs")
        if not self._tree.add(id, expression):
            raise TypeError(f"an index holds expressions of matching.model, not {expression!r}")

    def _delete(self, id: int, expression: Expression) -> None:
        self._tree.remove(id)

    def _search(self, publication: dict[str, Value]) -> SearchResult:
        report = self.match(publication)
        return SearchResult(list(report.ids), report.candidates, report.evaluated)

    def _shape(self) -> tuple[int, int, Mapping[str, int]]:
        figures = self._tree.shape()
        return figures.pop("nodes"), figures.pop("levels"), figures

    def _structure_bytes(self) -> int:
        return self._tree.bytes()


_Answer = TypeVar("_Answer")


def _not_none(answer: _Answer | None) -> _Answer:
    assert answer is not None, "the native core takes every publication that Python has checked"
    return answer
