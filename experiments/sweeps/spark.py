"""Sweeps as tasks of a Spark cluster: the same runs with the same outcomes, somewhere else.

Each run is a job of one task. The task runs it in a folder of its own machine and sends that folder back, so cluster
and driver need no common file system; workers need this version of mercast in their Python.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
import tarfile
import tempfile
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.sweeps.sweep import RunOutcome, RunSpec, finished, in_words, perform

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


MEMORY = "512m"
"""Of Java on each worker, which only passes folders on: a run's own memory is its Python's."""
WAITING = 64
"""Runs that are given to the cluster at a time; it does as many of them at once as it has cores."""


class SparkTasks(AbstractContextManager["SparkTasks"]):
    """Runs as tasks of a cluster, or of Spark on this machine."""

    def __init__(self, runs: Path, master: str) -> None:
        from experiments import analysis

        self._runs = runs
        self._session: SparkSession = analysis.session(master, memory=MEMORY, is_short=True)
        # Without this a task takes whichever Python is first on the worker's path.
        self._session.sparkContext.pythonExec = os.environ.get("PYSPARK_PYTHON", sys.executable)
        self._threads = ThreadPoolExecutor(WAITING)

    def submit(self, spec: RunSpec) -> Future[RunOutcome]:
        return self._threads.submit(self._run, spec)

    def __exit__(self, *_: object) -> None:
        self._threads.shutdown(cancel_futures=True)
        self._session.stop()

    def _run(self, spec: RunSpec) -> RunOutcome:
        ((packed, error),) = self._session.sparkContext.parallelize([spec], 1).map(performed_and_packed).collect()
        if error:
            return RunOutcome(error=error)
        folder = self._runs / spec.folder_name
        unpack(packed, folder)
        outcome = finished(spec, self._runs)
        assert outcome is not None, f"{folder} came back without an outcome"
        return replace(outcome, folder=str(folder))


def performed_and_packed(spec: RunSpec) -> tuple[bytes, str]:
    """What a task does. A run that fails is an answer too: the cluster would try a failed task again."""
    with tempfile.TemporaryDirectory() as place, ThreadPoolExecutor(1) as one:
        folder = Path(place) / spec.folder_name
        error = one.submit(perform, spec, folder).exception()
        if error is not None:
            return b"", in_words(error)
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            archive.add(folder, arcname=".")
        return packed.getvalue(), ""


def unpack(packed: bytes, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
