"""The default index: it stores each expression in the index that suits it.

A conjunctive index stores conjunctions, and the conjunctions of small disjunctive normal forms. An index for arbitrary
expressions stores all others. A subscription that was split matches if any of its conjunctions matches.

In Python these are PSTBloom and A-Tree. `NativeAuto` uses `flat` and the native A-Tree, and matches MessagePack without
unpacking it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeVar

from matching.expressions.model import And, Expression
from matching.expressions.normal_forms import few_conjunctions, plain_conjunction
from matching.expressions.values import Publication, Value, check_publication
from matching.indexes.pst.bloom import PSTBloom
from matching.matcher import DestinationReport, Matcher, MatchReport, SearchResult, deep_size
from matching.registry import create

MAX_CLAUSES = 4
"""With more conjunctions than this, an index that shares subexpressions does less work than one that repeats them."""


class Auto(Matcher):
    name = "auto"

    def __init__(self, arbitrary: str = "a-tree") -> None:
        """`arbitrary` names the index for expressions that are neither conjunctions nor small disjunctions of them."""
        super().__init__()
        self._conjunctive = PSTBloom()
        self._arbitrary = create(arbitrary)
        self._pieces: dict[int, range] = {}
        self._owners: dict[int, int] = {}
        self._next_piece = 0

    def _insert(self, id: int, expression: Expression) -> None:
        clauses = few_conjunctions(expression, MAX_CLAUSES)
        if clauses is None:
            self._arbitrary.add(id, expression)
            return
        pieces = range(self._next_piece, self._next_piece + len(clauses))
        for piece, clause in zip(pieces, clauses, strict=True):
            self._conjunctive.insert_clause(piece, clause)
            self._owners[piece] = id
        self._pieces[id] = pieces
        self._next_piece = pieces.stop

    def _delete(self, id: int, expression: Expression) -> None:
        if id not in self._pieces:
            self._arbitrary.remove(id)
            return
        for piece in self._pieces.pop(id):
            self._conjunctive.delete_clause(piece)
            del self._owners[piece]

    def _search(self, publication: dict[str, Value]) -> SearchResult:
        pieces = self._conjunctive._search(publication)
        rest = self._arbitrary._search(publication)
        ids = dict.fromkeys(self._owners[piece] for piece in pieces.ids)
        return SearchResult(
            [*ids, *rest.ids], pieces.candidates + rest.candidates, evaluated=pieces.evaluated + rest.evaluated
        )

    def _shape(self) -> tuple[int, int, Mapping[str, int]]:
        nodes, levels, _ = self._conjunctive._shape()
        other_nodes, other_levels, _ = self._arbitrary._shape()
        details = {
            "conjunctions": len(self._owners),
            "split subscriptions": sum(len(pieces) > 1 for pieces in self._pieces.values()),
            "arbitrary expressions": len(self._arbitrary),
        }
        return nodes + other_nodes, max(levels, other_levels), details


Report = TypeVar("Report", covariant=True)


class _PackedSearch(Protocol[Report]):
    def __call__(self, attributes: bytes) -> Report: ...


class NativeAuto(Matcher):
    name = "auto"

    match_packed: _PackedSearch[MatchReport]
    match_packed_destinations: _PackedSearch[DestinationReport]

    def __init__(self) -> None:
        super().__init__()
        self._conjunctive = create("flat", backend="native")
        """Stores conjunctions under the ids of their subscriptions."""
        self._arbitrary = create("a-tree", backend="native")
        self._split = create("flat", backend="native")
        """Stores the conjunctions of small disjunctive normal forms under numbers of their own."""
        self._pieces: dict[int, range] = {}
        self._owners: dict[int, int] = {}
        self._next_piece = 0
        self._pending_destination: str | None = None
        self._choose_packed_search()

    def _choose_packed_search(self) -> None:
        """Lets `flat` answer for packed publications while it stores all subscriptions, as in most brokers. A call in
        between takes longer than the match in a small index."""
        if not self._pieces and not len(self._arbitrary):
            self.match_packed = self._conjunctive.match_packed
            self.match_packed_destinations = self._conjunctive.match_packed_destinations
        else:
            self.match_packed = self._match_packed_in_parts
            self.match_packed_destinations = self._match_packed_destinations_in_parts

    def add(self, id: int, expression: Expression | str, destination: str | None = None) -> None:
        # The part indexes need the destination, too, so that they can skip subscriptions for a destination
        # that another subscription has already matched.
        self._pending_destination = destination
        super().add(id, expression, destination)

    def match(self, publication: Publication) -> MatchReport:
        checked = publication if type(publication) is dict else check_publication(publication)
        return self._merge_reports([part.match(checked) for part in self._parts()], self._split.match(checked))

    def _match_packed_in_parts(self, attributes: bytes) -> MatchReport:
        found = [part.match_packed(attributes) for part in self._parts()]
        return self._merge_reports(found, self._split.match_packed(attributes))

    def match_destinations(self, publication: Publication) -> DestinationReport:
        if self._pieces:
            return self._destinations_of(self.match(publication))
        return self._merge_destination_reports([part.match_destinations(publication) for part in self._parts()])

    def _match_packed_destinations_in_parts(self, attributes: bytes) -> DestinationReport:
        if self._pieces:
            return self._destinations_of(self.match_packed(attributes))
        return self._merge_destination_reports([part.match_packed_destinations(attributes) for part in self._parts()])

    def _parts(self) -> list[Matcher]:
        """The indexes to search by id. There is at least one, because it refuses an invalid publication."""
        return [self._conjunctive, self._arbitrary] if len(self._arbitrary) else [self._conjunctive]

    def _merge_reports(self, reports: list[MatchReport], split: MatchReport) -> MatchReport:
        owners = dict.fromkeys(self._owners[piece] for piece in split.ids)
        if len(reports) == 1 and not owners:
            ids = reports[0].ids
        else:
            ids = sorted([*(id for report in reports for id in report.ids), *owners])
        reports = [*reports, split]
        candidates, evaluated = (sum(getattr(one, field) for one in reports) for field in ("candidates", "evaluated"))
        return MatchReport(ids, len(self), candidates, evaluated)

    def _merge_destination_reports(self, reports: list[DestinationReport]) -> DestinationReport:
        destinations = {destination for report in reports for destination in report.destinations}
        candidates = sum(report.candidates for report in reports)
        evaluated = sum(report.evaluated for report in reports)
        return DestinationReport(tuple(sorted(destinations)), len(self), candidates, evaluated)

    def _insert(self, id: int, expression: Expression) -> None:
        if plain_conjunction(expression) is not None:
            self._conjunctive.add(id, expression, self._pending_destination)
            return
        clauses = few_conjunctions(expression, MAX_CLAUSES)
        if clauses is None:
            self._arbitrary.add(id, expression, self._pending_destination)
            self._choose_packed_search()
            return
        if len(clauses) == 1:
            self._conjunctive.add(id, And.of(clauses[0]), self._pending_destination)
            return
        pieces = range(self._next_piece, self._next_piece + len(clauses))
        for piece, clause in zip(pieces, clauses, strict=True):
            self._split.add(piece, And.of(clause))
            self._owners[piece] = id
        self._pieces[id] = pieces
        self._next_piece = pieces.stop
        self._choose_packed_search()

    def _delete(self, id: int, expression: Expression) -> None:
        if id in self._conjunctive:
            self._conjunctive.remove(id)
            return
        if id not in self._pieces:
            self._arbitrary.remove(id)
        else:
            for piece in self._pieces.pop(id):
                self._split.remove(piece)
                del self._owners[piece]
        self._choose_packed_search()

    def _search(self, publication: dict[str, Value]) -> SearchResult:
        report = self.match(publication)
        return SearchResult(list(report.ids), report.candidates, report.evaluated)

    def _shape(self) -> tuple[int, int, Mapping[str, int]]:
        shapes = [part._shape() for part in (self._conjunctive, self._split, self._arbitrary)]
        details = {
            "conjunctions": len(self._conjunctive) + len(self._owners),
            "split subscriptions": len(self._pieces),
            "arbitrary expressions": len(self._arbitrary),
        }
        return sum(nodes for nodes, _, _ in shapes), max(levels for _, levels, _ in shapes), details

    def _structure_bytes(self) -> int:
        parts = (self._conjunctive, self._split, self._arbitrary)
        return sum(part._structure_bytes() for part in parts) + deep_size((self._pieces, self._owners))
