"""Proves that every figure runs at quick scale: rows for each panel, no failed run, plots.

A figure whose runs all fail shows their errors.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.figures.figure import Scale, verdicts
from experiments.figures.panels import panel_paths
from experiments.figures.registry import find, names
from experiments.figures.results import read_result
from experiments.figures.run_figure import RunOutcomes, evaluate_runs, run_points
from experiments.sweeps.sweep import LocalProcesses, RunOutcome
from tests.harness.programs import path_of

NOT_IN_SMALL = {"fig-10.1.8"}
"""The paper's difference between uniform and Zipf subscriptions is not visible in our workload, at any scale."""


def _ignore_progress(what: str, done: int, total: int) -> None:
    pass


@pytest.mark.slow
@pytest.mark.parametrize("name", names())
def test_a_figure_runs_at_quick_scale(name: str, quick_runs: Path) -> None:
    figure = find(name)
    if figure.tables:
        path_of("java")
    with LocalProcesses(quick_runs / "runs", 2) as workers:
        ran = run_points(figure, "quick", runs=quick_runs / "runs", submit=workers.submit, progress=_ignore_progress)
    done = evaluate_runs(figure, "quick", ran, quick_runs / "results")
    assert done.rows.errors == ()
    assert done.provenance.failed == 0
    for panel in figure.panels:
        assert done.rows.series(panel.measure), f"no row for the panel {panel.title!r}"
    assert all(verdict.agrees is not None for verdict in done.verdicts if verdict.paper == "holds")
    if name not in NOT_IN_SMALL:
        assert [verdict.what for verdict in done.verdicts if verdict.agrees is False] == []
    assert (quick_runs / "results" / f"{name}.png").stat().st_size > 5_000
    for path in panel_paths(figure, quick_runs / "results"):
        assert path.read_text().startswith("<?xml")
    read = read_result(name, quick_runs / "results")
    assert read is not None
    assert read.provenance == done.provenance
    assert [v.agrees for v in verdicts(figure, read.rows, "quick")] == [v.agrees for v in done.verdicts]


@pytest.mark.parametrize("scale", ["quick", "paper"])
@pytest.mark.parametrize("name", ["fig-10.1.4", "fig-10.1.9", "fig-10.1.17"])
def test_a_figure_whose_runs_all_failed_shows_their_errors(name: str, scale: Scale, tmp_path: Path) -> None:
    figure = find(name)
    points = tuple(figure.points(scale))
    failed = RunOutcome(error="the machine has no memory left")
    done = evaluate_runs(
        figure, scale, RunOutcomes(points, {point.spec.folder_name: failed for point in points}, 0), tmp_path
    )
    assert {row.error for row in done.rows.errors} == {failed.error}
    assert all(not verdict.agrees for verdict in done.verdicts)
    assert all(path.is_file() for path in panel_paths(figure, tmp_path))
