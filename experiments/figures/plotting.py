"""Entries as pictures: a panel for each measure, with the paper's numbers as open diamonds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.figures.entry import Entry, Panel, Rows, Scale, X

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = {"FBR": "#c44536", "D-DBR": "#1f5f8b", "MERC": "#2a7f4f"}
OTHER_COLOURS = (
    "#1f5f8b", "#c44536", "#2a7f4f", "#8a5fa8", "#b8860b", "#4a4e57", "#3aa0a0", "#d1739c", "#7a8b2f", "#5b6ee1",
)  # fmt: skip
MARKERS = "osv^Dx+<>p"
PANEL_INCHES = (5.6, 4.2)
INSIDE = 4
"""So many series at most have their names inside the axes; more would hide lines."""


def draw(entry: Entry, rows: Rows, scale: Scale, folder: Path) -> list[Path]:
    """Writes the entry's figure: a PNG of all panels side by side, and an SVG of each, for pages of any width."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    width, height = PANEL_INCHES
    paths = [folder / f"{entry.name}.png", *panel_paths(entry, folder)]
    with matplotlib.rc_context({"svg.hashsalt": "mercast", "font.size": 10, "axes.titlesize": 11}):
        figure, axes = pyplot.subplots(1, len(entry.panels), figsize=(width * len(entry.panels), height), squeeze=False)
        for panel, place in zip(entry.panels, axes[0], strict=True):
            _draw_panel(panel, rows, scale, place)
        figure.tight_layout()
        figure.savefig(paths[0], dpi=110)
        pyplot.close(figure)
        for panel, path in zip(entry.panels, paths[1:], strict=True):
            single, place = pyplot.subplots(figsize=PANEL_INCHES)
            _draw_panel(panel, rows, scale, place)
            single.tight_layout()
            single.savefig(path, metadata={"Date": None})
            pyplot.close(single)
    return paths


def panel_paths(entry: Entry, folder: Path) -> list[Path]:
    return [folder / f"{entry.name}-{number}.svg" for number in range(1, len(entry.panels) + 1)]


def _draw_panel(panel: Panel, rows: Rows, scale: Scale, axes: Axes) -> None:
    names = rows.series(panel.measure)
    for number, name in enumerate(names):
        colour = COLOURS.get(name, OTHER_COLOURS[number % len(OTHER_COLOURS)])
        line = rows.line(panel.measure, name)
        xs: list[Any] = [x for x, _ in line]
        ys = [y for _, y in line]
        if panel.kind == "bars":
            _bars(axes, rows, panel, name, (number, len(names)), colour)
        elif panel.kind == "points":
            axes.plot(xs, ys, MARKERS[number % len(MARKERS)], color=colour, label=name, markersize=4)
        else:
            marker = MARKERS[number % len(MARKERS)] if len(xs) <= 30 else None
            axes.plot(xs, ys, marker=marker, color=colour, label=name, markersize=4, linewidth=1.4)
    if scale == "paper":
        _draw_paper(panel, rows, axes)
    axes.set_title(panel.title)
    axes.set_xlabel(panel.x)
    axes.set_ylabel(panel.y)
    axes.grid(alpha=0.3, linewidth=0.6)
    axes.set_axisbelow(True)
    if panel.is_log:
        axes.set_yscale("log")
        _plain_numbers(axes)
    else:
        axes.set_ylim(bottom=0, top=1.06 * axes.dataLim.ymax if axes.dataLim.ymax > 0 else 1)
    if len(names) > INSIDE or (panel.kind == "bars" and len(names) > 1):
        axes.legend(fontsize=8, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.16), frameon=False)
    elif names:
        axes.legend(fontsize=8, framealpha=0.9)


def _plain_numbers(axes: Axes) -> None:
    """On a logarithmic axis, 1, 2 and 5 of each power of ten, written out."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _bars(axes: Axes, rows: Rows, panel: Panel, name: str, place: tuple[int, int], colour: str) -> None:
    """Bars of several series beside each other, over the values of x in the order in which they first appear."""
    number, count = place
    order = _order(rows, panel.measure)
    width = 0.8 / count
    positions, heights = [], []
    for x, y in rows.line(panel.measure, name):
        positions.append(order.index(x) + (number - (count - 1) / 2) * width)
        heights.append(y)
    axes.bar(positions, heights, width=width, color=colour, label=name)
    step = max(1, len(order) // 10)
    axes.set_xticks(range(0, len(order), step), [str(x) for x in order[::step]])


def _order(rows: Rows, measure: str) -> list[X]:
    """The values of x, in the order in which they first appear: where bars stand."""
    return list(dict.fromkeys(row.x for row in rows.all if row.measure == measure))


def _draw_paper(panel: Panel, rows: Rows, axes: Axes) -> None:
    names = rows.series(panel.measure)
    order = _order(rows, panel.measure)
    is_labelled = False
    for point in panel.paper:
        known = names.index(point.series) if point.series in names else 0
        colour = COLOURS.get(point.series, OTHER_COLOURS[known % len(OTHER_COLOURS)])
        axes.plot(
            [order.index(point.x) if panel.kind == "bars" else point.x],
            [point.y],
            "D",
            markersize=9,
            markerfacecolor="none",
            markeredgecolor=colour,
            markeredgewidth=1.8,
            label=None if is_labelled else "the paper",
        )
        is_labelled = True
