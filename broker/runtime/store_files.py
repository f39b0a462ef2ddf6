"""The files of a store: who may read them, and the commit mark.

The commit mark is a file beside the database with the number of the last commit. SQLite discards a damaged write-ahead
log from the damage on, without an error: all commits after it disappear. The mark shows that they existed.

The mark is written after each commit and is not forced to disk. So it is never ahead of the database, except after a
power cut with an `fsync` policy that may lose commits. The mark names the policy and the boot of the operating system,
so that such a loss differs from damage. A store that was closed in order has no write-ahead log and no mark.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from broker.runtime.store_format import FILE

LOG_SUFFIX = "-wal"
SHARED_MEMORY_SUFFIX = "-shm"
MARK_SUFFIX = "-commits"
_FOLDER_MODE = 0o700
PRIVATE_FILE_MODE = 0o600
_OTHERS = 0o077
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_MARK_BYTES = 128


class MarkError(Exception):
    """The commit mark is damaged."""


def beside(path: Path, suffix: str) -> Path:
    """The file beside a database that has this suffix."""
    return path.with_name(path.name + suffix)


def make_private_folder(folder: Path) -> None:
    """Creates the folder, and missing folders above it, for the owner alone."""
    for each in (*reversed(folder.parents), folder):
        if not each.exists():
            each.mkdir(mode=_FOLDER_MODE, exist_ok=True)


def make_private_file(path: Path) -> None:
    """Creates an empty file for the owner alone, unless it exists. SQLite gives its log the same permissions."""
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, PRIVATE_FILE_MODE))


@dataclass(frozen=True, slots=True)
class Exposure:
    """A folder or file of the store that others than its owner could use."""

    path: Path
    mode: int
    error: OSError | None
    """Why the permissions could not be corrected, or None."""


def withdraw_permissions(folder: Path) -> list[Exposure]:
    """Takes the folder and the files of its store from everybody except their owner. Returns those that changed, and
    those that could not be changed."""
    exposures = []
    for path in (folder, *sorted(folder.glob(f"{FILE}*"))):
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & _OTHERS:
            try:
                path.chmod(mode & ~_OTHERS)
            except OSError as error:
                exposures.append(Exposure(path, mode, error))
            else:
                exposures.append(Exposure(path, mode, None))
    return exposures


@dataclass(frozen=True, slots=True)
class CommitMark:
    commits: int
    fsync: str
    boot: str
    """The boot of the operating system in which the commit was written; empty: the system does not tell."""

    @property
    def permits_loss(self) -> bool:
        """Whether a power cut may have lost commits before this mark."""
        return self.fsync != "batch" and (not self.boot or self.boot != current_boot())


def current_boot() -> str:
    """The id of this boot of the operating system. Empty if the system has none."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""


def read_mark(path: Path) -> CommitMark | None:
    """Reads the mark of the database at `path`. Returns None if there is none."""
    try:
        content = beside(path, MARK_SUFFIX).read_bytes()
    except FileNotFoundError:
        return None
    try:
        mark = _parse_mark(content)
    except ValueError as error:
        raise MarkError(f"the commit mark {path.name}{MARK_SUFFIX} is damaged") from error
    return mark


def _parse_mark(content: bytes) -> CommitMark:
    _, commits, fsync, boot, *_ = content.decode("ascii").split(" ")
    mark = CommitMark(int(commits), fsync, boot)
    if content != _format_mark(mark):
        raise ValueError
    return mark


def _format_mark(mark: CommitMark) -> bytes:
    """A line of fixed length, so that a mark overwrites the last one within a sector of the disk."""
    text = f"mercast-commits-1 {mark.commits} {mark.fsync} {mark.boot} ".ljust(_MARK_BYTES - 17).encode()
    return text + blake2b(text, digest_size=8).hexdigest().encode() + b"\n"


class MarkWriter:
    """Writes the commit mark of an open store."""

    def __init__(self, path: Path, fsync: str) -> None:
        self._path = beside(path, MARK_SUFFIX)
        self._fsync = fsync
        self._boot = current_boot()
        self._descriptor: int | None = None

    def write(self, commits: int) -> None:
        content = _format_mark(CommitMark(commits, self._fsync, self._boot))
        if self._descriptor is None:
            self._descriptor = self._create(content)
        else:
            os.pwrite(self._descriptor, content, 0)

    def _create(self, content: bytes) -> int:
        """Creates the file with its content, in place of an earlier one. A crash at any time leaves a whole mark: half
        a mark would look damaged."""
        new = beside(self._path, ".new")
        descriptor = os.open(new, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, PRIVATE_FILE_MODE)
        try:
            os.pwrite(descriptor, content, 0)
            os.fsync(descriptor)
            new.replace(self._path)
        except OSError:
            os.close(descriptor)
            raise
        return descriptor

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def remove(self) -> None:
        """Closes and removes the mark. The database contains all commits."""
        self.close()
        self._path.unlink(missing_ok=True)
