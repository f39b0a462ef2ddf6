"""The report: for each figure the paper's claim, our plots, both numbers and a verdict.

The page embeds its plots and its style and has no script. Figures that have not been run have a section that says so.
"""

from __future__ import annotations

import base64
from collections import Counter
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.errors import FigureError
from experiments.figures.figure import TOLERANCE, Figure, Verdict, overall, verdicts
from experiments.figures.plotting import draw, panel_paths
from experiments.figures.registry import find, names
from experiments.figures.results import NOT_RECORDED, FigureResult, read_result
from experiments.workloads.stock_quotes import StockQuotes

if TYPE_CHECKING:
    from experiments.figures.run_figure import FigureRun

NOT_RUN = "not run"
TONES = {
    "agrees": "good",
    "agrees in shape": "part",
    "agrees in part": "part",
    "differs": "bad",
    "not comparable": "none",
    NOT_RUN: "none",
}


def write_page(results: Path, out: Path) -> int:
    """Writes the page of the results in that folder. Returns the number of figures with results."""
    if not results.is_dir():
        raise FigureError(f"{results} is not a folder with results; mercast experiment run makes one")
    figures = [find(name) for name in names()]
    found = {figure.name: read_result(figure.name, results) for figure in figures}
    shown = [result for result in found.values() if result is not None]
    if not shown:
        raise FigureError(f"{results} has no results of any experiment; mercast experiment run all --out {results}")
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(page(figures, found, results), encoding="utf-8")
    return len(shown)


def redraw_figures(results: Path) -> None:
    """Draws the plots again from their rows, for example after a change of style. Does not change the rows."""
    for figure in map(find, names()):
        result = read_result(figure.name, results)
        if result is not None:
            draw(figure, result.rows, result.provenance.scale, results)


def write_demo_page(
    figure: Figure,
    figure_run: FigureRun,
    lines: list[tuple[str, ...]],
    series: tuple[str, ...],
    results: Path,
    out: Path,
) -> Path:
    """Writes the page of the demo: its table, plots and provenance."""
    result = FigureResult(figure_run.provenance, figure_run.rows)
    head = "".join(f'<th class="number">{escape(name)}</th>' for name in series)
    body = "\n".join(
        f"<tr><td>{escape(line[0])}</td>"
        + "".join(f'<td class="number">{escape(each)}</td>' for each in line[1:])
        + "</tr>"
        for line in lines
    )
    origin = result.provenance
    content = f"""<h1>{escape(figure.title)}</h1>
<p>{escape(figure.setting)} Times are virtual: they come from a cost profile, not from this machine. Quotes are
generated.</p>
<div class="wide"><table><thead><tr><th></th>{head}</tr></thead><tbody>
{body}
</tbody></table></div>
{_figure(figure, results)}
<p class="origin">Seed {origin.seed}, {escape(origin.date)}, {escape(origin.backend)}.
Code: {escape("; ".join(origin.code))}. Again: <code>mercast demo</code>.
The papers' figures: <code>mercast experiment list</code>.</p>"""
    out.write_text(_document("Mercast: three protocols on 100 brokers", content), encoding="utf-8")
    return out


def page(figures: list[Figure], found: dict[str, FigureResult | None], results: Path) -> str:
    judged = {figure.name: _judged(figure, found[figure.name]) for figure in figures}
    sections = "\n".join(_section(figure, found[figure.name], judged[figure.name], results) for figure in figures)
    content = f"""<h1>The papers' routing results, and ours</h1>
{_introduction(figures, found, judged)}
{_contents(figures, found, judged)}
{sections}"""
    return _document("Mercast: the papers' routing results", content)


