"""The schema of a trace: its tables, a row class for each, and a digest of the rows.

Simulation and runtime record the same rows. The Parquet files and Spark use the columns of the same definition. Every
table has a column `run` that no row has: the code that stores rows knows their run.

Rows are named tuples. A run creates millions of them, and creating a tuple is several times as fast as creating a
frozen dataclass.

The digest shows whether two runs did the same. It is computed over values, column by column, and is independent of the
size of batches and of the bytes of a file.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any, NamedTuple, Protocol, TypeAlias, get_args, get_type_hints

NANOSECONDS = 1e9
DIGEST_BATCH_ROWS = 10_000


class TraceError(Exception):
    """A trace is missing or damaged, or already exists where a new one is to be written. The message names the file."""

    exit_code = 3


class TraceWriteError(TraceError):
    """A trace could not be written, for example because of a full disk or missing permission."""

    exit_code = 1


class HopRow(NamedTuple):
    """A message went over a link. `destinations` counts the destinations that it named there."""

    message: str
    kind: str
    source: str
    sender: str
    receiver: str
    hop: int
    destinations: int
    header_bytes: int
    body_bytes: int
    sent_s: float
    received_s: float


class MatchRow(NamedTuple):
    """A broker matched a publication with one of its tables."""

    broker: str
    message: str
    table: str
    stored: int
    candidates: int
    evaluated: int
    matched: int
    started_s: float
    cost_s: float


class DeliveryRow(NamedTuple):
    """A broker delivered a publication to a client."""

    publication: str
    broker: str
    client: str
    hops: int
    published_s: float
    delivered_s: float


class BrokerRow(NamedTuple):
    """A broker's state at one time. `busy_s` is its working time since its start. Memory is empty if not measured."""

    broker: str
    at_s: float
    busy_s: float
    queue: int
    advertisements: int
    local_subscriptions: int
    remote_subscriptions: int
    routing_table_bytes: int
    memory_bytes: int | None


class PublicationRow(NamedTuple):
    """A broker accepted a client's publication."""

    publication: str
    broker: str
    client: str
    published_s: float
    attribute_count: int
    bytes: int


class ExpectationRow(NamedTuple):
    """Whether a client should receive a publication by an exact match, and whether it is owed. Only a simulation knows.

    A pair is not owed if the client left before the delivery, or if the publication was lost with a broker or dropped
    with a reason.
    """

    publication: str
    client: str
    expected: bool
    owed: bool


class DropRow(NamedTuple):
    """A drop at a broker, with its reason."""

    at_s: float
    broker: str
    reason: str
    publication: str | None
    detail: str


class FaultRow(NamedTuple):
    """A fault of a simulation. `until_s` is empty for a fault that did not end in this run."""

    at_s: float
    kind: str
    subject: str
    until_s: float | None


class LinkRow(NamedTuple):
    """The time in which a link was up. `down_s` is empty for a link that was up at the end."""

    a: str
    b: str
    up_s: float
    down_s: float | None


Row: TypeAlias = (
    HopRow | MatchRow | DeliveryRow | BrokerRow | PublicationRow | ExpectationRow | DropRow | FaultRow | LinkRow
)
"""A row of any table."""


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: str
    """`str`, `int` (64 bits), `float` (64 bits) or `bool`."""
    is_nullable: bool = False


RUN = Column("run", "str")


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    row_type: type[Row]
    row_columns: tuple[Column, ...]
    """The fields of a row, in their order."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """The stored columns: the run, then the fields of a row."""
        return (RUN, *self.row_columns)


def _table(name: str, row_type: type[Row]) -> Table:
    columns = []
    for field, hint in get_type_hints(row_type).items():
        types = [each for each in (get_args(hint) or (hint,)) if each is not NoneType]
        columns.append(Column(field, types[0].__name__, is_nullable=NoneType in get_args(hint)))
    return Table(name, row_type, tuple(columns))


TABLES: dict[str, Table] = {
    name: _table(name, row_type)
    for name, row_type in {
        "hops": HopRow,
        "matches": MatchRow,
        "deliveries": DeliveryRow,
        "brokers": BrokerRow,
        "publications": PublicationRow,
        "expectations": ExpectationRow,
        "drops": DropRow,
        "faults": FaultRow,
        "links": LinkRow,
    }.items()
}
"""The tables of a trace, by name."""
TABLE_OF: dict[type[Row], Table] = {table.row_type: table for table in TABLES.values()}

_SPARK_TYPES = {"str": "STRING", "int": "BIGINT", "float": "DOUBLE", "bool": "BOOLEAN"}


def spark_ddl(table: Table) -> str:
    """The table's schema in the format of Spark's `DataFrameReader.schema`."""
    return ", ".join(
        f"`{column.name}` {_SPARK_TYPES[column.type]}{'' if column.is_nullable else ' NOT NULL'}"
        for column in table.columns
    )


def seconds(ns: int) -> float:
    """Converts the integer nanoseconds of recorders to the seconds of tables."""
    return ns / NANOSECONDS


class Trace(Protocol):
    """Receives the rows of a simulation."""

    def record(self, row: Row) -> None: ...


Columns: TypeAlias = Sequence[Sequence[Any]]
"""The values of many rows: a sequence for each of a table's `row_columns`."""


