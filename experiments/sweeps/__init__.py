"""Sweeps: parameters of many runs, their outcomes on disk, and their distribution over processes or Spark. Of
`experiments` it may import analysis, scenario, simulate and studies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from experiments.sweeps.spark import SparkCalls, SparkTasks
    from experiments.sweeps.sweep import LocalProcesses, RunOutcome, RunSpec, Submit, Value, read_outcome

__all__ = ["LocalProcesses", "RunOutcome", "RunSpec", "SparkCalls", "SparkTasks", "Submit", "Value", "read_outcome"]

__getattr__ = lazy_exports(
    __name__,
    {
        "LocalProcesses": "experiments.sweeps.sweep",
        "RunOutcome": "experiments.sweeps.sweep",
        "RunSpec": "experiments.sweeps.sweep",
        "SparkCalls": "experiments.sweeps.spark",
        "SparkTasks": "experiments.sweeps.spark",
        "Submit": "experiments.sweeps.sweep",
        "Value": "experiments.sweeps.sweep",
        "read_outcome": "experiments.sweeps.sweep",
    },
)