def _document(title: str, content: str) -> str:
    style = (Path(__file__).parent / "style.css").read_text(encoding="utf-8")
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>
{style}</style>
</head>
<body>
<main>
{content}
</main>
</body>
</html>
"""


def _judged(figure: Figure, result: FigureResult | None) -> list[Verdict]:
    return [] if result is None else verdicts(figure, result.rows, result.provenance.scale)


def _overall(result: FigureResult | None, judged: list[Verdict]) -> str:
    return NOT_RUN if result is None else overall(judged)


def _introduction(
    figures: list[Figure], found: dict[str, FigureResult | None], judged: dict[str, list[Verdict]]
) -> str:
    tally = Counter(_overall(found[figure.name], judged[figure.name]) for figure in figures)
    scales = Counter(result.provenance.scale for result in found.values() if result is not None)
    counted = ", ".join(f"{name} {count}" for name, count in tally.most_common())
    at_scale = " and ".join(f"{count} at {name} scale" for name, count in scales.most_common())
    return f"""<p>Content-based routing with FBR, D-DBR and MERC as in [THESIS 10.1]. {len(figures)} experiments,
{escape(at_scale)}. Verdicts: {escape(counted)}.</p>
<div class="note">
<p>A number agrees when it is within {TOLERANCE:.0%} of the paper's, or on the right side of a bound: one rule for
all. Open diamonds in the figures are the paper's numbers. Absolute times come from a cost profile and not
from the paper's machines: <code>padres-2015</code> charges 6.1 µs for each subscription stored in the table that is
matched and 0.2 ms for each frame received or sent, derived from one sentence of [THESIS 10.1.1] (2,000 subscriptions at
50 publications a second keep a broker 63% busy, forwarding alone 2%). Where the paper leaves something open, each
experiment says what was chosen, and where a choice was made by one of the paper's numbers, that this number proves
nothing. {escape(StockQuotes.notice[0].upper() + StockQuotes.notice[1:])}.</p>
</div>"""


def _contents(figures: list[Figure], found: dict[str, FigureResult | None], judged: dict[str, list[Verdict]]) -> str:
    rows = []
    for figure in figures:
        result = found[figure.name]
        verdict = _overall(result, judged[figure.name])
        agreeing = sum(each.agrees is True for each in judged[figure.name])
        comparable = sum(each.agrees is not None for each in judged[figure.name])
        share = f"{agreeing} of {comparable}" if comparable else ""
        scale = "" if result is None else result.provenance.scale
        rows.append(
            f'<tr><td><a href="#{figure.name}">{figure.name}</a></td><td class="title">{escape(figure.title)}</td>'
            f"<td>{_mark(verdict)}</td><td>{share}</td><td>{scale}</td></tr>"
        )
    return (
        '<div class="wide"><table class="contents"><thead><tr><th>entry</th><th class="title">what</th><th>verdict</th>'
        "<th>claims that hold</th><th>scale</th></tr></thead><tbody>\n" + "\n".join(rows) + "\n</tbody></table></div>"
    )


def _section(figure: Figure, result: FigureResult | None, judged: list[Verdict], results: Path) -> str:
    head = (
        f'<section class="entry" id="{figure.name}">\n<h2>{figure.name}: {escape(figure.title)}</h2>\n'
        f'<p class="reference">{escape(figure.reference)} · {_mark(_overall(result, judged))}</p>\n'
        f"<p><strong>The paper:</strong> {escape(figure.claim)}</p>\n"
        f"<p><strong>Setting:</strong> {escape(figure.setting)}</p>\n"
    )
    if result is None:
        command = f"mercast experiment run {figure.name} --scale paper"
        return f"{head}<p>Not run yet. To run it: <code>{command}</code></p>\n</section>"
    return (
        f"{head}{_scale_note(figure, result)}{_figure(figure, results)}\n{_claims(judged)}\n"
        f"{_failures(result)}{_origin(figure, result)}\n</section>"
    )


def _scale_note(figure: Figure, result: FigureResult) -> str:
    if result.provenance.scale == "paper":
        return ""
    command = f"mercast experiment run {figure.name} --scale paper"
    return (
        '<p class="note"><strong>Run at quick scale only</strong>, with fewer brokers, subscriptions or publications '
        "than in the setting above: the shape can be compared, the numbers cannot. The paper's scale takes about "
        f"{figure.minutes['paper']:g} minutes of one core: <code>{command}</code></p>\n"
    )


def _figure(figure: Figure, results: Path) -> str:
    images = []
    for panel, path in zip(figure.panels, panel_paths(figure, results), strict=True):
        if not path.is_file():
            raise FigureError(f"{path} is missing beside {figure.name}.json; run the experiment again: {figure.name}")
        data = base64.b64encode(path.read_bytes()).decode("ascii")
        described = f"{figure.name}: {panel.title}, {panel.y} over {panel.x or 'all brokers'}"
        images.append(f'<img src="data:image/svg+xml;base64,{data}" alt="{escape(described)}">')
    return f"<figure>{''.join(images)}</figure>"


def _claims(judged: list[Verdict]) -> str:
    rows = []
    last_reason = ""
    for verdict in judged:
        # Consecutive claims may have the same reason; it is shown once.
        why = f'<span class="why">{escape(verdict.why)}</span>' if verdict.why not in ("", last_reason) else ""
        last_reason = verdict.why
        word = {True: "agrees", False: "differs", None: "not comparable"}[verdict.agrees]
        rows.append(
            f'<tr><td>{escape(verdict.what)}{why}</td><td class="number" data-name="paper">{escape(verdict.paper)}</td>'
            f'<td class="number" data-name="ours">{escape(verdict.ours)}</td><td>{_mark(word)}</td></tr>'
        )
    return (
        '<table class="claims"><thead><tr><th>claim</th><th class="number">paper</th><th class="number">ours</th>'
        "<th></th></tr></thead><tbody>\n" + "\n".join(rows) + "\n</tbody></table>"
    )


def _failures(result: FigureResult) -> str:
    if not result.rows.errors:
        return ""
    lines = "".join(
        f"<li>{escape(row.series)} at {escape(str(row.x))}: {escape(row.error)}</li>" for row in result.rows.errors
    )
    return f'<p class="bad">{result.provenance.failed} runs failed:</p><ul>{lines}</ul>\n'


def _origin(figure: Figure, result: FigureResult) -> str:
    origin = result.provenance
    versions = ", ".join(f"{name} {number}" for name, number in origin.versions.items())
    quotes = " Quotes are generated." if figure.has_generated_quotes else ""
    scale = "the paper's parameters" if origin.scale == "paper" else "quick scale: smaller than the paper's"
    return (
        f'<p class="origin">Again: <code>{escape(origin.command)}</code><br>{origin.runs} runs, '
        f"{scale}, seed {origin.seed}, {escape(origin.date)}. "
        f"Code: {escape('; '.join(origin.code) or NOT_RECORDED)}. {escape(versions)}; "
        f"{escape(origin.backend)}; {escape(origin.machine)}.{quotes}</p>"
    )


def _mark(word: str) -> str:
    return f'<span class="verdict {TONES[word]}">{word}</span>'
