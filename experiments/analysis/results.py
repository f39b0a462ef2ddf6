"""Collects tables of results in this process, where they are small, and writes them as Parquet and CSV."""

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
"""The largest number of rows of a result. A larger table is no summary, and would fill this process's memory."""


@dataclass(frozen=True, slots=True)
class Result:
    """A table of results in this process."""

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
    """Collects the rows in order, at most `most` of them."""
    keys = [*(column for column in RUN_COLUMNS if column in frame.columns), *order]
    with spark_errors():
        rows = frame.orderBy(*keys).limit(most + 1).toArrow()
    return Result(name, rows.slice(0, most), is_cut=rows.num_rows > most)


def write(result: Result, folder: Path) -> None:
    """Writes `name.parquet` and `name.csv`. Each file gets its name when it is complete."""
    import pyarrow.csv
    import pyarrow.parquet

    folder.mkdir(parents=True, exist_ok=True)
    with _replace_file(folder / f"{result.name}.parquet") as path:
        pyarrow.parquet.write_table(result.rows, path, compression="zstd")
    with _replace_file(folder / f"{result.name}.csv") as path:
        pyarrow.csv.write_csv(result.rows, path)


@contextmanager
def _replace_file(path: Path) -> Iterator[Path]:
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
    """Replaces Spark's long errors by errors of one line (see `short_error`)."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise short_error(error) from error


def short_error(error: Exception) -> AnalysisError | TraceError:
    """An error with the name of the file that cannot be read, or with the first line of Spark's message."""
    text = str(error)
    path = re.search(r"FAILED_READ_FILE[^\n]*?file:(?://)?(/[^\n]+?\.parquet)", text)
    if path is not None:
        return TraceError(f"{unquote(path[1])} is damaged: Spark cannot read it to its end; run the simulation again")
    return AnalysisError(f"Spark gave up: {text.strip().splitlines()[0]}")
