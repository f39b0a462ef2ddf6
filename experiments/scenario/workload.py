"""[workload]: reads and checks the table, and computes the time of publishing."""

from __future__ import annotations

import itertools
import math
import os.path
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import asdict

from experiments.errors import ScenarioError, WorkloadError
from experiments.scenario.arrival_times import nanoseconds
from experiments.scenario.model import WORKLOAD_KINDS, Scenario, WorkloadKeys, WorkloadParameters, WorkloadSetup
from topologies.files.typed_tables import TableReader, key_names, read_text

FILES = ("file", "times_file")


def read_workload(table: Mapping[str, Any], reader: TableReader) -> WorkloadSetup:
    kind = table.get("kind", WorkloadSetup().kind)
    kinds = [kind] if isinstance(kind, str) and kind in WORKLOAD_KINDS else list(WORKLOAD_KINDS)
    names = dict.fromkeys(name for each in kinds for name in key_names(WORKLOAD_KINDS[each]))
    common = reader.read(WorkloadKeys, table, "workload", others=names)
    own = {name: value for name, value in table.items() if name in names}
    setup = WorkloadSetup(**asdict(common), parameters=_parameters(own, common.kind, reader))
    for name in FILES:
        if isinstance(path := table.get(name), str) and path:
            check_is_file(path, f"workload.{name}", reader)
    _check_arrivals(setup, reader)
    return setup


def check_is_file(path: str, key: str, reader: TableReader) -> None:
    # Path.is_file raises an error for a name that is too long.
    if not os.path.isfile(path):  # noqa: PTH113
        raise reader.refusal(key, f"is {path!r}, and there is no such file")


def _parameters(table: Mapping[str, Any], kind: str, reader: TableReader) -> WorkloadParameters:
    try:
        return reader.read(WORKLOAD_KINDS[kind], table, "workload")
    except WorkloadError as error:
        # Messages of parameters begin with the workload, a colon and the parameter.
        name, _, problem = str(error).removeprefix(f"{kind}: ").partition(" ")
        raise reader.refusal(f"workload.{name}", problem) from error


def _check_arrivals(setup: WorkloadSetup, reader: TableReader) -> None:
    if (setup.arrivals == "file") != (setup.times_file is not None):
        problem = "is missing" if setup.times_file is None else "is given"
        raise reader.refusal(
            "workload.times_file", f"{problem}, and arrivals is {setup.arrivals!r}; a file of times needs both"
        )
    if setup.publications is not None and setup.duration_s is not None:
        raise reader.refusal("workload.publications", "excludes duration_s; give one of them")
    if setup.publications is None and setup.duration_s is None and setup.times_file is None:
        raise reader.refusal(
            "workload.publications", "is missing; say how many there are, or for how long with duration_s"
        )


def read_times(path: Path) -> list[float]:
    """Reads the times of a file, in seconds, ascending."""
    lines = read_text(path, "file of times", ScenarioError).splitlines()
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
