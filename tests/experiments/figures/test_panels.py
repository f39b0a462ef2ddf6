"""Proves that a series looks the same in all panels of a figure, and that plots are drawn again from their rows."""

from __future__ import annotations

import shutil
from pathlib import Path

from experiments.figures.figure import Row, Rows
from experiments.figures.panels import panel_paths, series_styles
from experiments.figures.registry import find
from experiments.figures.results import read_result
from experiments.plotting import PROTOCOL_COLOURS
from experiments.report.page import redraw_figures

RESULTS = Path(__file__).resolve().parents[3] / "experiments" / "results"


def test_variants_of_a_protocol_have_its_colour_and_other_dashes() -> None:
    figure = find("fig-10.1.8")
    measure = figure.panels[0].measure
    names = ("FBR, uniform", "D-DBR, uniform", "FBR, Zipf", "D-DBR, Zipf")
    styles = series_styles(figure, Rows([Row(measure, name, 0, 1.0) for name in names]))
    assert [styles[name].colour for name in names] == [PROTOCOL_COLOURS["FBR"], PROTOCOL_COLOURS["D-DBR"]] * 2
    assert len({styles[name] for name in names}) == len(names)
    assert styles["FBR, uniform"].dash != styles["FBR, Zipf"].dash


def test_more_variants_than_dashes_have_colours_of_their_own() -> None:
    figure = find("fig-10.1.16")
    names = [f"D-DBR, {share}% interested" for share in range(10, 60, 10)]
    styles = series_styles(figure, Rows([Row(figure.panels[0].measure, name, 0, 1.0) for name in names]))
    assert len({style.colour for style in styles.values()}) == len(names)


def test_figures_are_drawn_again_and_rows_stay_as_they_are(tmp_path: Path) -> None:
    figure = find("fig-10.1.20")
    for kind in ("json", "csv"):
        shutil.copy(RESULTS / f"{figure.name}.{kind}", tmp_path)
    before = read_result(figure.name, tmp_path)
    redraw_figures(tmp_path)
    assert all(path.is_file() for path in (tmp_path / f"{figure.name}.png", *panel_paths(figure, tmp_path)))
    after = read_result(figure.name, tmp_path)
    assert before is not None
    assert after is not None
    assert (after.provenance, after.rows.all) == (before.provenance, before.rows.all)
