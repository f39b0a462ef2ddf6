"""The matching layer's tables: advertisements by source (SRT) and subscriptions by source (PRT) [THESIS 4.1].

A local table holds the entries of the broker's own clients, a remote table those of other brokers. A table of
subscriptions finds the subscriptions that a publication satisfies, with a matching index. A table of advertisements
finds those that a subscription intersects: some publication satisfies both.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

from matching import Matcher, MatchingError
from matching.expressions.intersection import Region
from matching.expressions.model import TRUE, Expression
from matching.indexes.with_fallback import for_any_expression
from matching.languages.sql import parse_trusted
from matching.matcher import DestinationReport, MatchReport, unpack_attributes
from routing.messages import EntryId

MOST_RECENT = 1_024
MOST_RECENT_SIZE = 1 << 16
"""The limits of the latest shared values, in values and in predicates."""

K = TypeVar("K")
V = TypeVar("V", Expression, Region)


class _SharedValues(Generic[K, V]):
    """Values that many subscriptions, and many brokers of one process, have in common.

    A value is kept as long as an entry uses it. The latest ones are kept a little longer, because a broker that checks
    an expression needs it again when it adds the entry.
    """

    def __init__(self) -> None:
        self._values: WeakValueDictionary[K, V] = WeakValueDictionary()
        self._recent: deque[tuple[V, int]] = deque()
        self._recent_size = 0

    def find(self, key: K) -> V | None:
        return self._values.get(key)

    def add(self, key: K, value: V, size: int) -> None:
        """Adds a value. `size` is the number of predicates that it comes from."""
        self._values[key] = value
        self._recent.append((value, size))
        self._recent_size += size
        while len(self._recent) > MOST_RECENT or (self._recent_size > MOST_RECENT_SIZE and len(self._recent) > 1):
            _, oldest_size = self._recent.popleft()
            self._recent_size -= oldest_size


_expressions: _SharedValues[str, Expression] = _SharedValues()
_regions: _SharedValues[Expression, Region] = _SharedValues()


def expression_of(text: str) -> Expression:
    """Parses an expression from another broker. Equal texts in use share one expression."""
    expression = _expressions.find(text)
    if expression is None:
        expression = parse_trusted(text)
        _expressions.add(text, expression, expression.size)
    return expression


def region_of(expression: str | Expression) -> Region:
    """Returns the region of an expression. Equal expressions in use share one region."""
    parsed = expression_of(expression) if isinstance(expression, str) else expression
    region = _regions.find(parsed)
    if region is None:
        region = Region.of(parsed)
        _regions.add(parsed, region, parsed.size)
    return region


def is_parsable(text: str) -> bool:
    """Whether the text is an expression. A correct broker sends nothing else. This check protects against others."""
    try:
        expression_of(text)
    except MatchingError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Advertisement:
    entry: EntryId
    source: str
    region: Region
    crossed: tuple[str, ...] = ()


class AdvertisementTable:
    """An SRT: advertisements by source, which is a client in the local table and a broker in a remote one."""

    def __init__(self) -> None:
        self._by_source: dict[str, dict[EntryId, Advertisement]] = {}

    def insert(self, advertisement: Advertisement) -> None:
        self._by_source.setdefault(advertisement.source, {})[advertisement.entry] = advertisement

    def remove(self, source: str, entry: EntryId) -> None:
        self._by_source[source].pop(entry)
        if not self._by_source[source]:
            del self._by_source[source]

    def of(self, source: str) -> Iterator[Advertisement]:
        return iter(self._by_source.get(source, {}).values())

    def intersecting_sources(self, region: Region, crossed: tuple[str, ...] = ()) -> list[str]:
        """Returns the sources with an advertisement that the subscription intersects, in ascending order."""
        return sorted(source for source in self._by_source if self.intersects(source, region, crossed))

    def intersects(self, source: str, region: Region, crossed: tuple[str, ...] = ()) -> bool:
        """Whether the subscription intersects an advertisement of the source. Pairs that crossed a common cluster do
        not count: they are matched in that cluster."""
        return any(
            advertisement.region.intersects(region) and not set(advertisement.crossed) & set(crossed)
            for advertisement in self.of(source)
        )

    def __len__(self) -> int:
        return sum(map(len, self._by_source.values()))

    def __iter__(self) -> Iterator[Advertisement]:
        return (advertisement for entries in self._by_source.values() for advertisement in entries.values())


class LocalSubscriptions:
    """The L-PRT: finds the clients of this broker that want a publication, with their matching subscriptions."""

    def __init__(self, matcher: str) -> None:
        self._index = for_any_expression(matcher)
        self._clients: dict[int, tuple[str, EntryId]] = {}

    def insert(self, entry: EntryId, client: str, expression: Expression) -> None:
        self._index.add(entry.number, expression)
        self._clients[entry.number] = (client, entry)

    def remove(self, entry: EntryId) -> None:
        self._index.remove(entry.number)
        del self._clients[entry.number]

    def match(self, attributes: bytes) -> tuple[MatchReport, dict[str, tuple[EntryId, ...]]]:
        """Returns the work done, and the clients with their matching subscriptions."""
        report = self._index.match_packed(attributes)
        wanted: dict[str, tuple[EntryId, ...]] = {}
        clients = self._clients
        for number in report.ids:
            client, entry = clients[number]
            wanted[client] = (*wanted[client], entry) if client in wanted else (entry,)
        return report, dict(sorted(wanted.items()))

    def __len__(self) -> int:
        return len(self._index)


class RemoteSubscriptions:
    """An R-PRT: finds the brokers that want a publication. It has one index for each sequence of crossed clusters."""

    def __init__(self, matcher: str) -> None:
        self._matcher = matcher
        self._indexes: dict[tuple[str, ...], Matcher] = {}
        self._numbers: dict[EntryId, tuple[int, tuple[str, ...]]] = {}
        self._next_number = 0

    def insert(self, entry: EntryId, source: str, expression: Expression, crossed: tuple[str, ...]) -> None:
        if crossed not in self._indexes:
            self._indexes[crossed] = for_any_expression(self._matcher)
        self._next_number += 1
        self._indexes[crossed].add(self._next_number, expression, destination=source)
        self._numbers[entry] = (self._next_number, crossed)

    def remove(self, entry: EntryId) -> None:
        number, crossed = self._numbers.pop(entry)
        self._indexes[crossed].remove(number)
        if not len(self._indexes[crossed]):
            del self._indexes[crossed]

    def match(
        self, attributes: bytes, crossed: tuple[str, ...]
    ) -> tuple[list[DestinationReport], tuple[str, ...], tuple[str, ...]]:
        """Returns the work done, the brokers whose own clients want the publication, and those that pass it on to
        others.

        Subscriptions that crossed a cluster which the publication crossed are left out: they were served there.
        """
        reports: list[DestinationReport] = []
        local: set[str] = set()
        transit: set[str] = set()
        for crossed_by, index in self._indexes.items():
            if set(crossed_by) & set(crossed):
                continue
            report = index.match_packed_destinations(attributes)
            reports.append(report)
            (transit if crossed_by else local).update(report.destinations)
        return reports, tuple(sorted(local)), tuple(sorted(transit))

    def __len__(self) -> int:
        return len(self._numbers)


class LocalAdvertisements:
    """The L-SRT: the advertisements of this broker's clients."""

    def __init__(self) -> None:
        self._by_client: dict[str, dict[EntryId, Expression]] = {}
        self._unrestricted: dict[str, dict[EntryId, None]] = {}
        """The advertisements that permit every publication, by client."""
        self._clients: dict[EntryId, str] = {}

    def insert(self, entry: EntryId, client: str, expression: Expression) -> None:
        self._by_client.setdefault(client, {})[entry] = expression
        if expression == TRUE:
            self._unrestricted.setdefault(client, {})[entry] = None
        self._clients[entry] = client

    def remove(self, entry: EntryId) -> None:
        client = self._clients.pop(entry)
        if entry in self._unrestricted.get(client, ()):
            del self._unrestricted[client][entry]
            if not self._unrestricted[client]:
                del self._unrestricted[client]
        del self._by_client[client][entry]
        if not self._by_client[client]:
            del self._by_client[client]

    def find_permitting(self, client: str, attributes: bytes) -> EntryId | None:
        """Returns the first advertisement, of EVERYBODY or of the client, that the publication satisfies.
        Advertisements that permit everything come first."""
        unrestricted = self._unrestricted.get(EVERYBODY) or self._unrestricted.get(client)
        if unrestricted:
            return next(iter(unrestricted))
        candidates = {**self._by_client.get(EVERYBODY, {}), **self._by_client.get(client, {})}
        publication = unpack_attributes(attributes)
        return next((entry for entry, expression in candidates.items() if expression.matches(publication)), None)

    def items(self) -> Iterator[tuple[EntryId, Expression]]:
        return (item for entries in self._by_client.values() for item in entries.items())

    def __len__(self) -> int:
        return len(self._clients)


EVERYBODY = ""
"""The owner of the advertisement that permits every publication, at a broker where clients need none. No client has an
empty name."""


@dataclass(frozen=True, slots=True)
class TableWork:
    """The work of matching a publication with one table, for traces and for the simulation's cost of matching."""

    table: str
    stored: int
    candidates: int
    evaluated: int
    matched: int


def work_of(table: str, report: MatchReport | DestinationReport) -> TableWork:
    matched, stored, candidates, evaluated = report
    return TableWork(table, stored, candidates, evaluated, len(matched))
