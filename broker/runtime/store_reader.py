"""Reads a store without changing it, and finds all damage in it.

A broker reads its store this way before it opens the store for writing. So a damaged store stays as it was found.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from broker.runtime.store_files import LOG_SUFFIX, SHARED_MEMORY_SUFFIX, MarkError, beside, read_mark
from broker.runtime.store_format import (
    DIGESTS,
    READ_STATE,
    SCHEMA,
    SCHEMA_WITHOUT_CHECKSUMS,
    NotAStoreError,
    StoreError,
    StoreInUseError,
    StoreState,
    UnreadableStoreError,
    record_digest,
)
from broker.runtime.store_records import Key, RecordError, unpack_key, unpack_record

_MOST_SQLITE_MESSAGES = 5
_SQLITE_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""A message of SQLite may quote a damaged name, which Python cannot decode."""
_ACCESS_ERRORS = {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY}
_KEY_INDEX = "sqlite_autoindex_records_1"


@dataclass(frozen=True, slots=True)
class StoredRow:
    """One row of the table of records, as far as it is readable."""

    key: Key | None
    packed_key: bytes
    packed: bytes
    record: object
    problem: str
    """What is wrong with the row. Empty: nothing."""

    @property
    def name(self) -> str:
        """The key for messages."""
        return "/".join(self.key) if self.key is not None else f"unreadable key {self.packed_key[:20]!r}"


