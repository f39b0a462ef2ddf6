"""Proves that runs as tasks of Spark find what runs on this machine find, traces included."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.trace_files import iter_rows
from experiments.sweep import RunSpec, finished, perform, sweep
from experiments.sweep_spark import SparkTasks
from tests.programs import path_of


@pytest.mark.slow
def test_tasks_of_spark_find_what_this_process_finds(tmp_path: Path) -> None:
    path_of("java")
    counting = RunSpec(
        "count-lists",
        {"protocol": "d-dbr", "brokers": 20, "degree": 3, "interested": 0.5, "publications": 50, "seed": 1},
    )
    told = {"set.overlay.brokers": 3, "set.workload.publications": 5, "set.run.settle_s": 1}
    simulation = RunSpec("simulate", {"scenario": "line", "protocol": "d-dbr", "seed": 1, **told})
    broken = RunSpec("count-lists", {**counting.parameters, "interested": 2})
    with SparkTasks(tmp_path / "there", "local[2]") as tasks:
        steps = list(sweep([counting, simulation, broken], tmp_path / "there", tasks.submit))
    found = {step.spec.folder_name: step.outcome for step in steps}
    assert "40 interested brokers of 20" in found[broken.folder_name].error
    assert finished(broken, tmp_path / "there") is None
    for spec in (counting, simulation):
        here = perform(spec, tmp_path / "here" / spec.folder_name)
        assert found[spec.folder_name].numbers == here.numbers
        assert found[spec.folder_name].lists == here.lists
    folders = [Path(place) / simulation.folder_name for place in (tmp_path / "there", tmp_path / "here")]
    assert list(iter_rows(folders[0], "hops")) == list(iter_rows(folders[1], "hops"))
