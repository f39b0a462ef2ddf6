"""Draws figures: a panel for each measure, with the paper's numbers as open diamonds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.figures.figure import Figure, Panel, Rows, Scale, X
from experiments.plotting import PROTOCOL_COLOURS, SERIES_COLOURS, STYLE, save, use_logarithmic_y, write_out

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKERS = "osv^Dx+<>p"
DASHES = ("solid", "dashed", "dotted", "dashdot")
PANEL_INCHES = (5.6, 4.2)
INSIDE = 3
"""The legend is inside the axes for at most this number of series; a longer one would hide lines."""
MARKED = 30
"""Points have markers if a line has at most this number of them; more would hide the line."""


@dataclass(frozen=True, slots=True)
class SeriesStyle:
    """The style of a series: its colour, dash and marker."""

    colour: str
    dash: str
    marker: str


def series_styles(figure: Figure, rows: Rows) -> dict[str, SeriesStyle]:
    """Colour, dash and marker of each series, the same in all panels.

    Variants of a protocol, such as `D-DBR, flooded`, have its colour and different dashes. If there are more variants
    than dashes, each series has its own colour.
    """
    names = list(dict.fromkeys(name for panel in figure.panels for name in rows.series(panel.measure)))
    protocols = [name.partition(",")[0] for name in names]
    has_own_colours = any(each not in PROTOCOL_COLOURS or protocols.count(each) > len(DASHES) for each in protocols)
    styles = {}
    for number, (name, protocol) in enumerate(zip(names, protocols, strict=True)):
        marker = MARKERS[number % len(MARKERS)]
        if has_own_colours:
            styles[name] = SeriesStyle(SERIES_COLOURS[number % len(SERIES_COLOURS)], DASHES[0], marker)
        else:
            styles[name] = SeriesStyle(PROTOCOL_COLOURS[protocol], DASHES[protocols[:number].count(protocol)], marker)
    return styles


def draw(figure: Figure, rows: Rows, scale: Scale, folder: Path) -> list[Path]:
    """Writes a PNG of all panels side by side, and an SVG of each panel for pages of any width."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    width, height = PANEL_INCHES
    paths = [folder / f"{figure.name}.png", *panel_paths(figure, folder)]
    styles = series_styles(figure, rows)
    with matplotlib.rc_context(STYLE):
        canvas, axes = pyplot.subplots(
            1, len(figure.panels), figsize=(width * len(figure.panels), height), squeeze=False
        )
        for panel, panel_axes in zip(figure.panels, axes[0], strict=True):
            _draw_panel(panel, rows, scale, styles, panel_axes)
        canvas.tight_layout()
        save(canvas, paths[0], dpi=110)
        pyplot.close(canvas)
        for panel, path in zip(figure.panels, paths[1:], strict=True):
            single, panel_axes = pyplot.subplots(figsize=PANEL_INCHES)
            _draw_panel(panel, rows, scale, styles, panel_axes)
            single.tight_layout()
            save(single, path)
            pyplot.close(single)
    return paths


def panel_paths(figure: Figure, folder: Path) -> list[Path]:
    """The paths of the SVG files of the panels."""
    return [folder / f"{figure.name}-{number}.svg" for number in range(1, len(figure.panels) + 1)]


def _draw_panel(panel: Panel, rows: Rows, scale: Scale, styles: Mapping[str, SeriesStyle], axes: Axes) -> None:
    names = rows.series(panel.measure)
    for name in names:
        style = styles[name]
        line = rows.line(panel.measure, name)
        xs: list[Any] = [x for x, _ in line]
        ys = [y for _, y in line]
        if panel.kind == "bars":
            positions = [_bar_position(rows, panel, name, x) for x in xs]
            axes.bar(positions, ys, width=_bar_width(names), color=style.colour, label=name)
        elif panel.kind == "points":
            axes.plot(xs, ys, style.marker, color=style.colour, label=name, markersize=4)
        else:
            (drawn,) = axes.plot(xs, ys, color=style.colour, linestyle=style.dash, linewidth=1.4, label=name)
            if len(xs) <= MARKED:
                drawn.set(marker=style.marker, markersize=4)
    if scale == "paper":
        _draw_paper(panel, rows, styles, axes)
    axes.set_title(panel.title)
    axes.set_xlabel(panel.x)
    axes.set_ylabel(panel.y)
    if panel.kind == "bars":
        order = _order(rows, panel.measure)
        step = max(1, len(order) // 10)
        axes.set_xticks(range(0, len(order), step), [str(x) for x in order[::step]])
    else:
        axes.locator_params(axis="x", integer=True)
        axes.xaxis.set_major_formatter(write_out)
    if panel.is_log:
        use_logarithmic_y(axes)
    else:
        # The limit is infinite if nothing was drawn because all runs failed.
        highest = axes.dataLim.ymax
        axes.set_ylim(bottom=0, top=1.06 * highest if 0 < highest < math.inf else 1)
    axes.yaxis.set_major_formatter(write_out)
    if len(names) > INSIDE or (panel.kind == "bars" and len(names) > 1):
        axes.legend(fontsize=8, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.16), frameon=False)
    elif names:
        axes.legend(fontsize=8, framealpha=0.9)


def _bar_width(names: Sequence[str]) -> float:
    return 0.8 / len(names)


def _bar_position(rows: Rows, panel: Panel, name: str, x: X) -> float:
    """Bars of several series are side by side, centred on the position of x."""
    names = rows.series(panel.measure)
    offset = names.index(name) - (len(names) - 1) / 2
    return _order(rows, panel.measure).index(x) + offset * _bar_width(names)


def _order(rows: Rows, measure: str) -> list[X]:
    """The values of x in the order in which they first appear. Bars are drawn in this order."""
    return list(dict.fromkeys(row.x for row in rows.all if row.measure == measure))


def _draw_paper(panel: Panel, rows: Rows, styles: Mapping[str, SeriesStyle], axes: Axes) -> None:
    names = rows.series(panel.measure)
    is_labelled = False
    for point in panel.paper:
        if panel.kind == "bars" and not (point.series in names and point.x in _order(rows, panel.measure)):
            continue
        position = _bar_position(rows, panel, point.series, point.x) if panel.kind == "bars" else point.x
        axes.plot(
            [position],
            [point.y],
            "D",
            markersize=9,
            markerfacecolor="white" if panel.kind == "bars" else "none",
            markeredgecolor=styles[point.series].colour if point.series in styles else "black",
            markeredgewidth=1.8,
            label=None if is_labelled else "the paper",
        )
        is_labelled = True
