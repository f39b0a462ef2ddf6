"""What every index is: expressions go in under ids, publications come, the ids that match go out.

An index implements three methods: `_insert`, `_delete` and `_search`. What all share is here once: checking ids,
expressions and publications, the text form, destinations, packed publications, batches.

Every index gives exactly the linear scan's answer under any interleaving of `add`, `remove` and `match`. Its report
also tells the work that was done: `stored` and `matched` are the same for every exact index, `candidates` and
`evaluated` are the index's own.
"""

from __future__ import annotations

import gc
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import FunctionType, ModuleType
from typing import ClassVar, NamedTuple

from matching.errors import DuplicateIdError, PublicationError, UnknownIdError
from matching.expressions.model import Expression
from matching.expressions.values import Publication, Value, check_publication


class MatchReport(NamedTuple):
    """A tuple, because one is made for every publication, and a frozen dataclass takes twice as long to make."""

    ids: Sequence[int]
    """The subscriptions that match, ascending."""
    stored: int
    """Subscriptions in the index."""
    candidates: int
    """Subscriptions that the index's structure did not rule out."""
    evaluated: int
    """Candidates whose predicates had to be evaluated one by one."""

    @property
    def matched(self) -> int:
        return len(self.ids)


class DestinationReport(NamedTuple):
    destinations: tuple[str, ...]
    """The distinct destinations of the subscriptions that match, ascending."""
    stored: int
    candidates: int
    evaluated: int

    @property
    def matched(self) -> int:
        return len(self.destinations)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a search hands back to `Matcher`, ids in any order."""

    ids: list[int]
    candidates: int
    evaluated: int


@dataclass(frozen=True, slots=True)
class Structure:
    """An index's shape. An empty index has no nodes and no levels."""

    subscriptions: int
    nodes: int
    levels: int
    bytes: int
    """Memory of the structure in Python objects, without the expressions themselves."""
    details: Mapping[str, int] = field(default_factory=dict)
    """Figures of the index's own, by name."""


class Matcher(ABC):
    """Expressions by id, and the question which of them a publication satisfies."""

    name: ClassVar[str]

    def __init__(self) -> None:
        self._expressions: dict[int, Expression] = {}
        self._destinations: dict[int, str] = {}

    def add(self, id: int, expression: Expression | str, destination: str | None = None) -> None:
        """Stores the expression, or its text form, under the caller's id. A refused expression leaves no trace."""
        if not isinstance(id, int) or isinstance(id, bool):
            raise TypeError(f"a subscription's id is an int, not {id!r}")
        if id in self._expressions:
            raise DuplicateIdError(id)
        stored = _as_expression(expression)
        self._insert(id, stored)
        self._expressions[id] = stored
        if destination is not None:
            self._destinations[id] = destination

    def remove(self, id: int) -> None:
        if id not in self._expressions:
            raise UnknownIdError(id)
        self._delete(id, self._expressions[id])
        del self._expressions[id]
        self._destinations.pop(id, None)

    def match(self, publication: Publication) -> MatchReport:
        return self._report(check_publication(publication))

    def match_many(self, publications: Iterable[Publication]) -> list[MatchReport]:
        return [self.match(publication) for publication in publications]

    def match_packed(self, attributes: bytes) -> MatchReport:
        """Matches the MessagePack map of a publication's attributes, as brokers receive it."""
        return self._report(unpack_attributes(attributes))

    def match_destinations(self, publication: Publication) -> DestinationReport:
        """Where the publication must go. Every stored id needs a destination."""
        report = self.match(publication)
        return self._destinations_of(report)

    def match_packed_destinations(self, attributes: bytes) -> DestinationReport:
        return self._destinations_of(self.match_packed(attributes))

    def describe(self) -> Structure:
        nodes, levels, details = self._shape()
        return Structure(len(self), nodes, levels, self._structure_bytes(), details)

    def __len__(self) -> int:
        return len(self._expressions)

    def __contains__(self, id: object) -> bool:
        return id in self._expressions

    def __iter__(self) -> Iterator[int]:
        """The stored ids, in the order in which they were added."""
        return iter(self._expressions)

    def expression(self, id: int) -> Expression:
        if id not in self._expressions:
            raise UnknownIdError(id)
        return self._expressions[id]

    @abstractmethod
    def _insert(self, id: int, expression: Expression) -> None:
        """Puts the expression into the structure, or raises and leaves the structure as it was."""

    @abstractmethod
    def _delete(self, id: int, expression: Expression) -> None:
        """Takes out what `_insert` put in for this id."""

    @abstractmethod
    def _search(self, publication: dict[str, Value]) -> SearchResult:
        """The ids that match a checked publication."""

    @abstractmethod
    def _shape(self) -> tuple[int, int, Mapping[str, int]]:
        """Nodes, levels and the index's own figures, for `describe`."""

    def _report(self, publication: dict[str, Value]) -> MatchReport:
        found = self._search(publication)
        found.ids.sort()
        return MatchReport(found.ids, len(self._expressions), found.candidates, found.evaluated)

    def _destinations_of(self, report: MatchReport) -> DestinationReport:
        try:
            destinations = {self._destinations[id] for id in report.ids}
        except KeyError as error:
            raise PublicationError(f"subscription {error.args[0]} was added without a destination") from None
        return DestinationReport(tuple(sorted(destinations)), report.stored, report.candidates, report.evaluated)

    def _structure_bytes(self) -> int:
        own = {name: part for name, part in vars(self).items() if name not in ("_expressions", "_destinations")}
        return deep_size(own)


def _as_expression(expression: Expression | str) -> Expression:
    if not isinstance(expression, str):
        return expression
    from matching.languages.sql import parse

    return parse(expression)


def unpack_attributes(attributes: bytes) -> dict[str, Value]:
    import msgpack

    try:
        unpacked = msgpack.unpackb(attributes, raw=False, strict_map_key=True)
    except (ValueError, msgpack.exceptions.UnpackException, RecursionError) as error:
        reason = str(error) or type(error).__name__
        raise PublicationError(f"{len(attributes)} bytes of attributes are not MessagePack: {reason}") from None
    if not isinstance(unpacked, dict):
        raise PublicationError(f"packed attributes must be a map, not a {type(unpacked).__name__}")
    return check_publication(unpacked)


_NOT_OWNED = (type, ModuleType, FunctionType, Expression)


def deep_size(root: object) -> int:
    """Bytes of all objects reachable from the root, without classes, functions and expressions."""
    seen: set[int] = set()
    pending = [root]
    total = 0
    while pending:
        reached = pending.pop()
        if id(reached) in seen or isinstance(reached, _NOT_OWNED):
            continue
        seen.add(id(reached))
        total += sys.getsizeof(reached)
        pending.extend(gc.get_referents(reached))
    return total
