"""How the analysis scales: generated traces of several sizes, the time of every table, and memory, beside DuckDB."""

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
    spark_peak_mb: float
    """The most memory that Spark had so far as the operating system counts it: its Java process and this one."""
    duckdb_peak_mb: float

    @property
    def wall_s(self) -> float:
        return sum(timing.wall_s for timing in self.timings)

    @property
    def cpu_s(self) -> float:
        return sum(timing.cpu_s for timing in self.timings)


@dataclass(frozen=True, slots=True)
class Watch:
    """Who is told how it goes on, and of each table's time."""

    progress: Callable[[str, int, int], None]
    timed: Callable[[Timing], None]


def benchmark(
    session: SparkSession,
    folder: Path,
    sizes: Sequence[int],
    tables: Sequence[str],
    *,
    cores: int,
    memory: str,
    watch: Watch,
) -> Iterator[Measured]:
    """A result for each size, ascending. A small trace comes first and is not counted: Java compiles meanwhile.

    DuckDB answers in a process of its own, so that its memory is not taken for Spark's.
    """
    java = ProcessFigures(_java_pid(session))
    here = ProcessFigures(os.getpid())
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as duckdb:
        start_deaf_to_ctrl_c(duckdb)
        for hop_rows in (WARM_UP_ROWS, *sorted(sizes)):
            run = folder / f"{hop_rows}-hops"
            if not run.exists():
                _write(run, hop_rows, watch)
            timings: list[Timing] = []
            duckdb_peak_mb = 0.0
            runs = read(session, find_runs([run]))
            step_s = step_for(runs.publications)
            for name in tables:
                watch.progress(f"{hop_rows:,} hops: tables", len(timings), len(tables))
                began, cpu_before = time.perf_counter(), java.cpu_s()
                with spark_errors():
                    collect(name, RESULTS[name].make(runs, step_s), RESULTS[name].order)
                wall_s, cpu_s = time.perf_counter() - began, java.cpu_s() - cpu_before
                duckdb_s = None
                if name in QUERIES:
                    duckdb_s, duckdb_peak_mb = duckdb.submit(_duckdb_figures, run, name, cores, memory).result()
                timings.append(Timing(hop_rows, name, wall_s, cpu_s, duckdb_s))
                if hop_rows != WARM_UP_ROWS:
                    watch.timed(timings[-1])
            if hop_rows != WARM_UP_ROWS:
                yield Measured(hop_rows, tuple(timings), java.peak_mb() + here.peak_mb(), duckdb_peak_mb)


def start_deaf_to_ctrl_c(pool: ProcessPoolExecutor) -> None:
    """Ctrl-C goes to all processes of a terminal, and is this one's to tell of.

    What is blocked here stays so in the process from its first moment; to ignore it from within would come too late.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        pool.submit(os.getpid)
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _write(run: Path, hop_rows: int, watch: Watch) -> None:
    """Under its name when it is complete: what is there is not written again."""
    unfinished = run.with_name(f".{run.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    write_trace(unfinished, hop_rows, lambda done, total: watch.progress(f"{hop_rows:,} hops: writing", done, total))
    unfinished.rename(run)


def _duckdb_figures(run: Path, table: str, threads: int, memory: str) -> tuple[float, float]:
    """Seconds for the table, and the process's most memory so far."""
    with closing(DuckDB(run, threads=threads, memory=memory)) as duckdb:
        began = time.perf_counter()
        duckdb.rows(table)
        return time.perf_counter() - began, ProcessFigures(os.getpid()).peak_mb()


def _java_pid(session: SparkSession) -> int:
    """Of the process that Spark's driver runs in; with a local master everything is done there."""
    gateway = session.sparkContext._jvm
    assert gateway is not None
    return int(gateway.java.lang.ProcessHandle.current().pid())


class ProcessFigures:
    def __init__(self, pid: int) -> None:
        self._proc = Path("/proc") / str(pid)
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
