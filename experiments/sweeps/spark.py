"""Sweeps as tasks of a Spark cluster: the same runs with the same outcomes, on other machines.

Each run is a job of one task. The task executes the run in a folder on its machine and sends that folder back, so
cluster and driver need no common file system. Workers need this version of mercast in their Python.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

from experiments.sweeps.sweep import RunOutcome, RunSpec, error_text, execute_run, read_outcome

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Argument = TypeVar("Argument")
Result = TypeVar("Result")

MEMORY = "512m"
"""Memory of Java on each worker. Java only transfers folders; a run uses the memory of its Python process."""
SUBMITTED_MAX = 64
"""The largest number of runs that are submitted to the cluster. It executes one on each of its cores."""


class SparkCalls:
    """Calls functions in tasks of a cluster, or of Spark on this machine. Functions, arguments and results are
    pickled."""

    def __init__(self, master: str) -> None:
        from experiments import analysis

        self._session: SparkSession = analysis.start_session(master, memory=MEMORY, is_short=True)
        # Without this a task uses the first Python on the worker's path.
        self._session.sparkContext.pythonExec = os.environ.get("PYSPARK_PYTHON", sys.executable)
        self._threads = ThreadPoolExecutor(SUBMITTED_MAX)

    def submit_call(self, function: Callable[[Argument], Result], argument: Argument) -> Future[Result]:
        """Calls the function in a job of one task."""
        return self._threads.submit(self.call, function, argument)

    def call(self, function: Callable[[Argument], Result], argument: Argument) -> Result:
        """Calls the function in a job of one task, and waits for its result."""
        (result,) = self._session.sparkContext.parallelize([argument], 1).map(function).collect()
        return result

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._threads.shutdown(cancel_futures=True)
        self._session.stop()


class SparkTasks(SparkCalls):
    """Executes runs as tasks of a cluster, or of Spark on this machine."""

    def __init__(self, runs: Path, master: str) -> None:
        super().__init__(master)
        self._runs = runs

    def submit(self, spec: RunSpec) -> Future[RunOutcome]:
        return self._threads.submit(self._run, spec)

    def _run(self, spec: RunSpec) -> RunOutcome:
        packed, error = self.call(execute_and_pack, spec)
        if error:
            return RunOutcome(error=error)
        folder = self._runs / spec.folder_name
        unpack(packed, folder)
        outcome = read_outcome(spec, self._runs)
        assert outcome is not None, f"{folder} came back without an outcome"
        return replace(outcome, folder=str(folder))


def execute_and_pack(spec: RunSpec) -> tuple[bytes, str]:
    """The task: executes the run and returns its folder as an archive, and an error text.

    The error of a run is returned, not raised: the cluster would try a failed task again.
    """
    with tempfile.TemporaryDirectory() as temporary, ThreadPoolExecutor(1) as one:
        folder = Path(temporary) / spec.folder_name
        error = one.submit(execute_run, spec, folder).exception()
        if error is not None:
            return b"", error_text(error)
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            archive.add(folder, arcname=".")
        return packed.getvalue(), ""


def unpack(packed: bytes, folder: Path) -> None:
    """Replaces the folder by the content of the archive."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
