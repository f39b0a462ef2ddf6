"""Proves that results read back as they were written, and that errors name damaged results."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from broker.trace.code_version import code_version
from experiments.errors import FigureError
from experiments.figures.figure import Row, Rows
from experiments.figures.results import NOT_RECORDED, provenance_of, read_result, write_rows
from experiments.sweeps.sweep import RunOutcome

ROWS = (
    Row("mean", "D-DBR", 100, 2.5),
    Row("mean", "D-DBR", 0.5, 1_234_567.0),
    Row("mean", "MERC, clusters of 70", "whole system", None, 'FileExistsError: "a, b"'),
)
OUTCOMES = (
    RunOutcome(seconds=12.04, code="mercast 0, commit abc"),
    RunOutcome(seconds=0.3, code="mercast 0, commit abc"),
    RunOutcome(error="FileExistsError"),
)


def write_example(folder: Path) -> None:
    write_rows(provenance_of("fig-0", "paper", 1, OUTCOMES), Rows(ROWS), folder)


def test_rows_and_provenance_read_back_as_they_were_written(tmp_path: Path) -> None:
    write_example(tmp_path)
    result = read_result("fig-0", tmp_path)
    assert result is not None
    assert [(row.measure, row.series, row.x, row.error) for row in result.rows.all] == [
        (row.measure, row.series, row.x, row.error) for row in ROWS
    ]
    assert [row.y for row in result.rows.all] == [2.5, pytest.approx(1_234_567, rel=1e-5), None]
    assert result.provenance.command == "mercast experiment run fig-0 --scale paper"
    assert result.provenance.versions["mercast"]
    assert (result.provenance.runs, result.provenance.failed, result.provenance.seconds) == (3, 1, 12.3)
    assert result.provenance.code == ("mercast 0, commit abc", str(code_version()))


def test_results_and_runs_without_a_code_version_are_still_read(tmp_path: Path) -> None:
    assert provenance_of("fig-0", "quick", 1, [RunOutcome()]).code == (NOT_RECORDED, str(code_version()))
    write_example(tmp_path)
    content = json.loads((tmp_path / "fig-0.json").read_text())
    del content["code"]
    (tmp_path / "fig-0.json").write_text(json.dumps(content))
    result = read_result("fig-0", tmp_path)
    assert result is not None
    assert result.provenance.code == ()


def test_a_figure_that_was_not_run_has_no_result(tmp_path: Path) -> None:
    assert read_result("fig-0", tmp_path) is None


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("fig-0.csv", None, "fig-0.csv is missing"),
        ("fig-0.csv", "entry,scale\nfig-0,paper\n", "damaged"),
        ("fig-0.json", "{}", "damaged"),
        ("fig-0.json", "not json", "damaged"),
    ],
)
def test_damaged_results_are_named(tmp_path: Path, file: str, content: str | None, message: str) -> None:
    write_example(tmp_path)
    path = tmp_path / file
    path.unlink() if content is None else path.write_text(content)
    with pytest.raises(FigureError, match=message):
        read_result("fig-0", tmp_path)
