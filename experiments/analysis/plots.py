"""Draws the figures of an analysis from its tables of results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib
import matplotlib.ticker
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.analysis.results import Result
from experiments.plotting import RUN_COLOURS, STYLE, save, use_logarithmic_y

RUNS_MOST = len(RUN_COLOURS)
"""The largest number of runs in a figure. The tables have all runs."""
LOGARITHMIC_FROM = 50
"""The axis is logarithmic if the largest value is more than this many times the smallest."""
LEGEND_CHARACTERS = 110
"""The number of characters of a line of the legend."""


@dataclass(frozen=True, slots=True)
class Drawing:
    title: str
    needs: tuple[str, ...]
    """Tables that must have rows."""
    draw: Callable[[Axes, Mapping[str, Result], Sequence[str]], None]
    """Draws on the axes, from the tables, the given runs."""


@dataclass(frozen=True, slots=True)
class DrawnFigure:
    name: str
    title: str
    png: Path
    svg: Path


def draw_all(results: Mapping[str, Result], runs: Sequence[str], folder: Path) -> list[DrawnFigure]:
    """Writes a PNG and an SVG for every figure whose tables have rows."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    with matplotlib.rc_context(STYLE):
        for name, drawing in DRAWINGS.items():
            if all(results[table].rows.num_rows for table in drawing.needs):
                drawn.append(_draw(name, drawing, results, runs[:RUNS_MOST], folder))
    return drawn


def _draw(name: str, drawing: Drawing, results: Mapping[str, Result], runs: Sequence[str], folder: Path) -> DrawnFigure:
    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    drawing.draw(figure.add_subplot(), results, runs)
    drawn_figure = DrawnFigure(name, drawing.title, folder / f"{name}.png", folder / f"{name}.svg")
    save(figure, drawn_figure.png)
    save(figure, drawn_figure.svg)
    return drawn_figure


def _latency(axes: Axes, results: Mapping[str, Result], runs: Sequence[str]) -> None:
    _bars(
        axes, results["latency"], runs, {"latency_ms_p50": "median", "latency_ms_p95": "95%", "latency_ms_p99": "99%"}
    )
    _label(axes, "", "latency (ms)")


def _latency_over_time(axes: Axes, results: Mapping[str, Result], runs: Sequence[str]) -> None:
    for run, colour in zip(runs, RUN_COLOURS, strict=False):
        rows = results["latency_over_time"].of_run(run)
        since = [at_s - rows.column("at_s")[0] for at_s in rows.column("at_s")]
        for column, line, word in (("latency_ms_p50", "-", "median"), ("latency_ms_p99", "--", "99%")):
            mark = "o" if rows.rows.num_rows == 1 else None
            axes.plot(since, rows.column(column), line, marker=mark, color=colour, label=f"{run}, {word}")
    _label(axes, "published so long after the first (s)", "latency (ms)")
    _scale_y(axes)


def _latency_by_broker(axes: Axes, results: Mapping[str, Result], runs: Sequence[str]) -> None:
    _ranked(axes, results["latency_by_broker"], runs, "latency_ms_p50")
    _label(axes, "brokers with subscribers, slowest first", "median latency (ms)")
    _scale_y(axes)


def _hop_distribution(axes: Axes, results: Mapping[str, Result], runs: Sequence[str]) -> None:
    for run, colour in zip(runs, RUN_COLOURS, strict=False):
        rows = results["hop_distribution"].of_run(run)
        axes.plot(rows.column("hops"), rows.column("share"), "o-", color=colour, label=run)
    _whole_numbers(axes)
    _label(axes, "hops of a delivery", "share of deliveries")


def _destination_distribution(axes: Axes, results: Mapping[str, Result], runs: Sequence[str]) -> None:
    for run, colour in zip(runs, RUN_COLOURS, strict=False):
        for place, line, word in (("all", "-", "on all hops"), ("source", "--", "at the source")):
            rows = results["destination_distribution"].of_run(run).where("place", place)
            lengths, shares = rows.column("destinations"), rows.column("share_at_most")
            axes.plot(lengths, shares, line, marker=".", color=colour, label=f"{run}, {word}")
    axes.set_ylim(0, 1.02)
    _whole_numbers(axes)
    _label(axes, "brokers in the destination list", "share of messages with at most so many")


def _busy(axes: Axes, results: Mapping[str, Result], runs: Sequence[str]) -> None:
    _ranked(axes, results["broker_load"], runs, "busy_share")
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(matplotlib.ticker.PercentFormatter(xmax=1))
    _label(axes, "brokers, busiest first", "share of time at work")


def _waiting(axes: Axes, results: Mapping[str, Result], runs: Sequence[str]) -> None:
    _ranked(axes, results["queueing"], runs, "wait_ms_p99")
    axes.set_yscale("symlog", linthresh=0.1)
    axes.set_ylim(bottom=0)
    _label(axes, "brokers that match, longest wait first", "wait before matching, 99% (ms)")


def _stored(axes: Axes, results: Mapping[str, Result], runs: Sequence[str]) -> None:
    _ranked(axes, results["broker_state"], runs, "stored_subscriptions")
    axes.set_ylim(bottom=0)
    _label(axes, "brokers, most first", "subscriptions stored")