class Batch:
    """A buffer for rows of one table: a flat list of values, row after row.

    A column is a slice of that list. The garbage collector has nothing to visit. Rows buffered as objects would make it
    scan the whole simulation.
    """

    __slots__ = ("_full", "_values", "_width")

    def __init__(self, table: Table, rows: int) -> None:
        self._width = len(table.row_columns)
        self._full = rows * self._width
        self._values: list[Any] = []

    def add(self, row: Row) -> bool:
        """Adds a row. Returns True if the batch is full."""
        self._values.extend(row)
        return len(self._values) >= self._full

    def drain(self) -> Columns:
        """Empties the batch and returns its columns."""
        values, self._values = self._values, []
        return [values[start :: self._width] for start in range(self._width)]

    def __len__(self) -> int:
        return len(self._values) // self._width


def batches(rows: int) -> dict[type[Row], Batch]:
    """Creates an empty batch for each table."""
    return {row_type: Batch(table, rows) for row_type, table in TABLE_OF.items()}


INDEX_SPECIFIC_COLUMNS = frozenset(("matches.candidates", "matches.evaluated"))
"""Columns that depend on how an index finds its answer. The compiled indexes work differently from those in Python, and
a run is to be the same with and without a compiler. So these columns are recorded, but are not part of the digest."""


class Digest:
    """The SHA-256 of the recorded rows: each table's rows in their order, without the columns that depend on the index.

    Each column is hashed as a separate stream, so that one call converts a batch of values to bytes. All numbers of a
    `float` column are hashed as floats, and all texts as plain text, also those of subclasses. So rows that are read
    from a file have the digest of the rows that were written.
    """

    def __init__(self) -> None:
        self._batches = batches(DIGEST_BATCH_ROWS)
        self._hashes: dict[str, hashlib._Hash] = {}

    def record(self, row: Row) -> None:
        if self._batches[type(row)].add(row):
            self._hash_recorded(TABLE_OF[type(row)])

    def update(self, table: Table, columns: Columns) -> None:
        """Records many rows of a table, given by columns."""
        self._hash_recorded(table)
        if columns[0]:
            self._hash(table, columns)

    def hexdigest(self) -> str:
        for table in TABLES.values():
            self._hash_recorded(table)
        whole = hashlib.sha256()
        for stream, hash in sorted(self._hashes.items()):
            whole.update(f"{stream} {hash.hexdigest()}\n".encode())
        return whole.hexdigest()

    def _hash_recorded(self, table: Table) -> None:
        batch = self._batches[table.row_type]
        if batch:
            self._hash(table, batch.drain())

    def _hash(self, table: Table, columns: Columns) -> None:
        for column, values in zip(table.row_columns, columns, strict=True):
            try:
                streams = list(_canonical(column, values))
            except (TypeError, ValueError, struct.error) as error:
                raise TypeError(_type_error_text(table, column, values)) from error
            if f"{table.name}.{column.name}" in INDEX_SPECIFIC_COLUMNS:
                continue
            for part, data in streams:
                stream = f"{table.name}.{column.name} {column.type} {part}"
                if stream not in self._hashes:
                    self._hashes[stream] = hashlib.sha256()
                self._hashes[stream].update(data)


def _canonical(column: Column, values: Sequence[Any]) -> Iterator[tuple[str, bytes]]:
    """The streams of a column, by name. The streams of two batches, joined, equal the streams of the joined batches."""
    if column.is_nullable:
        yield "present", bytes(value is not None for value in values)
        values = [value for value in values if value is not None]
    match column.type:
        case "int":
            yield "values", struct.pack(f"<{len(values)}q", *values)
        case "float":
            yield "values", struct.pack(f"<{len(values)}d", *values)
        case "bool":
            yield "values", bytes(values)
        case _:
            yield "values", "".join(values).encode()
            yield "lengths", struct.pack(f"<{len(values)}I", *map(len, values))


def _type_error_text(table: Table, column: Column, values: Sequence[Any]) -> str:
    kind = f"{column.type} or None" if column.is_nullable else column.type
    for value in values:
        try:
            list(_canonical(column, [value]))
        except (TypeError, ValueError, struct.error):
            return f"{table.name}.{column.name} takes {kind}, not {value!r}"
    return f"{table.name}.{column.name} takes {kind}"
