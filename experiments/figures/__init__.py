"""The papers' figures on routing as experiments: one module for each, listed in `registry`. Of `experiments` it may
import analysis and sweeps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from experiments.figures.figure import Figure, Panel, Point, Row, Rows, Scale, Shape, Verdict, overall, verdicts
    from experiments.figures.panels import draw, panel_paths
    from experiments.figures.points import simulation_point
    from experiments.figures.registry import find, names
    from experiments.figures.results import FigureResult, read_result
    from experiments.figures.run_figure import FigureRun, evaluate_runs, run_points
    from experiments.figures.spark_columns import with_spark_columns

__all__ = [
    "Figure",
    "FigureResult",
    "FigureRun",
    "Panel",
    "Point",
    "Row",
    "Rows",
    "Scale",
    "Shape",
    "Verdict",
    "draw",
    "evaluate_runs",
    "find",
    "names",
    "overall",
    "panel_paths",
    "read_result",
    "run_points",
    "simulation_point",
    "verdicts",
    "with_spark_columns",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "Figure": "experiments.figures.figure",
        "FigureResult": "experiments.figures.results",
        "FigureRun": "experiments.figures.run_figure",
        "Panel": "experiments.figures.figure",
        "Point": "experiments.figures.figure",
        "Row": "experiments.figures.figure",
        "Rows": "experiments.figures.figure",
        "Scale": "experiments.figures.figure",
        "Shape": "experiments.figures.figure",
        "Verdict": "experiments.figures.figure",
        "draw": "experiments.figures.panels",
        "evaluate_runs": "experiments.figures.run_figure",
        "find": "experiments.figures.registry",
        "names": "experiments.figures.registry",
        "overall": "experiments.figures.figure",
        "panel_paths": "experiments.figures.panels",
        "read_result": "experiments.figures.results",
        "run_points": "experiments.figures.run_figure",
        "simulation_point": "experiments.figures.points",
        "verdicts": "experiments.figures.figure",
        "with_spark_columns": "experiments.figures.spark_columns",
    },
)
