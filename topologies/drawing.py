"""A picture of an overlay: links, brokers in the colours of their clusters, edge brokers as outlined squares."""

from __future__ import annotations

import colorsys
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from topologies.errors import PictureError
from topologies.overlay import Overlay

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMATS = (".png", ".svg", ".pdf")
LABELLED_BROKERS_MAX = 60
SPRING_BROKERS_MAX = 499
LEGEND_CLUSTERS_MAX = 24
LEGEND_SIZE = 60.0
_UNCLUSTERED = "#4c78a8"
_Point = tuple[float, float]


def draw_picture(overlay: Overlay, path: Path, *, seed: int = 1) -> None:
    """Draws the overlay into a PNG, SVG or PDF file.

    Brokers are drawn at their positions. Without positions a spring layout places them; a seed gives one layout.
    """
    if path.suffix.lower() not in FORMATS:
        raise PictureError(f"cannot draw {path}: use a name that ends in {', '.join(FORMATS)}")
    try:
        import matplotlib
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise PictureError(f"pictures need {error.name}: pip install 'mercast[topology]'") from error

    places = _positions(overlay, seed)
    figure = Figure(figsize=(10, 8), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.set_axis_off()
    axes.set_aspect("equal")
    axes.set_title(_title(overlay), fontsize=12)
    _draw_links(axes, overlay, places)
    _draw_brokers(axes, overlay, places)
    if overlay.clusters:
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=9)
    # A fixed salt and no date keep the bytes of an SVG the same from run to run.
    with matplotlib.rc_context({"svg.hashsalt": "mercast"}):
        try:
            figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix.lower() == ".svg" else None)
        except OSError as error:
            raise PictureError(f"cannot write {path}: {error.strerror}") from error


def _title(overlay: Overlay) -> str:
    words = f"{overlay.name}: {len(overlay.ids)} brokers, {len(overlay.links)} links"
    if overlay.clusters:
        words += f", {len(overlay.clusters)} clusters, {len(overlay.edge_brokers)} edge brokers"
    return words


def _positions(overlay: Overlay, seed: int) -> dict[str, _Point]:
    positions = {broker.id: broker.position for broker in overlay.brokers if broker.position is not None}
    if len(positions) == len(overlay.ids):
        return positions
    return _spring_layout(overlay, seed)


def _spring_layout(overlay: Overlay, seed: int) -> dict[str, _Point]:
    try:
        import networkx
    except ImportError as error:
        raise PictureError(f"pictures need {error.name}: pip install 'mercast[topology]'") from error

    graph = networkx.Graph()
    graph.add_nodes_from(overlay.ids)
    graph.add_edges_from(link.ends for link in overlay.links)
    turn = 2 * math.pi / len(overlay.ids)
    start = {id: [math.cos(number * turn), math.sin(number * turn)] for number, id in enumerate(overlay.ids)}
    if len(overlay.ids) <= SPRING_BROKERS_MAX:
        points = networkx.spring_layout(graph, pos=start, seed=seed, iterations=200)
    else:
        # From 500 nodes on, networkx's spring layout needs scipy. Its ForceAtlas2 layout needs only numpy.
        points = networkx.forceatlas2_layout(graph, pos=start, seed=seed, max_iter=60)
    return {id: (float(points[id][0]), float(points[id][1])) for id in overlay.ids}


def _draw_links(axes: Axes, overlay: Overlay, places: dict[str, _Point]) -> None:
    from matplotlib.collections import LineCollection

    lines = [[places[link.a], places[link.b]] for link in overlay.links]
    width = 0.9 if len(lines) <= 500 else 0.35
    axes.add_collection(LineCollection(lines, colors="#9a9a9a", linewidths=width, alpha=0.7, zorder=1))


def _draw_brokers(axes: Axes, overlay: Overlay, places: dict[str, _Point]) -> None:
    size = max(12.0, min(110.0, 9000.0 / len(overlay.ids)))
    for cluster in overlay.clusters or ("",):
        ids = overlay.members(cluster) if cluster else overlay.ids
        points = [places[id] for id in ids if not overlay.is_edge(id)]
        colour = _colour(overlay, cluster)
        axes.scatter(*_columns(points), size, color=colour, linewidths=0, zorder=2)
        axes.scatter([], [], LEGEND_SIZE, color=colour, linewidths=0, label=_legend(overlay, cluster))
    if overlay.edge_brokers:
        columns = _columns([places[id] for id in overlay.edge_brokers])
        colours = [_colour(overlay, overlay.broker(id).clusters[0]) for id in overlay.edge_brokers]
        axes.scatter(*columns, 1.3 * size, colours, marker="s", edgecolors="black", linewidths=1.2, zorder=3)
        axes.scatter([], [], LEGEND_SIZE, "white", marker="s", edgecolors="black", linewidths=1.2, label="edge broker")
    if len(overlay.ids) <= LABELLED_BROKERS_MAX:
        for id in overlay.ids:
            axes.annotate(id, places[id], xytext=(5, 5), textcoords="offset points", fontsize=7, zorder=4)


def _columns(points: Sequence[_Point]) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]


def _legend(overlay: Overlay, cluster: str) -> str | None:
    """Returns the cluster's line in the legend. If there are many clusters, only the first ones have a line."""
    number = overlay.clusters.index(cluster) if cluster else LEGEND_CLUSTERS_MAX
    if number >= LEGEND_CLUSTERS_MAX:
        return None
    if number == LEGEND_CLUSTERS_MAX - 1 and len(overlay.clusters) > LEGEND_CLUSTERS_MAX:
        return f"… {len(overlay.clusters) - number} more clusters"
    return f"{cluster} ({len(overlay.members(cluster))} brokers)"


def _colour(overlay: Overlay, cluster: str) -> str:
    """Returns the cluster's colour. Up to ten clusters have distinct hues; more have hues around the colour circle."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    if not cluster:
        return _UNCLUSTERED
    number, count = overlay.clusters.index(cluster), len(overlay.clusters)
    if count <= 10:
        return to_hex(colormaps["tab10"](number))
    shade = (0.95, 0.7)[number % 2]
    return to_hex(colorsys.hsv_to_rgb(number / count, 0.65, shade))
