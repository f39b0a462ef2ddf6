"""The HTML page of an analysis: the summary, the figures and the first rows of all tables, in one file."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path

from experiments.analysis.plots import RUNS_MOST, DrawnFigure
from experiments.analysis.results import Result
from experiments.analysis.runs import RunFolder
from experiments.analysis.tables import RESULTS

ROWS_SHOWN = 30

CSS = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff; margin: 0 auto; max-width: 70rem;
  padding: 1rem; }
h1 { font-size: 1.6rem; margin: .5rem 0; }
h2 { font-size: 1.2rem; margin: 2rem 0 .5rem; }
p { margin: .3rem 0; }
.about { color: #555; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .6rem; border-bottom: 1px solid #ddd; text-align: right; white-space: nowrap; }
th { background: #f5f5f5; }
td.text, th.text { text-align: left; }
td.path { white-space: normal; min-width: 20rem; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 30rem), 1fr)); gap: 1rem; }
figure { margin: 0; }
figure img { width: 100%; height: auto; }
figcaption { font-weight: 600; }
details { border-bottom: 1px solid #ddd; padding: .4rem 0; }
summary { cursor: pointer; }
@media print { details { break-inside: avoid; } figure { break-inside: avoid; } body { max-width: none; } }
"""

TABLES_HEAD = (
    "<h2>Tables</h2><p class='about'>All rows are in the files of the folder <code>tables</code> beside this page, "
    "as CSV and Parquet.</p>"
)


def page(
    folders: Sequence[RunFolder],
    results: Mapping[str, Result],
    figures: Sequence[DrawnFigure],
    spark_version: str,
) -> str:
    title = f"Analysis of {len(folders)} run{'s' * (len(folders) != 1)}"
    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    parts = [
        f"<h1>{title}</h1><p class='about'>Made {made} with Spark {escape(spark_version)}.</p>",
        _runs(folders),
        _summary(results["summary"], folders),
        *(_comparison(folders[0].label, folder.label, results["comparison"]) for folder in folders[1:]),
        _figures(figures, len(folders)),
        TABLES_HEAD,
        *(_table(name, results[name]) for name in RESULTS),
    ]
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{title}</title><link rel='icon' href='data:,'><style>{CSS}</style></head>"
        f"<body>{''.join(parts)}</body></html>\n"
    )


def _runs(folders: Sequence[RunFolder]) -> str:
    rows = [
        [folder.label, folder.scenario, folder.protocol, folder.code, "" if folder.seed is None else str(folder.seed)]
        for folder in folders
    ]
    return f"<h2>Runs</h2>{_grid(['run', 'scenario', 'protocol', 'code', 'seed'], rows, texts=4)}"


def _summary(summary: Result, folders: Sequence[RunFolder]) -> str:
    """The summary with numbers as rows and runs as columns, in the order of `folders`."""
    runs = summary.column("run")
    positions = [runs.index(folder.label) for folder in folders if folder.label in runs]
    rows = [
        [column_title(name), *(number_text(summary.column(name)[position]) for position in positions)]
        for name in summary.rows.column_names
        if name not in ("run", "protocol")
    ]
    return f"<h2>Summary</h2>{_grid(['', *(runs[position] for position in positions)], rows, texts=1)}"


def _comparison(first: str, second: str, result: Result) -> str:
    columns = ["", first, second, "difference", "ratio"]
    rows = [
        [column_title(row["figure"]), *(number_text(row[name]) for name in ("first", "second", "difference", "ratio"))]
        for row in result.of_run(second).rows.to_pylist()
    ]
    title = f"<b>{escape(second)}</b> against {escape(first)}"
    return f"<details><summary>{title}</summary>{_grid(columns, rows, texts=1)}</details>"


def _figures(figures: Sequence[DrawnFigure], runs: int) -> str:
    more = f"<p class='about'>The first {RUNS_MOST} runs are shown.</p>" if runs > RUNS_MOST else ""
    images = "".join(
        f"<figure><figcaption>{escape(figure.title)}</figcaption>"
        f"<img alt='{escape(figure.title)}' src='data:image/svg+xml;base64,{_base64(figure.svg)}'></figure>"
        for figure in figures
    )
    return f"<h2>Figures</h2>{more}<div class='figures'>{images}</div>"


def _base64(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def _table(name: str, result: Result) -> str:
    table = RESULTS[name]
    count = result.rows.num_rows
    shown = f"{count:,} row{'s' * (count != 1)}"
    if count > ROWS_SHOWN:
        shown += f", the first {ROWS_SHOWN} here"
    if result.is_cut:
        shown += "; there are more, which were left out of the files too"
    names = result.rows.column_names
    rows = [[number_text(value) for value in row.values()] for row in result.rows.slice(0, ROWS_SHOWN).to_pylist()]
    texts = sum(1 for field in result.rows.schema if str(field.type) == "string")
    grid = _grid([column_title(each) for each in names], rows, texts=texts if names[:1] == ["run"] else 0)
    return (
        f"<details><summary><b>{escape(table.title)}</b>: {escape(table.about)} "
        f"<span class='about'>{name}.csv, {shown}</span></summary>{grid if count else ''}</details>"
    )


def _grid(head: Sequence[str], rows: Sequence[Sequence[str]], texts: int) -> str:
    """An HTML table. The first `texts` columns are text, the others numbers. Paths of brokers get a wide column."""

    def cell(tag: str, position: int, value: str) -> str:
        kind = " class='path'" if " &gt; " in escape(value) else " class='text'" if position < texts else ""
        return f"<{tag}{kind}>{escape(value)}</{tag}>"

    lines = "".join(f"<tr>{''.join(cell('td', *each) for each in enumerate(row))}</tr>" for row in rows)
    top = "".join(cell("th", *each) for each in enumerate(head))
    return f"<div class='wide'><table><thead><tr>{top}</tr></thead><tbody>{lines}</tbody></table></div>"


def column_title(column: str) -> str:
    return column.replace("_", " ")


def number_text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
