"""The style of all plots: colours, axes, texts of ticks, and files that are equal for equal drawings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PROTOCOL_COLOURS = {"FBR": "#c44536", "D-DBR": "#1f5f8b", "MERC": "#2a7f4f"}
SERIES_COLOURS = (
    "#1f5f8b", "#c44536", "#2a7f4f", "#8a5fa8", "#b8860b", "#4a4e57", "#3aa0a0", "#d1739c", "#7a8b2f", "#5b6ee1",
)  # fmt: skip
RUN_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#000000")

STYLE: Any = {
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11,
    "font.size": 10,
    "grid.alpha": 0.3,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "svg.fonttype": "path",
    # Without this, ids in the drawing are random, and equal drawings give different files.
    "svg.hashsalt": "mercast",
}


def save(figure: Figure, path: Path, dpi: int = 150) -> None:
    """Writes a PNG or an SVG, by the ending of the path. The file has no date."""
    metadata = {"Date": None} if path.suffix == ".svg" else {"Software": None}
    figure.savefig(path, dpi=dpi, metadata=metadata)


def write_out(value: float, _position: float) -> str:
    """The text of a tick: all digits, with commas."""
    return f"{value:,.10g}"


def use_logarithmic_y(axes: Axes) -> None:
    """Makes the y axis logarithmic, with ticks at 1, 2 and 5 of each power of ten."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(write_out)
    axes.yaxis.set_minor_formatter(NullFormatter())
