"""The interface of every index: it stores expressions by id and returns the ids that a publication matches.

An index implements `_insert`, `_delete`, `_search` and `_shape`. `Matcher` implements the parts that all indexes share.
It checks ids, expressions and publications, parses text, maps ids to destinations, and reads packed publications and
batches.

Every index returns the same ids as the linear scan, for any sequence of `add`, `remove` and `match`. Its report also
counts the work. `stored` and `matched` are the same for every exact index. `candidates` and `evaluated` depend on the
index.
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
    """The result of a match.

    It is a tuple because `match` creates one for every publication. Creating a frozen dataclass takes twice as long.
    """

    ids: Sequence[int]
    """The ids of the subscriptions that match, ascending."""
    stored: int
    """The number of subscriptions in the index."""
    candidates: int
    """The number of subscriptions that the structure of the index did not rule out."""
    evaluated: int
    """The number of candidates whose predicates the index evaluated one by one."""

    @property
    def matched(self) -> int:
        """The number of subscriptions that match."""
        return len(self.ids)


class DestinationReport(NamedTuple):
    """The result of a match by destination. The counters are those of `MatchReport`."""

    destinations: tuple[str, ...]
    """The distinct destinations of the subscriptions that match, ascending."""
    stored: int
    candidates: int
    evaluated: int

    @property
    def matched(self) -> int:
        """The number of destinations."""
        return len(self.destinations)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The result of `_search`. The ids are in any order."""

    ids: list[int]
    candidates: int
    evaluated: int


@dataclass(frozen=True, slots=True)
class Structure:
    """The size of an index. An empty index has no nodes and no levels."""

    subscriptions: int
    nodes: int
    levels: int
    bytes: int
    """Memory of the structure, without the expressions."""
    details: Mapping[str, int] = field(default_factory=dict)
    """Counters that only this kind of index has, by name."""


class Matcher(ABC):
    """An index: stores expressions by id and finds those that a publication satisfies."""

    name: ClassVar[str]

    def __init__(self) -> None:
        self._expressions: dict[int, Expression] = {}
        self._destinations: dict[int, str] = {}

    def add(self, id: int, expression: Expression | str, destination: str | None = None) -> None:
        """Stores an expression, or its text, under the caller's id. If it raises, the index is unchanged."""
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
        """Removes the expression with this id. Raises `UnknownIdError` if there is none."""
        if id not in self._expressions:
            raise UnknownIdError(id)
        self._delete(id, self._expressions[id])
        del self._expressions[id]
        self._destinations.pop(id, None)

    def match(self, publication: Publication) -> MatchReport:
        """Returns the ids of the expressions that the publication satisfies, and counters of the work."""
        return self._report(check_publication(publication))

    def match_many(self, publications: Iterable[Publication]) -> list[MatchReport]:
        """Matches each publication. The reports are in the order of the publications."""
        return [self.match(publication) for publication in publications]

    def match_packed(self, attributes: bytes) -> MatchReport:
        """Matches a publication whose attributes are a MessagePack map, as brokers receive them."""
        return self._report(unpack_attributes(attributes))

    def match_destinations(self, publication: Publication) -> DestinationReport:
        """Returns the destinations of the subscriptions that match. Raises if one of them has no destination."""
        report = self.match(publication)
        return self._destinations_of(report)

    def match_packed_destinations(self, attributes: bytes) -> DestinationReport:
        """Like `match_destinations`, for a MessagePack map of attributes."""
        return self._destinations_of(self.match_packed(attributes))

    def describe(self) -> Structure:
        """Returns the size of the index: nodes, levels, memory and its own counters."""
        nodes, levels, details = self._shape()
        return Structure(len(self), nodes, levels, self._structure_bytes(), details)

    def __len__(self) -> int:
        return len(self._expressions)

    def __contains__(self, id: object) -> bool:
        return id in self._expressions

    def __iter__(self) -> Iterator[int]:
        """Iterates over the stored ids in the order in which they were added."""
        return iter(self._expressions)

    def expression(self, id: int) -> Expression:
        """The expression with this id. Raises `UnknownIdError` if there is none."""
        if id not in self._expressions:
            raise UnknownIdError(id)
        return self._expressions[id]

    @abstractmethod
    def _insert(self, id: int, expression: Expression) -> None:
        """Adds the expression to the structure. If it raises, the structure is unchanged."""

    @abstractmethod
    def _delete(self, id: int, expression: Expression) -> None:
        """Removes everything that `_insert` added for this id."""

    @abstractmethod
    def _search(self, publication: dict[str, Value]) -> SearchResult:
        """Returns the ids that match a checked publication."""

    @abstractmethod
    def _shape(self) -> tuple[int, int, Mapping[str, int]]:
        """Returns the number of nodes, the number of levels and the counters of the index, for `describe`."""

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
    """Decodes and checks a MessagePack map of attributes."""
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
    """The size in bytes of all objects reachable from the root, without classes, functions and expressions."""
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
