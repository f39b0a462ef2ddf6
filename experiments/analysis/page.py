"""The HTML page of an analysis: the summary, the figures and the first rows of all tables, in one file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from experiments.analysis.plots import RUNS_MOST, DrawnFigure
from experiments.analysis.results import Result
from experiments.analysis.runs import RunFolder
from experiments.analysis.tables import RESULTS, ResultTable
from experiments.html_pages import render, svg_address

ROWS_SHOWN = 30


@dataclass(frozen=True, slots=True)
class Grid:
    """The cells of a table on the page."""

    titles: Sequence[str]
    rows: Sequence[Sequence[str]]
    texts: int
    """The number of columns on the left that are text. The others are numbers."""


@dataclass(frozen=True, slots=True)
class ShownTable:
    """The first rows of a table of results."""

    name: str
    result: ResultTable
    shown: str
    """The number of rows in the file and on the page, in words."""
    grid: Grid


def page(
    folders: Sequence[RunFolder],
    results: Mapping[str, Result],
    figures: Sequence[DrawnFigure],
    spark_version: str,
) -> str:
    return render(
        "analysis.html",
        title=f"Analysis of {len(folders)} run{'s' * (len(folders) != 1)}",
        made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        spark_version=spark_version,
        runs=_runs(folders),
        summary=_summary(results["summary"], folders),
        comparisons=[_comparison(folders[0].label, folder.label, results["comparison"]) for folder in folders[1:]],
        figures=figures,
        svg_address=svg_address,
        has_all_runs=len(folders) <= RUNS_MOST,
        runs_most=RUNS_MOST,
        tables=[_table(name, results[name]) for name in RESULTS],
    )


def _runs(folders: Sequence[RunFolder]) -> Grid:
    rows = [
        [folder.label, folder.scenario, folder.protocol, folder.code, "" if folder.seed is None else str(folder.seed)]
        for folder in folders
    ]
    return Grid(["run", "scenario", "protocol", "code", "seed"], rows, texts=4)


def _summary(summary: Result, folders: Sequence[RunFolder]) -> Grid:
    """The summary with numbers as rows and runs as columns, in the order of `folders`."""
    runs = summary.column("run")
    positions = [runs.index(folder.label) for folder in folders if folder.label in runs]
    rows = [
        [column_title(name), *(number_text(summary.column(name)[position]) for position in positions)]
        for name in summary.rows.column_names
        if name not in ("run", "protocol")
    ]
    return Grid(["", *(runs[position] for position in positions)], rows, texts=1)


def _comparison(first: str, second: str, result: Result) -> Grid:
    rows = [
        [column_title(row["figure"]), *(number_text(row[name]) for name in ("first", "second", "difference", "ratio"))]
        for row in result.of_run(second).rows.to_pylist()
    ]
    return Grid(["", first, second, "difference", "ratio"], rows, texts=1)


def _table(name: str, result: Result) -> ShownTable:
    count = result.rows.num_rows
    shown = f"{count:,} row{'s' * (count != 1)}"
    if count > ROWS_SHOWN:
        shown += f", the first {ROWS_SHOWN} here"
    if result.is_cut:
        shown += "; there are more, which were left out of the files too"
    names = result.rows.column_names
    rows = [[number_text(value) for value in row.values()] for row in result.rows.slice(0, ROWS_SHOWN).to_pylist()]
    texts = sum(1 for field in result.rows.schema if str(field.type) == "string")
    grid = Grid([column_title(each) for each in names], rows, texts=texts if names[:1] == ["run"] else 0)
    return ShownTable(name, RESULTS[name], shown, grid)


def column_title(column: str) -> str:
    return column.replace("_", " ")


def number_text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
