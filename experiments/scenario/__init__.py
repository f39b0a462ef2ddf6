"""Scenarios: the description of a simulation, as a TOML file and as values.

`load` reads a scenario. The other modules generate its overlay, clients, publications and faults from a seed. The
folder `shipped` has the scenarios that come with the project. Of experiments, this package imports the workloads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from experiments.scenario.load import load
    from experiments.scenario.model import Scenario

__all__ = ["Scenario", "load"]

__getattr__ = lazy_exports(
    __name__,
    {
        "Scenario": "experiments.scenario.model",
        "load": "experiments.scenario.load",
    },
)
