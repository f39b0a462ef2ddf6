"""Proves what `mercast experiment` prints, writes and refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from experiments.figures.registry import names

ROOT = Path(__file__).resolve().parents[3]


def mercast(*words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mercast", "experiment", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == code, done.stderr
    return done


def test_the_list_has_every_figure_with_claim_and_minutes() -> None:
    shown = json.loads(mercast("list", "--json").stdout)
    assert [figure["entry"] for figure in shown] == list(names())
    assert all(figure["claim"] and set(figure["minutes"]) == {"quick", "paper"} for figure in shown)


@pytest.mark.slow
def test_a_run_writes_rows_figures_and_provenance_and_is_not_repeated(tmp_path: Path) -> None:
    words = ("run", "text-1.3", "--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "out"))
    planned = mercast(*words, "--dry-run").stdout.splitlines()
    assert planned[0].startswith("text-1.3: 2 runs, 0 finished")
    assert not (tmp_path / "runs").exists()
    (shown,) = json.loads(mercast(*words, "--json").stdout)
    assert shown["provenance"]["failed"] == 0
    assert shown["provenance"]["scale"] == "quick"
    assert {row["measure"] for row in shown["rows"]} == {"mean", "list sizes"}
    found = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert found == [f"text-1.3{end}" for end in ("-1.svg", "-2.svg", ".csv", ".json", ".png")]
    again = mercast(*words, "--dry-run").stdout.splitlines()
    assert again[0].startswith("text-1.3: 2 runs, 2 finished")
    assert mercast(*words, "--dry-run", "--force").stdout.startswith("text-1.3: 2 runs, 0 finished")
    page = tmp_path / "page.html"
    assert (
        "1 experiments on file://" in mercast("report", "--results", str(tmp_path / "out"), "--out", str(page)).stdout
    )
    assert page.read_text().count("Not run yet") == len(names()) - 1


def test_an_unknown_figure_is_refused() -> None:
    assert "no experiment is called 'fig-9'" in mercast("run", "fig-9", code=2).stderr


@pytest.mark.parametrize("words", [("--jobs", "0"), ("--jobs", "2", "--master", "local[2]")])
def test_jobs_and_master_exclude_each_other(words: tuple[str, ...]) -> None:
    assert "--jobs" in mercast("run", "text-1.3", *words, code=2).stderr


def test_a_report_of_nothing_is_refused(tmp_path: Path) -> None:
    assert "has no results" in mercast("report", "--results", str(tmp_path), code=2).stderr
    assert "is not a folder" in mercast("report", "--results", str(tmp_path / "none"), code=2).stderr
