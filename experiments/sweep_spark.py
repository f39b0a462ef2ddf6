"""Sweeps as tasks of a Spark cluster: the same runs with the same outcomes, somewhere else.

Each run is a job of one task. The task runs it in a folder of its own machine and sends that folder back, so cluster
and driver need no common file system; workers need this version of mercast in their Python.
"""

from __future__ import annotations

import io
import tarfile
import tempfile
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.sweep import RunOutcome, RunSpec, finished, perform

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SparkTasks(AbstractContextManager["SparkTasks"]):
    """Runs as tasks, as many at a time as the cluster has cores."""

    def __init__(self, runs: Path, master: str) -> None:
        from experiments import analysis

        self._runs = runs
        self._session: SparkSession = analysis.session(master)
        self._threads = ThreadPoolExecutor(max(1, self._session.sparkContext.defaultParallelism))

    def submit(self, spec: RunSpec) -> Future[RunOutcome]:
        return self._threads.submit(self._run, spec)

    def __exit__(self, *_: object) -> None:
        self._threads.shutdown(cancel_futures=True)
        self._session.stop()

    def _run(self, spec: RunSpec) -> RunOutcome:
        (packed,) = self._session.sparkContext.parallelize([spec], 1).map(performed_and_packed).collect()
        folder = self._runs / spec.folder_name
        _unpack(packed, folder)
        outcome = finished(spec, self._runs)
        assert outcome is not None, f"{folder} came back without an outcome"
        return replace(outcome, folder=str(folder))


def performed_and_packed(spec: RunSpec) -> bytes:
    """What a task does."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / spec.folder_name
        perform(spec, folder)
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            archive.add(folder, arcname=".")
        return packed.getvalue()


def _unpack(packed: bytes, folder: Path) -> None:
    import shutil

    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
