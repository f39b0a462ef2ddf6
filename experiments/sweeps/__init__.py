"""Sweeps: parameters of many runs, their outcomes on disk, and their distribution over processes or Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from experiments.sweeps.sweep import RunOutcome, RunSpec

__all__ = ["RunOutcome", "RunSpec"]

__getattr__ = lazy_exports(
    __name__,
    {
        "RunOutcome": "experiments.sweeps.sweep",
        "RunSpec": "experiments.sweeps.sweep",
    },
)
