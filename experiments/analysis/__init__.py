"""Analysis of traces on Spark: functions from DataFrame to DataFrame, one module for each topic. `start_session` starts
Spark, `read_runs` reads the tables of one or more runs as DataFrames, and the modules in `metrics` compute tables of
results. It imports no other package of `experiments`, and imports Spark only when it is needed.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from experiments.analysis.runs import Runs

__all__ = ["read_runs", "start_session"]


def start_session(master: str = "local[*]", *, memory: str = "2g", is_short: bool = False) -> SparkSession:
    """Starts a Spark session on this machine or on a cluster. With `is_short`, for small traces, it starts faster."""
    from experiments.analysis.spark_session import start

    return start(master, memory=memory, is_short=is_short)


def read_runs(session: SparkSession, folders: Iterable[Path]) -> Runs:
    """Reads the traces of runs. A folder is the folder of a run, or has runs below it."""
    from experiments.analysis.runs import find_runs, read

    return read(session, find_runs(folders))