class StoreReader:
    """Call `rows` once and read it to its end. Then `problems` is complete."""

    def __init__(self, path: Path, lock_timeout_s: float = 1.0) -> None:
        """`lock_timeout_s`: how long to wait for a stopping broker that has the store open."""
        self.path = path
        self.problems: list[str] = []
        """What is damaged, as sentences without a subject."""
        self.notices: list[str] = []
        """What is not as expected and no damage."""
        self.version = 0
        """The version of the schema; 0: the file is empty."""
        self.state: StoreState | None = None
        """None: the store is empty, or this part of it is damaged."""
        if not path.is_file():
            raise NotAStoreError(f"there is no store {path}")
        log, self._shared_memory = beside(path, LOG_SUFFIX), beside(path, SHARED_MEMORY_SUFFIX)
        self._had_shared_memory = self._shared_memory.exists()
        # Without a log no process has the store open. SQLite would create a log even to read.
        mode = "mode=ro" if log.exists() else "mode=ro&immutable=1"
        address = f"file:{quote(str(path.absolute()))}?{mode}"
        try:
            self._database = sqlite3.connect(address, timeout=lock_timeout_s, isolation_level=None, uri=True)
        except _SQLITE_ERRORS as error:
            raise UnreadableStoreError(f"cannot read {path}: {error}") from error
        try:
            self._database.execute("PRAGMA cell_size_check = ON")
            self._read_head()
        except _SQLITE_ERRORS as error:
            self.close()
            if is_busy(error):
                raise StoreInUseError(path) from error
            if _primary_code(error) in _ACCESS_ERRORS:
                text = f"cannot read {path}: {error}; this user must be able to read it and to write its folder"
                raise UnreadableStoreError(text) from error
            text = f"{path} is not a store of Mercast, or its first page is damaged: {error}"
            raise NotAStoreError(text) from error
        except StoreError:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        with suppress(*_SQLITE_ERRORS):
            self._database.close()
        if not self._had_shared_memory:
            self._shared_memory.unlink(missing_ok=True)

    def _read_head(self) -> None:
        self.version = self._database.execute("PRAGMA user_version").fetchone()[0]
        tables = {name for (name,) in self._database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if not self.version and not tables:
            self._check_mark(0)
            return
        if not {"broker", "records"} & tables:
            raise NotAStoreError(f"{self.path} is not a store of Mercast: it has other tables")
        if not self.version:
            self.problems.append("its version is 0, and it has tables")
            self.version = SCHEMA
        if self.version not in (SCHEMA, SCHEMA_WITHOUT_CHECKSUMS):
            raise StoreError(f"{self.path} has version {self.version}; this is version {SCHEMA}")
        try:
            self.state = self._read_state()
        except (*_SQLITE_ERRORS, ValueError) as error:
            if is_busy(error):
                raise
            self.problems.append(f"the row of the broker is damaged: {error}")
        else:
            self._check_mark(self.state.commits)

    def _read_state(self) -> StoreState:
        if self.version == SCHEMA_WITHOUT_CHECKSUMS:
            ((broker, incarnation),) = self._database.execute("SELECT id, incarnation FROM broker")
            if not isinstance(broker, str) or not isinstance(incarnation, int):
                raise ValueError("it has values of other types")
            return StoreState(broker, incarnation, 0, 0, 0)
        ((*values, checksum),) = self._database.execute(READ_STATE)
        state = StoreState._make(values)
        types = [type(each) for each in values]
        if types != [str, int, int, int, int] or state.row[-1] != checksum:
            raise ValueError("its checksum does not fit")
        return state

    def _check_mark(self, commits: int) -> None:
        """Compares the commits in the database with the commit mark."""
        try:
            mark = read_mark(self.path)
        except MarkError as error:
            self.problems.append(str(error))
            return
        if mark is None or mark.commits <= commits:
            return
        lost = f"the last {mark.commits - commits} of {mark.commits} commits are lost"
        if mark.permits_loss:
            self.notices.append(f"{lost} in a crash of the machine, which fsync = {mark.fsync} permits")
        else:
            self.problems.append(f"{lost}: the write-ahead log {self.path.name}{LOG_SUFFIX} is damaged or missing")

    def rows(self) -> Iterator[StoredRow]:
        """Yields all rows that are readable, in the order of writing. Damaged ones have a `problem`."""
        if not self.version:
            return
        count = digests = damaged = 0
        for row, digest in self._read_rows():
            count += 1
            digests += digest
            if row.problem:
                damaged += 1
                self.problems.append(f"the record {row.name} is damaged: {row.problem}")
            yield row
        if self.version == SCHEMA and self.state is not None:
            if count != self.state.records:
                self.problems.append(f"{count} records are readable, {self.state.records} were written")
            elif digests % DIGESTS != self.state.digests and not damaged:
                self.problems.append("the records are not those that were written: the sum of their digests differs")
        self._check_structure()

    def _read_rows(self) -> Iterator[tuple[StoredRow, int]]:
        digest = "digest" if self.version == SCHEMA else "NULL"
        columns = f"SELECT rowid, key, value, {digest} FROM records"
        last = 0
        try:
            for rowid, *values in self._database.execute(f"{columns} ORDER BY rowid"):
                yield self._checked(*values)
                last = rowid
        except _SQLITE_ERRORS as error:
            self.problems.append(f"the table of records is damaged: {error}")
        else:
            return
        for rowid, key in sorted(self._rows_after(last).items()):
            try:
                row = self._database.execute(f"{columns} WHERE rowid = ?", (rowid,)).fetchone()
            except _SQLITE_ERRORS as error:
                yield StoredRow(_readable_key(key), key, b"", None, str(error)), 0
            else:
                if row is not None:
                    yield self._checked(*row[1:])

    def _rows_after(self, last: int) -> dict[int, bytes]:
        """Rows behind a damaged place, by number, with their keys if known. It reads the table and the index of keys
        from both ends."""
        found: dict[int, bytes] = {}
        for order in ("ASC", "DESC"):
            keys = f"SELECT rowid, key FROM records INDEXED BY {_KEY_INDEX} WHERE rowid > ? ORDER BY key {order}"
            with suppress(*_SQLITE_ERRORS):
                # An error ends the loop, and the rows before it count.
                for rowid, key in self._database.execute(keys, (last,)):
                    found.setdefault(rowid, key if isinstance(key, bytes) else b"")
        with suppress(*_SQLITE_ERRORS):
            backwards = "SELECT rowid FROM records WHERE rowid > ? ORDER BY rowid DESC"
            for (rowid,) in self._database.execute(backwards, (last,)):
                found.setdefault(rowid, b"")
        return found

    def _checked(self, key: Any, value: Any, digest: Any) -> tuple[StoredRow, int]:
        """The row and its digest."""
        if not isinstance(key, bytes) or not isinstance(value, bytes):
            return StoredRow(None, b"", b"", None, "it has values of other types"), 0
        actual = record_digest(key, value)
        if self.version == SCHEMA and digest != actual:
            return StoredRow(_readable_key(key), key, value, None, "its checksum does not fit"), 0
        try:
            unpacked = unpack_key(key)
            return StoredRow(unpacked, key, value, unpack_record(unpacked, value), ""), actual
        except RecordError as error:
            return StoredRow(_readable_key(key), key, value, None, str(error)), actual

    def _check_structure(self) -> None:
        """Checks the pages of the file. Damage in the index of keys changes no record now, but later writes."""
        try:
            messages = [text for (text,) in self._database.execute(f"PRAGMA integrity_check({_MOST_SQLITE_MESSAGES})")]
        except _SQLITE_ERRORS as error:
            messages = [str(error)]
        if messages != ["ok"]:
            self.problems += (f"SQLite reports: {' '.join(each.split())}" for each in messages)


def is_busy(error: Exception) -> bool:
    """Whether another process has the database open."""
    return _primary_code(error) == sqlite3.SQLITE_BUSY


def _primary_code(error: Exception) -> int:
    """SQLite's code of the error, without the details in its upper bytes; 0: SQLite gave none."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _readable_key(packed: bytes) -> Key | None:
    try:
        return unpack_key(packed)
    except RecordError:
        return None
