"""Runs as data, and sweeps over them in processes of this machine.

A run's folder is named after a hash of its parameters; for a simulation, of the whole scenario that they resolve to.
So a finished run is not executed again, even for another figure. The outcome of a failed run is its error; the next
sweep executes it again.
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
"""The value of a parameter."""
Kind: TypeAlias = Literal["simulate", "count-lists", "reorganise", "routing-memory"]
Submit: TypeAlias = Callable[["RunSpec"], "Future[RunOutcome]"]
"""Starts a run and returns its future outcome."""

OUTCOME = "outcome.json"


@dataclass(frozen=True, slots=True)
class RunSpec:
    """One run: its kind and its parameters. Those of a simulation are scenario, protocol, seed and `set.` keys."""

    kind: Kind
    parameters: Mapping[str, Value]

    @property
    def folder_name(self) -> str:
        """The name of the run's folder. It is a digest of the kind, the code's version and the parameters."""
        from experiments.sweeps.run_kinds import identity_of

        identity = json.dumps([self.kind, code_version().version, identity_of(self)], sort_keys=True)
        return f"{self.kind}-{hashlib.sha256(identity.encode()).hexdigest()[:20]}"

    def __str__(self) -> str:
        return f"{self.kind} " + " ".join(f"{key}={value}" for key, value in self.parameters.items())


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """The outcome of a run: numbers by name, or the error that ended it."""

    numbers: Mapping[str, float] = field(default_factory=dict)
    lists: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    """Lists such as histograms, and columns of tables of the analysis (see `experiments.figures.spark_columns`)."""
    error: str = ""
    seconds: float = 0.0
    """CPU time on the machine that executed the run."""
    folder: str = ""
    """The run's folder. A simulation has its trace there."""
    code: str = ""
    """The version of the code that executed the run; empty if it was not recorded."""


def execute_run(spec: RunSpec, folder: Path) -> RunOutcome:
    """Executes the run and writes its outcome to the folder. Deletes the folder's earlier content."""
    from experiments.sweeps.run_kinds import KINDS

    shutil.rmtree(folder, ignore_errors=True)
    # CPU time: on a busy machine, wall-clock time would include the work of other processes.
    start = time.process_time()
    numbers, lists = KINDS[spec.kind](spec.parameters, folder)
    seconds = round(time.process_time() - start, 2)
    outcome = RunOutcome(numbers, lists, seconds=seconds, folder=str(folder), code=str(code_version()))
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = folder / f".{OUTCOME}"
    found = {"spec": {"kind": spec.kind, **spec.parameters}, "numbers": numbers, "lists": lists}
    document = {**found, "seconds": outcome.seconds, "code": outcome.code}
    unfinished.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    unfinished.rename(folder / OUTCOME)
    return outcome


def read_outcome(spec: RunSpec, runs: Path) -> RunOutcome | None:
    """The outcome of a finished run, or None if the run is not finished."""
    path = runs / spec.folder_name / OUTCOME
    if not path.is_file():
        return None
    document = json.loads(path.read_text(encoding="utf-8"))
    lists = {name: tuple(values) for name, values in document["lists"].items()}
    code = document.get("code", "")
    return RunOutcome(document["numbers"], lists, seconds=document["seconds"], folder=str(path.parent), code=code)


@dataclass(frozen=True, slots=True)
class CompletedRun:
    """A completed run of a sweep."""

    spec: RunSpec
    outcome: RunOutcome
    is_new: bool


class LocalProcesses(AbstractContextManager["LocalProcesses"]):
    """Executes runs in processes of this machine, `jobs` at a time."""

    def __init__(self, runs: Path, jobs: int) -> None:
        self._runs = runs
        # Each process starts a new interpreter: a forked one would share a Spark session's threads and sockets.
        self._executor: Executor = ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn"))

    def submit(self, spec: RunSpec) -> Future[RunOutcome]:
        return self._executor.submit(execute_run, spec, self._runs / spec.folder_name)

    def __exit__(self, *_: object) -> None:
        self._executor.shutdown(cancel_futures=True)


def sweep(specs: Sequence[RunSpec], runs: Path, submit: Submit, *, force: bool = False) -> Iterator[CompletedRun]:
    """Executes the runs, each once even if it is given several times. Yields runs that were finished before first."""
    submitted: dict[Future[RunOutcome], RunSpec] = {}
    for name, spec in {spec.folder_name: spec for spec in specs}.items():
        before = None if force else read_outcome(spec, runs)
        if before is not None:
            yield CompletedRun(spec, before, is_new=False)
        else:
            (runs / name).parent.mkdir(parents=True, exist_ok=True)
            submitted[submit(spec)] = spec
    for future in as_completed(submitted):
        error = future.exception()
        outcome = RunOutcome(error=error_text(error)) if error is not None else future.result()
        yield CompletedRun(submitted[future], outcome, is_new=True)


def error_text(error: BaseException) -> str:
    """The type of the error and the first line of its message."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
