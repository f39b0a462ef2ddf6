"""A trace that was recorded: its tables by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from broker.trace.files import iter_rows, read_table
from broker.trace.schema import TABLES, Row, TraceError

if TYPE_CHECKING:
    import pyarrow


class RecordedTrace(Mapping[str, "pyarrow.Table"]):
    """The tables of one run. A table is read when it is first used."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def __getitem__(self, table: str) -> pyarrow.Table:
        return read_table(self.directory, table)

    def __iter__(self) -> Iterator[str]:
        return (name for name in TABLES if (self.directory / "trace" / name).is_dir())

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def rows(self, table: str) -> Iterator[Row]:
        """The rows of a table, one by one, as values of its row class."""
        return iter_rows(self.directory, table)


def read_trace(directory: str | Path) -> RecordedTrace:
    """The trace in a run's folder, such as `mercast simulate --out` writes."""
    trace = RecordedTrace(Path(directory))
    if not len(trace):
        raise TraceError(f"{directory} holds no trace; name the folder of a run, the one with scenario.toml or trace/")
    return trace
