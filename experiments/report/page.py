"""The report: for each figure the paper's claim, our plots, both numbers and a verdict.

The page embeds its plots and its style and has no script. Figures that have not been run have a section that says so.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.errors import FigureError
from experiments.figures.figure import TOLERANCE, Figure, Verdict, overall, verdicts
from experiments.figures.panels import draw, panel_paths
from experiments.figures.registry import find, names
from experiments.figures.results import NOT_RECORDED, FigureResult, read_result
from experiments.html_pages import render, svg_address
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
"""The class of the stylesheet for each verdict."""


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
    content = render(
        "demo.html",
        figure=figure,
        lines=lines,
        series=series,
        panels=_panels(figure, results),
        origin=figure_run.provenance,
    )
    out.write_text(content, encoding="utf-8")
    return out


@dataclass(frozen=True, slots=True)
class Panel:
    """A drawing on the page."""

    address: str
    description: str


@dataclass(frozen=True, slots=True)
class Section:
    """The values of the page's section about one figure."""

    figure: Figure
    result: FigureResult | None
    verdicts: list[Verdict]
    panels: list[Panel]

    @property
    def name(self) -> str:
        return self.figure.name

    @property
    def verdict(self) -> str:
        return NOT_RUN if self.result is None else overall(self.verdicts)

    @property
    def agreeing(self) -> int:
        """The number of claims that agree."""
        return sum(each.agrees is True for each in self.verdicts)

    @property
    def comparable(self) -> int:
        """The number of claims that agree or differ."""
        return sum(each.agrees is not None for each in self.verdicts)

    @property
    def command(self) -> str:
        return f"mercast experiment run {self.name} --scale paper"


def page(figures: list[Figure], found: dict[str, FigureResult | None], results: Path) -> str:
    sections = [_section(figure, found[figure.name], results) for figure in figures]
    tally = Counter(section.verdict for section in sections)
    scales = Counter(result.provenance.scale for result in found.values() if result is not None)
    return render(
        "report.html",
        sections=sections,
        scales=" and ".join(f"{count} at {name} scale" for name, count in scales.most_common()),
        verdicts=", ".join(f"{name} {count}" for name, count in tally.most_common()),
        tolerance=f"{TOLERANCE:.0%}",
        quotes_notice=StockQuotes.notice[0].upper() + StockQuotes.notice[1:],
        tones=TONES,
        not_recorded=NOT_RECORDED,
    )


def _section(figure: Figure, result: FigureResult | None, results: Path) -> Section:
    if result is None:
        return Section(figure, None, [], [])
    return Section(figure, result, verdicts(figure, result.rows, result.provenance.scale), _panels(figure, results))


def _panels(figure: Figure, results: Path) -> list[Panel]:
    panels = []
    for panel, path in zip(figure.panels, panel_paths(figure, results), strict=True):
        if not path.is_file():
            raise FigureError(f"{path} is missing beside {figure.name}.json; run the experiment again: {figure.name}")
        description = f"{figure.name}: {panel.title}, {panel.y} over {panel.x or 'all brokers'}"
        panels.append(Panel(svg_address(path), description))
    return panels
