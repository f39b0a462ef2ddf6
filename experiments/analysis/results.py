"""Tables of results: brought to this process (they are small by then), and written as Parquet and CSV."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from pyspark.sql import DataFrame

from broker.trace.schema import TraceError
from experiments.analysis.columns import RUN_COLUMNS
from experiments.analysis.errors import AnalysisError

ROWS_MOST = 100_000
"""A table of results ends there: what has more rows is no summary, and would be raw rows in this process's memory."""


@dataclass(frozen=True, slots=True)
class Result:
    name: str
    rows: pa.Table
    is_cut: bool
    """Whether there were more rows than `ROWS_MOST`."""

    def column(self, name: str) -> list[Any]:
        values: list[Any] = self.rows.column(name).to_pylist()
        return values

    def of_run(self, run: str) -> Result:
        return self.where("run", run)

    def where(self, column: str, value: str) -> Result:
        import pyarrow.compute as pc

        return Result(self.name, self.rows.filter(pc.equal(self.rows.column(column), value)), self.is_cut)


def collect(name: str, frame: DataFrame, order: Sequence[str], most: int = ROWS_MOST) -> Result:
    """The rows in order; those beyond `most` stay where they are."""
    keys = [*(column for column in RUN_COLUMNS if column in frame.columns), *order]
    with spark_errors():
        rows = frame.orderBy(*keys).limit(most + 1).toArrow()
    return Result(name, rows.slice(0, most), is_cut=rows.num_rows > most)


def write(result: Result, folder: Path) -> None:
    """`name.parquet` and `name.csv`; each appears under its name when it is complete."""
    import pyarrow.csv
    import pyarrow.parquet

    folder.mkdir(parents=True, exist_ok=True)
    with _replacing(folder / f"{result.name}.parquet") as path:
        pyarrow.parquet.write_table(result.rows, path, compression="zstd")
    with _replacing(folder / f"{result.name}.csv") as path:
        pyarrow.csv.write_csv(result.rows, path)


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        yield unfinished
        unfinished.replace(path)
    except OSError as error:
        raise AnalysisError(f"cannot write {path}: {error}") from error
    finally:
        unfinished.unlink(missing_ok=True)


@contextmanager
def spark_errors() -> Iterator[None]:
    """Spark's long reports in one line: a file that cannot be read by its name, all else by its first words."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise in_one_line(error) from error


def in_one_line(error: Exception) -> AnalysisError | TraceError:
    text = str(error)
    path = re.search(r"FAILED_READ_FILE[^\n]*?file:(?://)?(/[^\n]+?\.parquet)", text)
    if path is not None:
        return TraceError(f"{unquote(path[1])} is damaged: Spark cannot read it to its end; run the simulation again")
    return AnalysisError(f"Spark gave up: {text.strip().splitlines()[0]}")
