"""How the analysis scales: generated traces of several sizes, the time of every table, and memory, beside DuckDB."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from experiments.analysis.duckdb_tables import QUERIES, DuckDB
from experiments.analysis.results import collect, spark_errors
from experiments.analysis.runs import find_runs, read
from experiments.analysis.synthetic import write_trace
from experiments.analysis.tables import RESULTS, step_for

WARM_UP_ROWS = 200_000


@dataclass(frozen=True, slots=True)
class Timing:
    """One table at one size. CPU time is the Java process's, all its threads'; other work on the machine adds none."""

    hop_rows: int
    table: str
    wall_s: float
    cpu_s: float
    duckdb_s: float | None


@dataclass(frozen=True, slots=True)
class Measured:
    hop_rows: int
    timings: tuple[Timing, ...]
    java_peak_mb: float
    """The most memory that Spark's Java process had so far, as the operating system counts it."""

    @property
    def wall_s(self) -> float:
        return sum(timing.wall_s for timing in self.timings)

    @property
    def cpu_s(self) -> float:
        return sum(timing.cpu_s for timing in self.timings)


def benchmark(
    session: SparkSession,
    folder: Path,
    sizes: Sequence[int],
    tables: Sequence[str],
    *,
    cores: int,
    memory: str,
    progress: Callable[[str, int, int], None],
) -> Iterator[Measured]:
    """A result for each size, ascending. A small trace comes first and is not counted: Java compiles meanwhile."""
    java = JavaProcess(session)
    for hop_rows in (WARM_UP_ROWS, *sorted(sizes)):
        run = folder / f"{hop_rows}-hops"
        if not run.exists():
            write_trace(run, hop_rows, lambda done, total: progress("writing the trace", done, total))
        duckdb = DuckDB(run, threads=cores, memory=memory)
        with spark_errors(), closing(duckdb):
            timings = list(_timings(session, run, hop_rows, tables, java, duckdb, progress))
        if hop_rows != WARM_UP_ROWS:
            yield Measured(hop_rows, tuple(timings), java.peak_mb())


def _timings(
    session: SparkSession,
    run: Path,
    hop_rows: int,
    tables: Sequence[str],
    java: JavaProcess,
    duckdb: DuckDB,
    progress: Callable[[str, int, int], None],
) -> Iterator[Timing]:
    runs = read(session, find_runs([run]))
    step_s = step_for(runs.publications)
    for number, name in enumerate(tables):
        progress(f"{hop_rows:,} hops: {name}", number, len(tables))
        began, cpu_before = time.perf_counter(), java.cpu_s()
        collect(name, RESULTS[name].make(runs, step_s), RESULTS[name].order)
        wall_s, cpu_s = time.perf_counter() - began, java.cpu_s() - cpu_before
        duckdb_s = None
        if name in QUERIES:
            began = time.perf_counter()
            duckdb.rows(name)
            duckdb_s = time.perf_counter() - began
        yield Timing(hop_rows, name, wall_s, cpu_s, duckdb_s)


class JavaProcess:
    """The process that Spark's driver runs in; with a local master everything is done there."""

    def __init__(self, session: SparkSession) -> None:
        gateway = session.sparkContext._jvm
        assert gateway is not None
        self._proc = Path("/proc") / str(gateway.java.lang.ProcessHandle.current().pid())
        self._ticks_per_s = os.sysconf("SC_CLK_TCK")

    def cpu_s(self) -> float:
        """Of the whole process so far, in user and system mode."""
        after_name = (self._proc / "stat").read_text().rpartition(")")[2].split()
        return (int(after_name[11]) + int(after_name[12])) / self._ticks_per_s

    def peak_mb(self) -> float:
        for line in (self._proc / "status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
        raise AssertionError(f"{self._proc}/status has no VmHWM")
