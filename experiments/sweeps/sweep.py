"""Runs of experiments as data, and sweeps over them on this machine's processes.

A run's folder is named after a hash of its parameters, and for a simulation of the whole scenario that they resolve
to: what has been run is not run again, in whichever experiment it appears. A run that fails has an outcome too, its
error, and is tried again the next time.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from broker.trace.code_version import code_version

Value: TypeAlias = str | int | float
Kind: TypeAlias = Literal["simulate", "count-lists", "reorganise", "routing-memory"]
Submit: TypeAlias = Callable[["RunSpec"], "Future[RunOutcome]"]

OUTCOME = "outcome.json"


@dataclass(frozen=True, slots=True)
class RunSpec:
    """One run: what kind of work, and its parameters (for a simulation: scenario, protocol, seed and `set.` keys)."""

    kind: Kind
    parameters: Mapping[str, Value]

    @property
    def folder_name(self) -> str:
        from experiments.sweeps.run_kinds import identity_of

        told = json.dumps([self.kind, code_version().version, identity_of(self)], sort_keys=True)
        return f"{self.kind}-{hashlib.sha256(told.encode()).hexdigest()[:20]}"

    def __str__(self) -> str:
        return f"{self.kind} " + " ".join(f"{key}={value}" for key, value in self.parameters.items())


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """What came of a run: numbers by name, or the error that ended it."""

    numbers: Mapping[str, float] = field(default_factory=dict)
    lists: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    """Histograms and the like, and columns of analysed tables (see `experiments.figures.spark_columns`)."""
    error: str = ""
    seconds: float = 0.0
    """CPU time that it took on the machine that ran it."""
    folder: str = ""
    """Where its trace is, if it has one."""
    code: str = ""
    """Which code ran it; empty where that was not recorded."""


def perform(spec: RunSpec, folder: Path) -> RunOutcome:
    """Runs it now, into that folder. What was there before is gone."""
    from experiments.sweeps.run_kinds import KINDS

    shutil.rmtree(folder, ignore_errors=True)
    # CPU time: on a busy machine the clock would tell of others.
    start = time.process_time()
    numbers, lists = KINDS[spec.kind](spec.parameters, folder)
    seconds = round(time.process_time() - start, 2)
    outcome = RunOutcome(numbers, lists, seconds=seconds, folder=str(folder), code=str(code_version()))
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = folder / f".{OUTCOME}"
    document = {"spec": {"kind": spec.kind, **spec.parameters}, "numbers": numbers, "lists": lists}
    told = {**document, "seconds": outcome.seconds, "code": outcome.code}
    unfinished.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    unfinished.rename(folder / OUTCOME)
    return outcome


def finished(spec: RunSpec, runs: Path) -> RunOutcome | None:
    """The outcome of a run that is complete, or None."""
    path = runs / spec.folder_name / OUTCOME
    if not path.is_file():
        return None
    document = json.loads(path.read_text(encoding="utf-8"))
    lists = {name: tuple(values) for name, values in document["lists"].items()}
    code = document.get("code", "")
    return RunOutcome(document["numbers"], lists, seconds=document["seconds"], folder=str(path.parent), code=code)


@dataclass(frozen=True, slots=True)
class Step:
    """A run of a sweep is done."""

    spec: RunSpec
    outcome: RunOutcome
    is_new: bool


class LocalProcesses(AbstractContextManager["LocalProcesses"]):
    """Runs on this machine, each in one of so many processes."""

    def __init__(self, runs: Path, jobs: int) -> None:
        self._runs = runs
        # A fresh interpreter for each process: a forked one would share a Spark session's threads and sockets.
        self._executor: Executor = ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn"))

    def submit(self, spec: RunSpec) -> Future[RunOutcome]:
        return self._executor.submit(perform, spec, self._runs / spec.folder_name)

    def __exit__(self, *_: object) -> None:
        self._executor.shutdown(cancel_futures=True)


def sweep(specs: Sequence[RunSpec], runs: Path, submit: Submit, *, force: bool = False) -> Iterator[Step]:
    """All runs, each once however often it is asked for, those that were finished before first."""
    waiting: dict[Future[RunOutcome], RunSpec] = {}
    for name, spec in {spec.folder_name: spec for spec in specs}.items():
        before = None if force else finished(spec, runs)
        if before is not None:
            yield Step(spec, before, is_new=False)
        else:
            (runs / name).parent.mkdir(parents=True, exist_ok=True)
            waiting[submit(spec)] = spec
    for future in as_completed(waiting):
        error = future.exception()
        outcome = RunOutcome(error=in_words(error)) if error is not None else future.result()
        yield Step(waiting[future], outcome, is_new=True)


def in_words(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
