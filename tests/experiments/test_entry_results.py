"""Proves that results read back as they were written, and that damaged ones are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.entry_results import provenance_of, read_result, write_rows
from experiments.errors import FigureError
from experiments.figures.entry import Row, Rows

ROWS = (
    Row("mean", "D-DBR", 100, 2.5),
    Row("mean", "D-DBR", 0.5, 1_234_567.0),
    Row("mean", "MERC, clusters of 70", "whole system", None, 'FileExistsError: "a, b"'),
)


def written(folder: Path) -> None:
    write_rows(provenance_of("fig-0", "paper", 1, runs=3, failed=1, seconds=12.34), Rows(ROWS), folder)


def test_rows_and_provenance_read_back_as_they_were_written(tmp_path: Path) -> None:
    written(tmp_path)
    result = read_result("fig-0", tmp_path)
    assert result is not None
    assert [(row.measure, row.series, row.x, row.error) for row in result.rows.all] == [
        (row.measure, row.series, row.x, row.error) for row in ROWS
    ]
    assert [row.y for row in result.rows.all] == [2.5, pytest.approx(1_234_567, rel=1e-5), None]
    assert result.provenance.command == "mercast experiment run fig-0 --scale paper"
    assert result.provenance.versions["mercast"]


def test_what_was_not_run_has_no_result(tmp_path: Path) -> None:
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
    written(tmp_path)
    path = tmp_path / file
    path.unlink() if content is None else path.write_text(content)
    with pytest.raises(FigureError, match=message):
        read_result("fig-0", tmp_path)
