"""[workload]: reads and checks the table, and computes the time of publishing."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

from experiments.errors import ScenarioError, WorkloadError
from experiments.scenario.arrival_times import nanoseconds
from experiments.scenario.model import WORKLOAD_KINDS, Scenario, WorkloadSetup
from experiments.scenario.table import Table, field_names

_COMMON = tuple(name for name in field_names(WorkloadSetup) if name != "parameters")
FILES = ("file", "times_file")


def read_workload(table: Table) -> WorkloadSetup:
    kind_name = table.values.get("kind", WorkloadSetup().kind)
    kinds = [kind_name] if isinstance(kind_name, str) and kind_name in WORKLOAD_KINDS else list(WORKLOAD_KINDS)
    table.check_keys((*_COMMON, *dict.fromkeys(name for kind in kinds for name in field_names(WORKLOAD_KINDS[kind]))))
    given = table.fields(WorkloadSetup, _COMMON)
    kind = given.get("kind", WorkloadSetup().kind)
    setup = WorkloadSetup(**given, parameters=_parameters(table, kind))
    for name in FILES:
        path = table.values.get(name)
        if isinstance(path, str) and path and not Path(path).is_file():
            raise table.refusal(name, f"is {path!r}, and there is no such file")
    _check_arrivals(setup, table)
    return setup


def _parameters(table: Table, kind: str) -> Any:
    parameters_type = WORKLOAD_KINDS[kind]
    values = table.fields(parameters_type, field_names(parameters_type))
    try:
        return parameters_type(**values)
    except WorkloadError as error:
        # Messages of parameters begin with the workload, a colon and the parameter.
        name, _, problem = str(error).removeprefix(f"{kind}: ").partition(" ")
        raise table.refusal(name, problem) from error


def _check_arrivals(setup: WorkloadSetup, table: Table) -> None:
    if (setup.arrivals == "file") != (setup.times_file is not None):
        problem = "is missing" if setup.times_file is None else "is given"
        raise table.refusal("times_file", f"{problem}, and arrivals is {setup.arrivals!r}; a file of times needs both")
    if setup.publications is not None and setup.duration_s is not None:
        raise table.refusal("publications", "excludes duration_s; give one of them")
    if setup.publications is None and setup.duration_s is None and setup.times_file is None:
        raise table.refusal("publications", "is missing; say how many there are, or for how long with duration_s")


def read_times(path: Path) -> list[float]:
    """Reads the times of a file, in seconds, ascending."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise ScenarioError(f"cannot read times from {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ScenarioError(f"{path} is not UTF-8 text: {error.reason}") from error
    times: list[float] = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            times.append(_time(line.strip(), f"{path}, line {number}"))
            if not times[-1] >= times[max(0, len(times) - 2)]:
                raise ScenarioError(f"{path}, line {number}: {line.strip()} is earlier than the time before it")
    if not times:
        raise ScenarioError(f"{path} has no times")
    return times


def _time(text: str, source: str) -> float:
    try:
        time = float(text)
    except ValueError:
        time = -1.0
    if not (math.isfinite(time) and time >= 0):
        raise ScenarioError(f"{source} is {text!r}; it must be a time in seconds, 0 or more")
    return time


def publishing_window_ns(scenario: Scenario) -> tuple[int, int]:
    """Start and end of publishing. The end is a mean if a given number of publications arrives at random times."""
    start = nanoseconds(scenario.run.settle_s)
    return start, start + nanoseconds(_duration_s(scenario.workload))


def _duration_s(setup: WorkloadSetup) -> float:
    if setup.times_file is not None:
        times = read_times(Path(setup.times_file))
        limited = times if setup.publications is None else times[: setup.publications]
        if setup.duration_s is not None:
            limited = list(itertools.takewhile(lambda time: time < (setup.duration_s or 0), limited))
        return limited[-1] if limited else 0.0
    if setup.duration_s is not None:
        return setup.duration_s
    assert setup.publications is not None
    return setup.publications * 60 / setup.rate
