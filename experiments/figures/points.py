"""Points of figures whose runs are simulations, and rows made of the numbers of a run's summary."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from experiments.figures.figure import PROTOCOLS, Point, Row, X
from experiments.sweeps.sweep import RunOutcome, RunSpec, Value


def simulation_spec(scenario: str, protocol: str, settings: Mapping[str, Value], seed: int = 1) -> RunSpec:
    """A run of a shipped scenario under one protocol. `settings` replace values of the scenario."""
    overrides = {f"set.{key}": value for key, value in settings.items()}
    return RunSpec("simulate", {"scenario": scenario, "protocol": protocol, "seed": seed, **overrides})


def simulation_point(scenario: str, protocol: str, x: X, settings: Mapping[str, Value]) -> Point:
    """A simulation as a point of the protocol's series."""
    return Point(PROTOCOLS[protocol], x, simulation_spec(scenario, protocol, settings))


def rows_from_summary(**measures: str) -> Callable[[Point, RunOutcome], Iterable[Row]]:
    """A row maker: one row for each measure. `measures` maps a measure to the name of a number in the summary."""

    def rows(point: Point, outcome: RunOutcome) -> Iterable[Row]:
        return [Row(measure, point.series, point.x, outcome.numbers[name]) for measure, name in measures.items()]

    return rows
