"""Overlays and workloads that several figures share: a line, twenty brokers, a hundred brokers, failing links, and
destination lists. It may import what figures may import.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from experiments.figures.setups.destination_lists import ListParameters, count_lists_point
    from experiments.figures.setups.failures import failures_figure
    from experiments.figures.setups.hundred_brokers import hundred_brokers_point
    from experiments.figures.setups.line import latency_figure, line_point

__all__ = [
    "ListParameters",
    "count_lists_point",
    "failures_figure",
    "hundred_brokers_point",
    "latency_figure",
    "line_point",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "ListParameters": "experiments.figures.setups.destination_lists",
        "count_lists_point": "experiments.figures.setups.destination_lists",
        "failures_figure": "experiments.figures.setups.failures",
        "hundred_brokers_point": "experiments.figures.setups.hundred_brokers",
        "latency_figure": "experiments.figures.setups.line",
        "line_point": "experiments.figures.setups.line",
    },
)
