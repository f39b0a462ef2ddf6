"""A broker's records in SQLite. A thread writes all changes since the last commit in one transaction.

The store reports a record to the core after the commit that contains it. The `fsync` policy defines the guarantee:

    batch        every commit forces the write-ahead log to disk: a power cut loses nothing that was accepted
    checkpoint   checkpoints force it to disk: a killed process loses nothing, a power cut may lose the last commits
    never        the operating system decides: like checkpoint, and a power cut may damage the store

The store is read and checked before it is opened for writing (see `store_reader`). A broker does not start with a
damaged store, because a part of the records would look like all of them.

After a failed write the store writes nothing more, because later records may depend on lost ones. For example, a
publish ledger states that all publications of a session up to a reference are stored.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from broker.config.tables import StoreTable
from broker.log import Log
from broker.runtime.store_files import (
    LOG_SUFFIX,
    MarkWriter,
    beside,
    make_private_file,
    make_private_folder,
    withdraw_permissions,
)
from broker.runtime.store_format import (
    CREATE_BROKER,
    CREATE_RECORDS,
    DIGESTS,
    FILE,
    READ_STATE,
    SCHEMA,
    SCHEMA_WITHOUT_CHECKSUMS,
    WRITE_STATE,
    NotAStoreError,
    StoreError,
    StoreInUseError,
    StoreState,
    record_digest,
)
from broker.runtime.store_reader import StoredRow, StoreReader, is_busy
from broker.runtime.store_records import Key, RecordError, pack_key, pack_record

_SYNCHRONOUS = {"batch": "FULL", "checkpoint": "NORMAL", "never": "OFF"}
_MOST_PROBLEMS_SHOWN = 5


class DamagedStoreError(StoreError):
    """The store is damaged. The message says how, and which commands show the rest."""

    def __init__(self, path: Path, problems: list[str]) -> None:
        shown = problems[:_MOST_PROBLEMS_SHOWN]
        if len(problems) > len(shown):
            shown.append(f"and {len(problems) - len(shown)} more")
        super().__init__(
            f"{path} is damaged, and the broker does not start with a part of its records:\n"
            + "".join(f"  {each}\n" for each in shown)
            + f"Look at it with `mercast store check {path}` and `mercast store export {path}`.\n"
            + f"To go on, put a backup of the whole folder in its place, or move {path.parent} away: "
            + "the broker then starts with an empty store."
        )


class Store:
    def __init__(
        self,
        folder: Path,
        table: StoreTable,
        persisted: Callable[[list[Key]], None],
        failed: Callable[[StoreError], None],
        lock_timeout_s: float = 5.0,
        refused: Callable[[RecordError], None] | None = None,
        log: Log | None = None,
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
        self._fsync = table.fsync
        self._persisted = persisted
        self._failed = failed
        self._refused = refused or (lambda error: self._fail(StoreError(str(error))))
        self._lock_timeout_s = lock_timeout_s
        self._log = log or Log(str(folder))
        self._pending: dict[Key, object] = {}
        self._removed: dict[Key, None] = {}
        self._cancelled: dict[Key, None] = {}
        """Records removed before they were written. They are reported as persisted with the commit of the removal."""
        self._least_incarnation = 0
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store")
        self._is_scheduled = False
        self._writing: asyncio.Future[None] | None = None

    def open(self, broker: str, incarnation: int) -> tuple[int, int, dict[Key, object]]:
        """Opens the store of this broker. Returns its previous incarnation (0: none), its new one, and all records."""
        self._loop = asyncio.get_running_loop()
        self._prepare_files()
        version, state, rows = self._read()
        if state is not None and state.broker != broker:
            raise StoreError(f"{self._path} belongs to broker {state.broker}, not to {broker}")
        earlier = state.incarnation if state is not None else 0
        try:
            self._database = sqlite3.connect(
                self._path, timeout=self._lock_timeout_s, isolation_level=None, check_same_thread=False
            )
        except sqlite3.Error as error:
            raise StoreError(f"cannot open {self._path}: {error}") from error
        self._mark = MarkWriter(self._path, self._fsync)
        try:
            self._database.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute(f"PRAGMA synchronous = {_SYNCHRONOUS[self._fsync]}")
            self._database.execute("BEGIN IMMEDIATE")
            if state is not None and version == SCHEMA:
                if self._database.execute(READ_STATE).fetchone() != state.row:
                    raise StoreInUseError(self._path)
            else:
                self._create_tables(version, rows)
                state = StoreState(broker, earlier, 0, len(rows), _sum_of_digests(rows))
            self._write_state(state._replace(incarnation=max(incarnation, earlier + 1), commits=state.commits + 1))
        except (OSError, sqlite3.Error, StoreError) as error:
            self._database.close()
            self._mark.close()
            if isinstance(error, StoreError):
                raise
            if is_busy(error):
                raise StoreInUseError(self._path) from error
            raise StoreError(f"cannot open {self._path}: {error}") from error
        return earlier, self._state.incarnation, {row.key: row.record for row in rows if row.key is not None}

    def _prepare_files(self) -> None:
        """Creates folder and file if they are missing, and keeps others from reading them."""
        try:
            make_private_folder(self._path.parent)
            make_private_file(self._path)
            exposures = withdraw_permissions(self._path.parent)
        except OSError as error:
            raise StoreError(f"cannot make {self._path}: {error}") from error
        for each in exposures:
            place = {"path": str(each.path), "mode": f"{each.mode:04o}"}
            if each.error is None:
                self._log.warning("permissions corrected", **place)
            else:
                reason = f"{each.error}; others can use it: change its owner or its permissions"
                self._log.warning("permissions not corrected", **place, reason=reason)

    def _read(self) -> tuple[int, StoreState | None, list[StoredRow]]:
        """Reads the whole store and checks it. Returns its version, its state and its records."""
        try:
            reader = StoreReader(self._path, self._lock_timeout_s)
        except NotAStoreError as error:
            raise DamagedStoreError(self._path, [str(error)]) from error
        with reader:
            rows = list(reader.rows())
        if reader.problems:
            raise DamagedStoreError(self._path, reader.problems)
        for notice in reader.notices:
            self._log.warning("store incomplete", path=str(self._path), reason=notice)
        return reader.version, reader.state, rows

    def _create_tables(self, version: int, rows: list[StoredRow]) -> None:
        """Creates the tables of a new store, or adds checksums to a store of the version without them."""
        database = self._database
        if version == SCHEMA_WITHOUT_CHECKSUMS:
            database.execute("DROP TABLE broker")
            database.execute("ALTER TABLE records ADD COLUMN digest INTEGER NOT NULL DEFAULT 0")
            digests = ((record_digest(row.packed_key, row.packed), row.packed_key) for row in rows)
            database.executemany("UPDATE records SET digest = ? WHERE key = ?", digests)
        else:
            database.execute(CREATE_RECORDS)
        database.execute(CREATE_BROKER)
        database.execute("INSERT INTO broker VALUES ('', 0, 0, 0, 0, 0)")
        database.execute(f"PRAGMA user_version = {SCHEMA}")

    def _write_state(self, state: StoreState) -> None:
        """Writes the row of the broker, commits, and then moves the commit mark."""
        self._database.execute(WRITE_STATE, state.row)
        self._database.execute("COMMIT")
        self._state = state
        self._mark.write(state.commits)

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
        keys = [pack_key(key) for key in removed]
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

    def _commit(self, rows: list[tuple[bytes, bytes]], removed: list[bytes]) -> None:
        database, state = self._database, self._state
        written = [(key, value, record_digest(key, value)) for key, value in rows]
        try:
            database.execute("BEGIN")
            records, digests = state.records + len(written), state.digests + sum(digest for *_, digest in written)
            for key in (*(key for key, _ in rows), *removed):
                earlier = database.execute("SELECT digest FROM records WHERE key = ?", (key,)).fetchone()
                if earlier is not None:
                    records -= 1
                    digests -= earlier[0]
            database.executemany("INSERT OR REPLACE INTO records (key, value, digest) VALUES (?, ?, ?)", written)
            database.executemany("DELETE FROM records WHERE key = ?", ((key,) for key in removed))
            self._write_state(state._replace(commits=state.commits + 1, records=records, digests=digests % DIGESTS))
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
        await self._loop.run_in_executor(self._thread, self._close_files)
        self._thread.shutdown()

    def raise_incarnation(self, known: int) -> None:
        """Makes sure that the next incarnation of the broker is later than `known`."""
        self._least_incarnation = known

    def _close_files(self) -> None:
        """Closes the database. Removes the commit mark if SQLite has moved the whole log into the database."""
        if self._least_incarnation > self._state.incarnation and not self.has_failed:
            self._database.execute("BEGIN")
            self._write_state(
                self._state._replace(incarnation=self._least_incarnation, commits=self._state.commits + 1)
            )
        self._database.close()
        if beside(self._path, LOG_SUFFIX).exists():
            self._mark.close()
        else:
            self._mark.remove()


def _sum_of_digests(rows: list[StoredRow]) -> int:
    return sum(record_digest(row.packed_key, row.packed) for row in rows) % DIGESTS
