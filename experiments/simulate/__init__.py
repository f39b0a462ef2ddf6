"""Simulation of a scenario: the run, the oracle of owed deliveries, the summary, the commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from experiments.simulate.oracle import Oracle
    from experiments.simulate.single_run import simulate
    from experiments.simulate.summary import RunSummary

__all__ = ["Oracle", "RunSummary", "simulate"]

__getattr__ = lazy_exports(
    __name__,
    {
        "Oracle": "experiments.simulate.oracle",
        "RunSummary": "experiments.simulate.summary",
        "simulate": "experiments.simulate.single_run",
    },
)
