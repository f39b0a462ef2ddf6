"""All figures on routing, in the paper's order. `find` loads a figure's module."""

from __future__ import annotations

import importlib

from experiments.errors import FigureError
from experiments.figures.figure import Figure
from topologies.errors import nearest

FIGURES = 20
MODULES = {
    "text-1.3": "experiments.figures.thesis.text_1_3",
    **{f"fig-10.1.{number}": f"experiments.figures.thesis.fig_10_1_{number}" for number in range(1, FIGURES + 1)},
}


def names() -> tuple[str, ...]:
    """The names of all figures."""
    return tuple(MODULES)


def find(name: str) -> Figure:
    """The figure of this name. Raises FigureError for an unknown name."""
    if name not in MODULES:
        raise FigureError(f"no experiment is called {name!r}; {nearest(name, MODULES)}")
    figure = importlib.import_module(MODULES[name]).FIGURE
    assert isinstance(figure, Figure)
    return figure


def select(wanted: list[str]) -> list[Figure]:
    """The figures of these names, each once. The name `all` means all figures."""
    expanded = [each for name in wanted for each in (names() if name == "all" else (name,))]
    return [find(name) for name in dict.fromkeys(expanded)]
