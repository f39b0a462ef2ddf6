"""Points of figures that are simulations, and rows of the numbers that a run's summary has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from experiments.figures.figure import PROTOCOLS, Point, Row, X
from experiments.sweeps.sweep import RunOutcome, RunSpec, Value


def simulation(scenario: str, protocol: str, settings: Mapping[str, Value], seed: int = 1) -> RunSpec:
    """A shipped scenario under one protocol, with values laid over it."""
    laid_over = {f"set.{key}": value for key, value in settings.items()}
    return RunSpec("simulate", {"scenario": scenario, "protocol": protocol, "seed": seed, **laid_over})


def point(scenario: str, protocol: str, x: X, settings: Mapping[str, Value]) -> Point:
    return Point(PROTOCOLS[protocol], x, simulation(scenario, protocol, settings))


def from_summary(**measures: str) -> Callable[[Point, RunOutcome], Iterable[Row]]:
    """A row for each measure, with the number of that name of the run's summary."""

    def rows(point: Point, outcome: RunOutcome) -> Iterable[Row]:
        return [Row(measure, point.series, point.x, outcome.numbers[name]) for measure, name in measures.items()]

    return rows
