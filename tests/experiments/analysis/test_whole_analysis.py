"""Proves on real runs that Spark's results equal the simulation's own counts, and those of DuckDB on the same files."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from experiments import analysis
from experiments.analysis.duckdb_tables import QUERIES, DuckDB
from tests.experiments.analysis.conftest import no_progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from experiments.analysis.analyse import Analysis
    from experiments.analysis.runs import Runs

LABELS = ["line/d-dbr", "line/fbr", "line/merc", "lossy"]

OWN_FIGURES = {
    # The names of the run and of its settings.
    *("scenario", "protocol", "seed", "matcher", "digest"),
    # Figures that are not in the trace. `messages` also counts frames that a trace does not record.
    *("refused", "withdrawn", "lost_with_broker", "dropped", "is_weak", "held", "unsettled"),
    *("duplicate_advertisements", "messages"),
    # A table of its own in the analysis.
    "drops",
}
"""The fields of a run's own summary that the summary of the analysis does not have, or has with another meaning."""


@pytest.fixture(scope="session")
def analysed(spark: SparkSession, runs: Runs, tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    from experiments.analysis.analyse import analyse

    return analyse(spark, runs.folders, tmp_path_factory.mktemp("analysis"), no_progress)


def test_runs_are_found_below_a_folder_and_named_by_their_place(runs: Runs) -> None:
    assert [folder.label for folder in runs.folders] == LABELS
    assert [folder.protocol for folder in runs.folders] == ["d-dbr", "fbr", "merc", "d-dbr"]


def test_the_summary_equals_the_counts_of_each_run(analysed: Analysis, folder_of_runs: Path) -> None:
    rows = {row["run"]: row for row in analysed.results["summary"].rows.to_pylist()}
    assert sorted(rows) == LABELS
    for label, row in rows.items():
        counted = json.loads((folder_of_runs / label / "summary.json").read_text())
        shared = counted.keys() - OWN_FIGURES
        assert {name: row[name] for name in shared} == {name: pytest.approx(counted[name]) for name in shared}, label
        drops: Counter[str] = Counter()
        for drop in analysed.results["drops"].of_run(label).rows.to_pylist():
            drops[drop["reason"]] += drop["drops"]
        assert drops == counted["drops"], label
    assert rows["lossy"]["delivered_of_expected"] < 1 == rows["lossy"]["delivered_of_owed"]


@pytest.mark.parametrize("table", QUERIES)
@pytest.mark.parametrize("label", ["line/merc", "lossy"])
def test_duckdb_finds_the_same_in_the_same_files(
    analysed: Analysis, folder_of_runs: Path, label: str, table: str
) -> None:
    ours = [drop_run(row) for row in analysed.results[table].of_run(label).rows.to_pylist()]
    duckdb = DuckDB(folder_of_runs / label, threads=1, memory="512MB")
    theirs = duckdb.rows(table)
    duckdb.close()
    assert len(ours) > 0
    keys = [name for name, value in ours[0].items() if isinstance(value, str) or name == "destinations"]
    in_order = [sorted(rows, key=lambda row: [row[key] for key in keys]) for rows in (ours, theirs)]
    for our_row, their_row in zip(*in_order, strict=True):
        assert our_row == {
            name: pytest.approx(value, nan_ok=True) if isinstance(value, float) else value
            for name, value in their_row.items()
        }


def drop_run(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in ("run", "protocol")}


def test_every_table_is_written_twice_with_the_same_rows(analysed: Analysis) -> None:
    import pyarrow.csv
    import pyarrow.parquet

    for name, result in analysed.results.items():
        stored = pyarrow.parquet.read_table(analysed.page.parent / "tables" / f"{name}.parquet")
        text = pyarrow.csv.read_csv(analysed.page.parent / "tables" / f"{name}.csv")
        assert stored.equals(result.rows), name
        assert (text.num_rows, text.column_names) == (stored.num_rows, stored.column_names), name


def test_figures_are_there_as_png_and_svg(analysed: Analysis) -> None:
    assert len(analysed.figures) == 11
    for figure in analysed.figures:
        assert figure.png.read_bytes().startswith(b"\x89PNG")
        assert "<svg" in figure.svg.read_text()[:500]


def test_the_page_needs_no_other_file(analysed: Analysis) -> None:
    html = analysed.page.read_text()
    assert html.count("data:image/svg+xml;base64,") == len(analysed.figures)
    assert "http" not in html.replace("http-equiv", "")
    assert 'src="figures' not in html
    assert "<script" not in html
    for label in LABELS:
        assert label in html


def test_one_run_alone_has_its_folders_name(spark: SparkSession, folder_of_runs: Path) -> None:
    runs = analysis.read_runs(spark, [folder_of_runs / "line" / "fbr"])
    assert [folder.label for folder in runs.folders] == ["fbr"]
    assert {row["run"] for row in runs.links.select("run").toArrow().to_pylist()} == {"fbr"}


def test_the_folders_of_a_deployments_brokers_are_one_run(
    spark: SparkSession, folder_of_runs: Path, tmp_path: Path
) -> None:
    for broker, run in (("b1-1", "lossy"), ("b2-1", "line/merc")):
        shutil.copytree(folder_of_runs / run / "trace", tmp_path / "live" / broker / "trace")
        provenance = {"broker": broker[:2], "incarnation": 1, "overlay": "demo", "version": "0"}
        (tmp_path / "live" / broker / "provenance.json").write_text(json.dumps(provenance))
    runs = analysis.read_runs(spark, [tmp_path])
    (folder,) = runs.folders
    assert (folder.label, folder.scenario, folder.protocol, len(folder.parts)) == ("live", "demo", "unknown", 2)
    both = analysis.read_runs(spark, [folder_of_runs / "lossy", folder_of_runs / "line" / "merc"])
    assert runs.deliveries.count() == both.deliveries.count() > 0
    assert {row["run"] for row in runs.deliveries.select("run").distinct().toArrow().to_pylist()} == {"live"}


def test_a_table_of_results_is_cut_before_it_fills_this_process(runs: Runs) -> None:
    from experiments.analysis.results import collect

    cut = collect("hops", runs.hops, ("sent_s",), most=10)
    assert (cut.rows.num_rows, cut.is_cut) == (10, True)
    assert not collect("links", runs.links, ("a",), most=1_000).is_cut