def _links(axes: Axes, results: Mapping[str, Result], runs: Sequence[str]) -> None:
    _ranked(axes, results["link_utilisation"], runs, "messages_per_s")
    axes.set_ylim(bottom=0)
    _label(axes, "links, busiest first", "messages a second")


def _kinds(axes: Axes, results: Mapping[str, Result], runs: Sequence[str]) -> None:
    kinds = list(dict.fromkeys(results["messages_by_kind"].column("kind")))
    left = [0] * len(runs)
    for kind, colour in zip(kinds, RUN_COLOURS * len(kinds), strict=False):
        counted = results["messages_by_kind"].where("kind", kind)
        counts = dict(zip(counted.column("run"), counted.column("messages"), strict=True))
        widths = [counts.get(run, 0) for run in runs]
        axes.barh(range(len(runs)), widths, left=left, color=colour, label=kind)
        left = [start + width for start, width in zip(left, widths, strict=True)]
    axes.set_yticks(range(len(runs)), runs)
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    _label(axes, "messages between brokers", "")


def _delivered(axes: Axes, results: Mapping[str, Result], runs: Sequence[str]) -> None:
    _bars(axes, results["delivery"], runs, {"delivered_of_expected": "of expected", "delivered_of_owed": "of owed"})
    axes.set_yscale("linear")
    axes.set_ylim(0, 1.05)
    axes.yaxis.set_major_formatter(matplotlib.ticker.PercentFormatter(xmax=1))
    _label(axes, "", "delivered")


def _bars(axes: Axes, result: Result, runs: Sequence[str], columns: Mapping[str, str]) -> None:
    width = 0.8 / len(columns)
    names = result.column("run")
    shown = [run for run in runs if run in names]
    for number, (column, word) in enumerate(columns.items()):
        values = dict(zip(names, result.column(column), strict=True))
        places = [place + (number - (len(columns) - 1) / 2) * width for place in range(len(shown))]
        heights = [values[run] or 0 for run in shown]
        bars = axes.bar(places, heights, width * 0.92, color=RUN_COLOURS[number], label=word)
        if len(shown) <= 4:
            axes.bar_label(bars, fmt="{:.3g}", fontsize=8, padding=2)
    axes.set_xticks(range(len(shown)), shown, rotation=0 if len(shown) <= 4 else 30)
    axes.grid(visible=False, axis="x")
    _scale_y(axes)


def _ranked(axes: Axes, result: Result, runs: Sequence[str], column: str) -> None:
    """Draws a line for each run: its values from the largest to the smallest."""
    for run, colour in zip(runs, RUN_COLOURS, strict=False):
        values = sorted((value for value in result.of_run(run).column(column) if value is not None), reverse=True)
        mark = "o" if len(values) <= 40 else None
        axes.plot(range(1, len(values) + 1), values, marker=mark, markersize=4, color=colour, label=run)
    _whole_numbers(axes)


def _scale_y(axes: Axes) -> None:
    """Makes the y axis logarithmic if values are far apart. Otherwise the axis begins at zero."""
    heights = [float(y) for line in axes.lines for y in np.asarray(line.get_ydata(), dtype=float)]
    heights += [float(bar.get_height()) for bar in axes.patches]  # type: ignore[attr-defined]
    seen = [height for height in heights if height > 0]
    if seen and max(seen) > LOGARITHMIC_FROM * min(seen):
        use_logarithmic_y(axes)
    else:
        axes.set_ylim(bottom=0)


def _whole_numbers(axes: Axes) -> None:
    axes.xaxis.set_major_locator(matplotlib.ticker.MaxNLocator(integer=True))


def _label(axes: Axes, x: str, y: str) -> None:
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    entries = axes.get_legend_handles_labels()[1]
    if len(entries) > 1:
        longest = max(map(len, entries))
        columns = max(1, min(len(entries), LEGEND_CHARACTERS // (longest + 6)))
        figure = axes.get_figure(root=True)
        assert figure is not None
        figure.legend(loc="outside lower center", fontsize=8, ncols=columns)


DRAWINGS: dict[str, Drawing] = {
    "latency": Drawing("Latency", ("latency",), _latency),
    "latency_over_time": Drawing("Latency over time", ("latency_over_time",), _latency_over_time),
    "latency_by_broker": Drawing("Latency at each broker", ("latency_by_broker",), _latency_by_broker),
    "hop_distribution": Drawing("Hops", ("hop_distribution",), _hop_distribution),
    "destination_distribution": Drawing(
        "Length of destination lists", ("destination_distribution",), _destination_distribution
    ),
    "delivered": Drawing("Delivered, of what was expected and of what was owed", ("delivery",), _delivered),
    "broker_load": Drawing("Load of brokers", ("broker_load",), _busy),
    "waiting": Drawing("Queueing at brokers", ("queueing",), _waiting),
    "stored_subscriptions": Drawing("Subscriptions stored at brokers", ("broker_state",), _stored),
    "link_utilisation": Drawing("Traffic of links", ("link_utilisation",), _links),
    "messages_by_kind": Drawing("Messages by kind", ("messages_by_kind",), _kinds),
}
