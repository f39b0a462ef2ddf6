"""Flat: a conjunctive index in C++, with access-predicate lists whose entries decide most subscriptions.

`matching/native/src/flat/flat_index.hpp` describes the algorithm, the parts it uses from [THESIS 6, 7], and its
changes. Cost: add and remove O(copies), at most sixteen; match O(cache lines of the lists that the publication's values
reach).

The core does not depend on Python or on regular expressions. Input that is not plainly a conjunction, a publication or
MessagePack is left to the checks in Python. So the errors are those of every index. The core returns a subscription
with patterns as pending if all its other predicates are true, and RE2 decides here. The core does not store expression
objects. It stores each expression in a few bytes and rebuilds it in `expression`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping

from matching import _native
from matching.errors import DuplicateIdError, PublicationError, UnknownIdError, ValueRefusedError
from matching.expressions.conjunction import require_conjunction
from matching.expressions.model import PATTERN_OPERATORS, Expression
from matching.expressions.normal_forms import Clause
from matching.expressions.values import Publication, Value, check_publication
from matching.matcher import DestinationReport, Matcher, MatchReport, SearchResult, unpack_attributes

_CHECKED_IS_ACCEPTED = "the native core takes every publication that Python has checked"
_DONE, _DONE_WITH_PATTERNS, _DUPLICATE_ID, _NOT_PLAIN, _ID_TOO_LARGE = range(5)


class Flat(Matcher):
    name = "flat"

    def __init__(self) -> None:
        super().__init__()
        self._core = _native.Flat()
        self._patterns: dict[int, Clause] = {}
        self._originals: dict[int, Expression] = {}
        """Expressions that are equivalent to a conjunction, but nested or with NOT."""

    def add(self, id: int, expression: Expression | str, destination: str | None = None) -> None:
        outcome = self._core.add(id, expression, destination)
        if outcome != _DONE:
            self._add_after_checks(outcome, id, expression, destination)

    def add_many(self, ids: Iterable[int], expressions: Iterable[Expression | str]) -> None:
        """Adds all expressions, or none if one of them is refused."""
        # Lists are not copied, because that would touch every object.
        numbers = ids if type(ids) is list else list(ids)
        listed = expressions if type(expressions) is list else list(expressions)
        if len(numbers) != len(listed):
            raise ValueError(f"{len(numbers)} ids for {len(listed)} expressions")
        done = 0
        try:
            while done < len(numbers):
                done = self._core.add_while_done(numbers, listed, done)
                if done < len(numbers):
                    self.add(numbers[done], listed[done])
                    done += 1
        except BaseException:
            for id in numbers[:done]:
                self.remove(id)
            raise

    def remove(self, id: int) -> None:
        if not self._core.remove(id):
            raise UnknownIdError(id)
        if self._patterns or self._originals:
            self._patterns.pop(id, None)
            self._originals.pop(id, None)

    def match(self, publication: Publication) -> MatchReport:
        answer = self._core.match(publication)
        if answer is None:
            return self._report(check_publication(publication))
        # tuple.__new__ skips the constructor, which takes as long as reading ten attributes.
        return tuple.__new__(MatchReport, answer) if len(answer) == 4 else self._resolve_patterns(answer, publication)

    def match_packed(self, attributes: bytes) -> MatchReport:
        answer = self._core.match_packed(attributes)
        if answer is None:
            return self._report(unpack_attributes(attributes))
        return (
            tuple.__new__(MatchReport, answer)
            if len(answer) == 4
            else self._resolve_patterns(answer, unpack_attributes(attributes))
        )

    def match_many(self, publications: Iterable[Publication], threads: int = 1) -> list[MatchReport]:
        """Matches on several threads. Other Python threads run meanwhile, but they cannot change the index."""
        if threads < 1:
            raise ValueError(f"threads is {threads}; at least 1 is needed")
        listed = list(publications)
        answers = self._core.match_many(listed, threads)
        return [
            self.match(publication) if answer is None else self._resolve_patterns(answer, publication)
            for publication, answer in zip(listed, answers, strict=True)
        ]

    def match_destinations(self, publication: Publication) -> DestinationReport:
        answer = self._core.match_destinations(publication)
        if answer is None:
            checked = check_publication(publication)
            answer = self._core.match_destinations(checked)
            assert answer is not None, _CHECKED_IS_ACCEPTED
            return self._resolve_destinations(answer, checked)
        return self._resolve_destinations(answer, publication)

    def match_packed_destinations(self, attributes: bytes) -> DestinationReport:
        answer = self._core.match_packed_destinations(attributes)
        if answer is None or answer[1] is not None:
            return self.match_destinations(unpack_attributes(attributes))
        return self._resolve_destinations(answer, {})

    def expression(self, id: int) -> Expression:
        if id not in self:
            raise UnknownIdError(id)
        return self._originals[id] if id in self._originals else self._core.expression(id)

    def __len__(self) -> int:
        return self._core.size()

    def __contains__(self, id: object) -> bool:
        return self._core.contains(id)

    def __iter__(self) -> Iterator[int]:
        return iter(self._core.ids())

    def insert_clause(self, id: int, clause: Clause) -> None:
        """Adds a conjunction of these predicates."""
        self._finish_add(self._core.add(id, clause, None), id, clause)

    def delete_clause(self, id: int) -> None:
        self.remove(id)

    def _insert(self, id: int, expression: Expression) -> None:
        self.add(id, expression)

    def _delete(self, id: int, expression: Expression) -> None:
        self.remove(id)

    def _add_after_checks(self, outcome: int, id: int, expression: Expression | str, destination: str | None) -> None:
        if not isinstance(id, int) or isinstance(id, bool):
            raise TypeError(f"a subscription's id is an int, not {id!r}")
        if isinstance(expression, str):
            from matching.languages.sql import parse

            if outcome == _DUPLICATE_ID:
                raise DuplicateIdError(id)
            self.add(id, parse(expression), destination)
        elif outcome == _NOT_PLAIN:
            clause = require_conjunction(self.name, expression)
            self._finish_add(self._core.add(id, clause, destination), id, clause)
            self._originals[id] = expression
        else:
            clause = tuple(expression.predicates()) if outcome == _DONE_WITH_PATTERNS else ()
            self._finish_add(outcome, id, clause)

    def _finish_add(self, outcome: int, id: int, clause: Clause) -> None:
        if outcome == _DONE_WITH_PATTERNS:
            self._patterns[id] = tuple(one for one in clause if one.operator in PATTERN_OPERATORS)
        elif outcome == _DUPLICATE_ID:
            raise DuplicateIdError(id)
        elif outcome == _ID_TOO_LARGE:
            raise ValueRefusedError(f"subscription id {id} does not fit in 64 bits, which the native backend needs")
        elif outcome != _DONE:
            raise TypeError(f"an index holds predicates of matching.model, not {clause!r}")

    def _report(self, publication: dict[str, Value]) -> MatchReport:
        answer = self._core.match(publication)
        assert answer is not None, _CHECKED_IS_ACCEPTED
        return self._resolve_patterns(answer, publication)

    def _resolve_patterns(self, answer: _native.FlatAnswer, publication: Publication) -> MatchReport:
        if len(answer) == 4:
            return tuple.__new__(MatchReport, answer)
        ids, stored, candidates, evaluated, pending = answer
        found = sorted([*ids, *(id for id in pending if self._patterns_match(id, publication))])
        return MatchReport(found, stored, candidates, evaluated)

    def _patterns_match(self, id: int, publication: Publication) -> bool:
        return all(predicate.evaluate(publication) is True for predicate in self._patterns[id])

    def _resolve_destinations(self, answer: _native.FlatDestinations, publication: Publication) -> DestinationReport:
        names, pending, without_destination, candidates, evaluated = answer
        destinations = set(names)
        for id in pending or ():
            name = self._core.destination(id)
            if (name is None or name not in destinations) and self._patterns_match(id, publication):
                if name is None:
                    without_destination = id if without_destination is None else min(id, without_destination)
                else:
                    destinations.add(name)
        if without_destination is not None:
            raise PublicationError(f"subscription {without_destination} was added without a destination")
        return DestinationReport(tuple(sorted(destinations)), self._core.size(), candidates, evaluated)

    def _search(self, publication: dict[str, Value]) -> SearchResult:
        report = self._report(publication)
        return SearchResult(list(report.ids), report.candidates, report.evaluated)

    def _shape(self) -> tuple[int, int, Mapping[str, int]]:
        lists, entries, dimensions, grids, _ = self._core.figures()
        details = {"lists": lists, "entries": entries, "dimensions": dimensions, "grids": grids}
        return lists, min(1, lists), details

    def _structure_bytes(self) -> int:
        *_, core = self._core.figures()
        python_bytes = sum(map(sys.getsizeof, (self._patterns, self._originals)))
        return core + python_bytes
