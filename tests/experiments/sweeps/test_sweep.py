"""Proves that finished runs are not repeated, that failures are outcomes, and that processes change no outcome."""

from __future__ import annotations

import dataclasses
import json
from concurrent.futures import Future
from pathlib import Path

import pytest

from experiments.sweeps.sweep import (
    OUTCOME,
    LocalProcesses,
    RunOutcome,
    RunSpec,
    Value,
    execute_run,
    read_outcome,
    sweep,
)


def counting(seed: int, brokers: int = 20) -> RunSpec:
    overlay: dict[str, Value] = {"protocol": "d-dbr", "brokers": brokers, "degree": 3, "seed": seed}
    return RunSpec("count-lists", {**overlay, "interested": 0.5, "publications": 50})


def simulation(**settings: str | int | float) -> RunSpec:
    overrides = {"overlay.brokers": 2, "workload.publications": 5, "run.settle_s": 1, **settings}
    parameters = {f"set.{key}": value for key, value in overrides.items()}
    return RunSpec("simulate", {"scenario": "line", "protocol": "d-dbr", "seed": 1, **parameters})


class _Here:
    """Executes runs at once in this process, and records them."""

    def __init__(self, runs: Path) -> None:
        self.executed: list[RunSpec] = []
        self._runs = runs

    def submit(self, spec: RunSpec) -> Future[RunOutcome]:
        self.executed.append(spec)
        future: Future[RunOutcome] = Future()
        future.set_result(execute_run(spec, self._runs / spec.folder_name))
        return future


def test_a_finished_run_is_not_run_again(tmp_path: Path) -> None:
    here = _Here(tmp_path)
    first = list(sweep([counting(1), counting(2)], tmp_path, here.submit))
    again = list(sweep([counting(1), counting(2), counting(3)], tmp_path, here.submit))
    assert [step.is_new for step in first] == [True, True]
    assert here.executed == [counting(1), counting(2), counting(3)]
    found = {step.spec.folder_name: step.outcome for step in first}
    assert [step.outcome for step in again[:2]] == [found[counting(seed).folder_name] for seed in (1, 2)]
    assert [step.is_new for step in again] == [False, False, True]


def test_force_repeats_finished_runs(tmp_path: Path) -> None:
    here = _Here(tmp_path)
    list(sweep([counting(1)], tmp_path, here.submit))
    list(sweep([counting(1)], tmp_path, here.submit, force=True))
    assert here.executed == [counting(1), counting(1)]


def test_a_run_requested_twice_is_run_once(tmp_path: Path) -> None:
    here = _Here(tmp_path)
    assert len(list(sweep([counting(1), counting(1)], tmp_path, here.submit))) == 1
    assert here.executed == [counting(1)]


def test_an_unfinished_run_is_run_again(tmp_path: Path) -> None:
    here = _Here(tmp_path)
    list(sweep([counting(1)], tmp_path, here.submit))
    (tmp_path / counting(1).folder_name / OUTCOME).unlink()
    assert [step.is_new for step in sweep([counting(1)], tmp_path, here.submit)] == [True]


def test_the_folder_is_named_after_all_that_the_result_depends_on() -> None:
    assert counting(1).folder_name == counting(1).folder_name
    names = {
        counting(1).folder_name,
        counting(2).folder_name,
        counting(1, brokers=21).folder_name,
        simulation().folder_name,
        simulation(**{"workload.rate": 100}).folder_name,
    }
    assert len(names) == 5


def test_a_setting_that_changes_nothing_is_the_same_run() -> None:
    """The default rate of the scenario `line` is 3,000."""
    assert simulation(**{"workload.rate": 3000}).folder_name == simulation().folder_name


def test_the_outcome_of_a_run_is_kept_in_its_folder(tmp_path: Path) -> None:
    spec = counting(1)
    outcome = execute_run(spec, tmp_path / spec.folder_name)
    assert read_outcome(spec, tmp_path) == outcome
    document = json.loads((tmp_path / spec.folder_name / OUTCOME).read_text())
    assert document["spec"] == {"kind": "count-lists", **spec.parameters}


def test_a_simulation_keeps_its_trace_and_its_numbers(tmp_path: Path) -> None:
    spec = simulation()
    outcome = execute_run(spec, tmp_path / spec.folder_name)
    assert (Path(outcome.folder) / "trace" / "hops").is_dir()
    assert outcome.numbers["published"] == 5
    assert outcome.numbers["missed"] == 0
    assert outcome.numbers["messages.Publish"] > 0


@pytest.mark.slow
def test_processes_find_the_same_as_this_process_and_a_failure_is_an_outcome(tmp_path: Path) -> None:
    wrong = RunSpec("simulate", {"scenario": "line", "protocol": "d-dbr", "seed": 1, "set.overlay.brokers": 3})
    broken = dataclasses.replace(counting(1), parameters={**counting(1).parameters, "interested": 2})
    specs = [counting(1), broken, counting(2), simulation(), wrong]
    with LocalProcesses(tmp_path / "apart", 2) as workers:
        # A file is in the place of the run's folder, so the run fails before it simulates.
        (tmp_path / "apart").mkdir()
        obstacle = tmp_path / "apart" / f".{wrong.folder_name}.unfinished"
        obstacle.write_text("no folder")
        found = {step.spec.folder_name: step.outcome for step in sweep(specs, tmp_path / "apart", workers.submit)}
    assert found[broken.folder_name].error == "CountingError: 40 interested brokers of 20; it must be 1 to 20"
    assert found[wrong.folder_name].error == f"OutputError: cannot write to {obstacle}: File exists"
    assert read_outcome(broken, tmp_path / "apart") is None
    for spec in (counting(1), counting(2), simulation()):
        here = execute_run(spec, tmp_path / "here" / spec.folder_name)
        assert found[spec.folder_name].numbers == here.numbers
        assert found[spec.folder_name].lists == here.lists
