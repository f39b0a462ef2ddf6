"""Proves that a task of a sweep returns the run's folder, or the error of a failed run."""

from __future__ import annotations

from pathlib import Path

from experiments.sweeps.spark import execute_and_pack, unpack
from experiments.sweeps.sweep import RunSpec, execute_run, read_outcome

COUNTING = RunSpec(
    "count-lists",
    {"protocol": "d-dbr", "brokers": 20, "degree": 3, "interested": 0.5, "publications": 50, "seed": 1},
)


def test_a_run_that_fails_is_an_answer_and_not_a_failed_task() -> None:
    packed, error = execute_and_pack(RunSpec("count-lists", {**COUNTING.parameters, "interested": 2}))
    assert (packed, error) == (b"", "CountingError: 40 interested brokers of 20; it must be 1 to 20")


def test_a_returned_folder_replaces_the_earlier_one(tmp_path: Path) -> None:
    packed, error = execute_and_pack(COUNTING)
    assert error == ""
    folder = tmp_path / COUNTING.folder_name
    folder.mkdir()
    (folder / "old").write_text("of a run before")
    unpack(packed, folder)
    assert sorted(path.name for path in folder.iterdir()) == ["outcome.json"]
    there = read_outcome(COUNTING, tmp_path)
    assert there is not None
    here = execute_run(COUNTING, tmp_path / "here")
    assert (there.numbers, there.lists, there.code) == (here.numbers, here.lists, here.code)
