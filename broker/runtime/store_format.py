"""The format of a store: tables, checksums and errors.

Each record has a digest of its key and value. The only row of the table `broker` has the number of records, the sum of
their digests, the number of commits, and a checksum of itself. Every commit writes this row. So a changed, a lost and a
repeated record are all found when the store is read.
"""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import msgpack

SCHEMA = 2
SCHEMA_WITHOUT_CHECKSUMS = 1
FILE = "broker.sqlite"
DIGEST_BYTES = 6
"""A digest fits into a signed 64-bit integer of SQLite, and is positive."""
DIGESTS = 1 << 8 * DIGEST_BYTES
"""Sums of digests are taken modulo this number."""

CREATE_BROKER = (
    "CREATE TABLE broker (id TEXT NOT NULL, incarnation INTEGER NOT NULL, commits INTEGER NOT NULL,"
    " records INTEGER NOT NULL, digests INTEGER NOT NULL, checksum INTEGER NOT NULL)"
)
CREATE_RECORDS = (
    "CREATE TABLE records (key BLOB NOT NULL UNIQUE, value BLOB NOT NULL, digest INTEGER NOT NULL DEFAULT 0)"
)
READ_STATE = "SELECT id, incarnation, commits, records, digests, checksum FROM broker"
WRITE_STATE = "UPDATE broker SET id = ?, incarnation = ?, commits = ?, records = ?, digests = ?, checksum = ?"


class StoreError(Exception):
    """The store cannot be opened or written. The message names the file."""

    exit_code = 1


class StoreInUseError(StoreError):
    """Another process has the store open."""

    exit_code = 4

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} is in use: does another broker use it? Stop that broker first")


class UnreadableStoreError(StoreError):
    """The operating system does not let this process read the store."""

    exit_code = 3


class NotAStoreError(StoreError):
    """There is no store at this path."""

    exit_code = 3


class StoreState(NamedTuple):
    """The row of the table `broker`."""

    broker: str
    incarnation: int
    commits: int
    records: int
    digests: int
    """The sum of the digests of all records."""

    @property
    def row(self) -> tuple[str | int, ...]:
        """The columns of the row, with the checksum."""
        return (*self, _digest(msgpack.packb(tuple(self))))


def record_digest(key: bytes, value: bytes) -> int:
    """The digest of a record. It depends on where the key ends."""
    return _digest(len(key).to_bytes(4, "big") + key + value)


def _digest(content: bytes) -> int:
    return int.from_bytes(blake2b(content, digest_size=DIGEST_BYTES).digest(), "big")
