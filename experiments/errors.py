"""Errors of experiments.

    ExperimentError
    ├── WorkloadError       an unknown workload or parameter, or an invalid value
    ├── QuoteFileError      a file of quotes that cannot be read; the message names file, line and column
    ├── ScenarioError       an invalid scenario; the message names the file and the key
    ├── ScheduleError       an invalid schedule of `mercast torture`; the message names the step
    ├── SimulationError     a run that missed or repeated an owed delivery, or that is not deterministic
    ├── CountingError       lists that cannot be counted without simulating: several paths between clusters
    ├── FigureError         an unknown figure, or results that are missing or damaged
    ├── PackageMissingError an optional package is missing; the message has the command that installs it
    ├── OutputError         results cannot be written; the message names the path and the reason
    ├── BenchPlanError      an impossible comparison: an index that cannot store the workload, no common backend
    ├── WrongAnswerError    an index gave another answer than the reference
    └── NotEmptyError       an index was not empty after all subscriptions were removed

`exit_code` is the exit code of the command line.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

_SHOWN = 8


class ExperimentError(Exception):
    exit_code = 1


class WorkloadError(ExperimentError, ValueError):
    exit_code = 2


class QuoteFileError(ExperimentError, ValueError):
    exit_code = 3


class ScenarioError(ExperimentError, ValueError):
    exit_code = 3


class ScheduleError(ExperimentError, ValueError):
    exit_code = 2


class SimulationError(ExperimentError):
    """An owed delivery was missed or repeated, or two runs with the same seed differ."""


class CountingError(ExperimentError, ValueError):
    exit_code = 3


class FigureError(ExperimentError, ValueError):
    exit_code = 2


class PackageMissingError(ExperimentError):
    exit_code = 3


class OutputError(ExperimentError):
    exit_code = 3

    def __init__(self, path: Path, reason: str) -> None:
        self.path = path
        self.reason = reason
        # Errors of workers are pickled, which calls the constructor with these arguments.
        super().__init__(path, reason)

    def __str__(self) -> str:
        return f"cannot write to {self.path}: {self.reason}"


class BenchPlanError(ExperimentError, ValueError):
    exit_code = 2


class WrongAnswerError(ExperimentError):
    def __init__(
        self, index: str, reference: str, publication: int, *, missing: Sequence[int], added: Sequence[int]
    ) -> None:
        self.index = index
        self.reference = reference
        self.publication = publication
        self.missing = tuple(missing)
        self.added = tuple(added)
        parts = [f"misses {_ids(self.missing)}"] if missing else []
        parts += [f"adds {_ids(self.added)}"] if added else []
        difference = " and ".join(parts) or "gives the right ids, but not in ascending order or not once each"
        super().__init__(f"{index} is wrong on publication {publication}: against {reference} it {difference}")


def _ids(ids: Sequence[int]) -> str:
    shown = ", ".join(map(str, ids[:_SHOWN]))
    more = f" and {len(ids) - _SHOWN:,} more" if len(ids) > _SHOWN else ""
    return f"id{'s' * (len(ids) != 1)} {shown}{more}"


class NotEmptyError(ExperimentError):
    def __init__(self, index: str, subscriptions: int, nodes: int) -> None:
        self.index = index
        self.subscriptions = subscriptions
        self.nodes = nodes
        super().__init__(
            f"{index} is not empty after all subscriptions were removed: {subscriptions:,} subscriptions and "
            f"{nodes:,} nodes are left"
        )
