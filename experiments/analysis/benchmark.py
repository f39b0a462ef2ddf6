"""Measures how the analysis scales: time of every table and memory on generated traces, compared with DuckDB."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from broker.progress import ShowProgress
from experiments.analysis.duckdb_tables import QUERIES, DuckDB
from experiments.analysis.results import collect, spark_errors
from experiments.analysis.runs import find_runs, read
from experiments.analysis.synthetic import write_trace
from experiments.analysis.tables import RESULTS, step_for

WARM_UP_ROWS = 200_000


@dataclass(frozen=True, slots=True)
class Timing:
    """The time of one table at one size. CPU time is that of the Java process only, with all its threads."""

    hop_rows: int
    table: str
    wall_s: float
    cpu_s: float
    duckdb_s: float | None


@dataclass(frozen=True, slots=True)
class SizeResult:
    """The results of one size of trace."""

    hop_rows: int
    timings: tuple[Timing, ...]
    spark_peak_mb: float
    """Peak memory of Spark so far, as counted by the operating system: its Java process and this process."""
    duckdb_peak_mb: float

    @property
    def wall_s(self) -> float:
        return sum(timing.wall_s for timing in self.timings)

    @property
    def cpu_s(self) -> float:
        return sum(timing.cpu_s for timing in self.timings)


@dataclass(frozen=True, slots=True)
class BenchmarkObserver:
    """Callbacks for progress and for the time of each table."""

    progress: ShowProgress
    on_timing: Callable[[Timing], None]


def benchmark(
    session: SparkSession,
    folder: Path,
    sizes: Sequence[int],
    tables: Sequence[str],
    *,
    cores: int,
    memory: str,
    observer: BenchmarkObserver,
) -> Iterator[SizeResult]:
    """Yields a result for each size, ascending. A small trace comes first, without result, so that Java compiles.

    DuckDB runs in its own process, so that its memory does not count as Spark's.
    """
    java = ProcessUsage(_java_pid(session))
    here = ProcessUsage(os.getpid())
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as duckdb:
        start_without_sigint(duckdb)
        for hop_rows in (WARM_UP_ROWS, *sorted(sizes)):
            run = folder / f"{hop_rows}-hops"
            if not run.exists():
                _write(run, hop_rows, observer)
            timings: list[Timing] = []
            duckdb_peak_mb = 0.0
            runs = read(session, find_runs([run]))
            step_s = step_for(runs.publications)
            for name in tables:
                observer.progress(f"{hop_rows:,} hops: tables", len(timings), len(tables))
                started, cpu_before = time.perf_counter(), java.cpu_s()
                with spark_errors():
                    collect(name, RESULTS[name].make(runs, step_s), RESULTS[name].order)
                wall_s, cpu_s = time.perf_counter() - started, java.cpu_s() - cpu_before
                duckdb_s = None
                if name in QUERIES:
                    duckdb_s, duckdb_peak_mb = duckdb.submit(_duckdb_usage, run, name, cores, memory).result()
                timings.append(Timing(hop_rows, name, wall_s, cpu_s, duckdb_s))
                if hop_rows != WARM_UP_ROWS:
                    observer.on_timing(timings[-1])
            if hop_rows != WARM_UP_ROWS:
                yield SizeResult(hop_rows, tuple(timings), java.peak_mb() + here.peak_mb(), duckdb_peak_mb)


def start_without_sigint(pool: ProcessPoolExecutor) -> None:
    """Starts the pool's process with SIGINT blocked.

    Ctrl-C sends SIGINT to all processes of a terminal, but only this one reports it. The process inherits the blocked
    signal from its start; ignoring it from within the process would be too late.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        pool.submit(os.getpid)
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _write(run: Path, hop_rows: int, observer: BenchmarkObserver) -> None:
    """Writes the trace, and gives it its name when it is complete. A trace with that name is not written again."""
    unfinished = run.with_name(f".{run.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    write_trace(unfinished, hop_rows, lambda done, total: observer.progress(f"{hop_rows:,} hops: writing", done, total))
    unfinished.rename(run)


def _duckdb_usage(run: Path, table: str, threads: int, memory: str) -> tuple[float, float]:
    """Seconds for the table, and the peak memory of the process so far."""
    with closing(DuckDB(run, threads=threads, memory=memory)) as duckdb:
        started = time.perf_counter()
        duckdb.rows(table)
        return time.perf_counter() - started, ProcessUsage(os.getpid()).peak_mb()


def _java_pid(session: SparkSession) -> int:
    """The id of the process of Spark's driver. With a local master, all work is done there."""
    gateway = session.sparkContext._jvm
    assert gateway is not None
    return int(gateway.java.lang.ProcessHandle.current().pid())


class ProcessUsage:
    def __init__(self, pid: int) -> None:
        self._proc = Path("/proc") / str(pid)
        self._ticks_per_s = os.sysconf("SC_CLK_TCK")

    def cpu_s(self) -> float:
        """CPU time of the process so far, in user and system mode."""
        after_name = (self._proc / "stat").read_text().rpartition(")")[2].split()
        return (int(after_name[11]) + int(after_name[12])) / self._ticks_per_s

    def peak_mb(self) -> float:
        for line in (self._proc / "status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
        raise AssertionError(f"{self._proc}/status has no VmHWM")
