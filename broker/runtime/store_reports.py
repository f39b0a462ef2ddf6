"""What `mercast store` shows of a store: whether it is sound, and its records as lines of JSON."""

from __future__ import annotations

import base64
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, is_dataclass
from pathlib import Path
from typing import IO, Any

from broker.config.overlay_config import ConfigError, read_config
from broker.progress import ShowProgress
from broker.runtime.store_files import PRIVATE_FILE_MODE
from broker.runtime.store_format import FILE, NotAStoreError
from broker.runtime.store_reader import StoredRow, StoreReader

_PROGRESS_EVERY = 1000


@dataclass(frozen=True, slots=True)
class CheckReport:
    path: str
    is_sound: bool
    version: int
    broker: str
    incarnation: int
    commits: int
    records: int
    """The number of sound records."""
    damaged: int
    """The number of damaged records that were found."""
    kinds: dict[str, int]
    """The number of sound records of each kind."""
    problems: list[str]
    notices: list[str]


def find_store(path: Path, id: str | None) -> Path:
    """The database file of a store. `path` is that file, its folder, or an overlay file with the broker `id`."""
    if path.suffix == ".toml":
        if id is None:
            raise ConfigError(f"{path} is an overlay file; add --id to say which broker's store")
        folder = read_config(path).broker(id).data_dir
        if folder is None:
            raise ConfigError(f"{path}: broker {id} has no data_dir, so it has no store")
        return folder / FILE
    if id is not None:
        raise ConfigError(f"--id is for overlay files; {path} is a store already")
    found = path / FILE if path.is_dir() else path
    if not found.is_file():
        raise NotAStoreError(f"there is no store {found}")
    return found


def check_store(path: Path, show: ShowProgress) -> CheckReport:
    """Reads the whole store and reports what is in it and what is damaged."""
    with StoreReader(path) as reader:
        kinds: Counter[str] = Counter()
        damaged = 0
        for number, row in enumerate(reader.rows(), 1):
            if row.problem or row.key is None:
                damaged += 1
            else:
                kinds[row.key[0]] += 1
            _show_progress(show, "checking", number, reader)
    state = reader.state
    return CheckReport(
        str(path),
        not reader.problems,
        reader.version,
        state.broker if state else "",
        state.incarnation if state else 0,
        state.commits if state else 0,
        kinds.total(),
        damaged,
        dict(sorted(kinds.items())),
        reader.problems,
        reader.notices,
    )


@contextmanager
def open_output(path: Path | None) -> Iterator[IO[str]]:
    """A new file that its owner alone can read, or the standard output."""
    if path is None:
        yield sys.stdout
        return
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE_FILE_MODE)
    except FileExistsError:
        raise ConfigError(f"{path} exists already; name another file") from None
    except OSError as error:
        raise ConfigError(f"cannot make {path}: {error}") from error
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        yield stream


def export_store(path: Path, out: IO[str], show: ShowProgress) -> tuple[int, list[str]]:
    """Writes each readable record as a line of JSON. Returns the number of lines, and the problems of the store."""
    number = 0
    with StoreReader(path) as reader:
        for number, row in enumerate(reader.rows(), 1):
            out.write(json.dumps(_line(row)) + "\n")
            _show_progress(show, "exporting", number, reader)
    return number, reader.problems


def _show_progress(show: ShowProgress, task: str, number: int, reader: StoreReader) -> None:
    if number % _PROGRESS_EVERY == 0:
        show(task, number, max(number, reader.state.records if reader.state else 0))


def _line(row: StoredRow) -> dict[str, object]:
    if not row.problem:
        return {"key": row.key, "record": _plain(row.record)}
    return {
        "key": row.key,
        "damaged": row.problem,
        "packed_key": _plain(row.packed_key),
        "packed_record": _plain(row.packed),
    }


def _plain(value: Any) -> object:
    """The value as JSON has it: names for the fields of tuples and dataclasses, base64 for bytes."""
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode("ascii")}
    if is_dataclass(value):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, tuple):
        names = getattr(value, "_fields", None)
        parts = [_plain(each) for each in value]
        return parts if names is None else dict(zip(names, parts, strict=True))
    return value


def describe(report: CheckReport) -> str:
    """The report as text."""
    numbers = f"incarnation {report.incarnation}, {report.commits} commits, version {report.version}"
    lines = [
        f"{report.path}: {'sound' if report.is_sound else 'damaged'}",
        f"broker {report.broker or 'unknown'}, {numbers}",
        f"{report.records} sound records" + (f", {report.damaged} damaged" if report.damaged else ""),
        *(f"  {kind}: {count}" for kind, count in report.kinds.items()),
        *(f"damage: {each}" for each in report.problems),
        *(f"note: {each}" for each in report.notices),
    ]
    return "\n".join(lines)


def as_json(report: CheckReport) -> str:
    return json.dumps(asdict(report))
