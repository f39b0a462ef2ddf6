"""All experiments on routing, in the paper's order. A module is loaded when its entry is asked for."""

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
    return tuple(MODULES)


def find(name: str) -> Figure:
    if name not in MODULES:
        raise FigureError(f"no experiment is called {name!r}; {nearest(name, MODULES)}")
    entry = importlib.import_module(MODULES[name]).ENTRY
    assert isinstance(entry, Figure)
    return entry


def chosen(wanted: list[str]) -> list[Figure]:
    """The entries of these names, each once; `all` stands for all of them."""
    expanded = [each for name in wanted for each in (names() if name == "all" else (name,))]
    return [find(name) for name in dict.fromkeys(expanded)]
