"""A broker's records in SQLite. A thread writes all changes since the last commit in one transaction.

The store reports a record to the core after the commit that contains it. The `fsync` policy defines the guarantee:

    batch        every commit forces the write-ahead log to disk: a power cut loses nothing that was accepted
    checkpoint   checkpoints force it to disk: a killed process loses nothing, a power cut may lose the last commits
    never        the operating system decides: like checkpoint, and a power cut may damage the store

After a failed write the store writes nothing more, because later records may depend on lost ones. For example, a
publish ledger states that all publications of a session up to a reference are stored.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from broker.config.tables import StoreTable
from broker.runtime.store_records import Key, RecordError, pack_key, pack_record, unpack_key, unpack_record

SCHEMA = 1
FILE = "broker.sqlite"
_SYNCHRONOUS = {"batch": "FULL", "checkpoint": "NORMAL", "never": "OFF"}


class StoreError(Exception):
    """The store cannot be opened or written. The message names the file."""

    exit_code = 1


class Store:
    def __init__(
        self,
        folder: Path,
        table: StoreTable,
        persisted: Callable[[list[Key]], None],
        failed: Callable[[StoreError], None],
        lock_timeout_s: float = 5.0,
        refused: Callable[[RecordError], None] | None = None,
    ) -> None:
        """`persisted` is called with the keys of each commit.

        `failed` is called with the first error. After it the store writes nothing and reports no commit.
        `refused` is called for a record that cannot be encoded; the rest of its batch is written. Without `refused`
        such a record fails the store. `lock_timeout_s` is the time to wait for a stopping broker that has the store
        open.
        """
        self.commits = 0
        self.records_written = 0
        self.has_failed = False
        self._path = folder / FILE
        self._synchronous = _SYNCHRONOUS[table.fsync]
        self._persisted = persisted
        self._failed = failed
        self._refused = refused or (lambda error: self._fail(StoreError(str(error))))
        self._lock_timeout_s = lock_timeout_s
        self._pending: dict[Key, object] = {}
        self._removed: dict[Key, None] = {}
        self._cancelled: dict[Key, None] = {}
        """Records removed before they were written. They are reported as persisted with the commit of the removal."""
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store")
        self._is_scheduled = False
        self._writing: asyncio.Future[None] | None = None

    def open(self, broker: str, incarnation: int) -> tuple[int, int, dict[Key, object]]:
        """Opens the store of this broker. Returns its previous incarnation (0: none), its new one, and all records."""
        self._loop = asyncio.get_running_loop()
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(
                self._path, timeout=self._lock_timeout_s, isolation_level=None, check_same_thread=False
            )
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"cannot make {self._path}: {error}") from error
        try:
            self._database.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute(f"PRAGMA synchronous = {self._synchronous}")
            self._database.execute("BEGIN IMMEDIATE")
            earlier = self._read_incarnation(broker)
            now = max(incarnation, earlier + 1)
            self._database.execute("UPDATE broker SET incarnation = ?", (now,))
            self._database.execute("COMMIT")
            rows = self._database.execute("SELECT key, value FROM records ORDER BY rowid").fetchall()
            return earlier, now, {key: unpack_record(key, value) for key, value in _unpack_keys(rows)}
        except sqlite3.Error as error:
            self._database.close()
            raise StoreError(f"cannot open {self._path}: {error}; does another broker use it?") from error
        except (StoreError, RecordError):
            self._database.close()
            raise

    def _read_incarnation(self, broker: str) -> int:
        """Creates the tables of a new store, checks version and owner, and returns the previous incarnation."""
        version = self._database.execute("PRAGMA user_version").fetchone()[0]
        if not version:
            self._database.execute("CREATE TABLE broker (id TEXT NOT NULL, incarnation INTEGER NOT NULL)")
            self._database.execute("CREATE TABLE records (key BLOB NOT NULL UNIQUE, value BLOB NOT NULL)")
            self._database.execute("INSERT INTO broker VALUES (?, 0)", (broker,))
            self._database.execute(f"PRAGMA user_version = {SCHEMA}")
        elif version != SCHEMA:
            raise StoreError(f"{self._path} has version {version}; this is version {SCHEMA}")
        owner, earlier = self._database.execute("SELECT id, incarnation FROM broker").fetchone()
        if owner != broker:
            raise StoreError(f"{self._path} belongs to broker {owner}, not to {broker}")
        return int(earlier)

    def put(self, key: Key, record: object) -> None:
        """Writes a record with the next commit, in place of an earlier record of that key."""
        if self.has_failed:
            return
        self._removed.pop(key, None)
        self._cancelled.pop(key, None)
        self._pending.pop(key, None)
        self._pending[key] = record
        self._schedule()

    def remove(self, key: Key) -> None:
        """Removes a record with the next commit."""
        if self.has_failed:
            return
        if key in self._pending:
            del self._pending[key]
            self._cancelled[key] = None
        self._removed[key] = None
        self._schedule()

    def _schedule(self) -> None:
        """Schedules a batch for the end of the loop turn, so that all records of one input are in one commit."""
        if not self._is_scheduled and self._writing is None:
            self._is_scheduled = True
            self._loop.call_soon(self._write_batch)

    def _write_batch(self) -> None:
        self._is_scheduled = False
        if self._writing is not None or not (self._pending or self._removed):
            return
        pending, self._pending = self._pending, {}
        removed, self._removed = list(self._removed), {}
        cancelled, self._cancelled = list(self._cancelled), {}
        rows = self._pack(pending)
        if self.has_failed:
            return
        keys = [(pack_key(key),) for key in removed]
        self._writing = self._loop.run_in_executor(self._thread, self._commit, list(rows.values()), keys)
        self._writing.add_done_callback(lambda done: self._committed(done, list(rows), cancelled))

    def _pack(self, records: dict[Key, object]) -> dict[Key, tuple[bytes, bytes]]:
        """Encodes records. Reports those that cannot be encoded and leaves them out."""
        rows: dict[Key, tuple[bytes, bytes]] = {}
        for key, record in records.items():
            try:
                rows[key] = (pack_key(key), pack_record(key, record))
            except RecordError as error:
                self._refused(error)
        return rows

    def _commit(self, rows: list[tuple[bytes, bytes]], removed: list[tuple[bytes]]) -> None:
        database = self._database
        try:
            database.execute("BEGIN")
            database.executemany("INSERT OR REPLACE INTO records (key, value) VALUES (?, ?)", rows)
            database.executemany("DELETE FROM records WHERE key = ?", removed)
            database.execute("COMMIT")
        except BaseException:
            # Some errors leave the transaction open with a part of the batch.
            with suppress(sqlite3.Error):
                database.rollback()
            raise

    def _committed(self, done: asyncio.Future[None], keys: list[Key], cancelled: list[Key]) -> None:
        self._writing = None
        if done.cancelled():
            return
        error = done.exception()
        if error is not None:
            self._fail(StoreError(f"cannot write {self._path}: {error}"))
            return
        self.commits += 1
        self.records_written += len(keys)
        self._persisted(keys + cancelled)
        if self._pending or self._removed:
            self._write_batch()

    def _fail(self, error: StoreError) -> None:
        """Discards all pending and later changes, and reports the error: the broker cannot continue."""
        if self.has_failed:
            return
        self.has_failed = True
        self._pending.clear()
        self._removed.clear()
        self._cancelled.clear()
        self._failed(error)

    @property
    def pending_count(self) -> int:
        """The number of records in the next batch."""
        return len(self._pending)

    async def close(self) -> None:
        """Commits pending changes and closes the database. After a failed write there are no pending changes."""
        while self._writing is not None or self._pending or self._removed:
            self._schedule()
            await asyncio.sleep(0.001)
        await self._loop.run_in_executor(self._thread, self._database.close)
        self._thread.shutdown()


def _unpack_keys(rows: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[Key, bytes]]:
    return ((unpack_key(key), value) for key, value in rows)
