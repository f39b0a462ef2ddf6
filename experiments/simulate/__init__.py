"""Simulation of a scenario: the run, the oracle of owed deliveries, the summary, the commands. Of `experiments` it may
import scenario.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from experiments.simulate.single_run import simulate

__all__ = ["simulate"]

__getattr__ = lazy_exports(
    __name__,
    {"simulate": "experiments.simulate.single_run"},
)
