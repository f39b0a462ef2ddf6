"""What can go wrong in experiments.

    ExperimentError
    ├── WorkloadError       no workload or parameter of that name, or a value that it cannot have
    ├── QuoteFileError      a file of quotes that cannot be read; the message names file, line and column
    ├── ScenarioError       a scenario that says what cannot be; the message names the file and the key
    ├── SimulationError     a run that broke a promise
    ├── CountingError       lists that cannot be counted without simulating: several ways between clusters
    ├── FigureError         no experiment of that name, or results that are missing or damaged
    ├── PackageMissingError an extra of the installation is missing; the message has the command that installs it
    ├── OutputError         results cannot be written where they are wanted; the message names the path and why
    ├── BenchPlanError      a comparison that cannot be made: an index that cannot hold the workload, no common backend
    ├── WrongAnswerError    an index did not find what the reference found
    └── NotEmptyError       an index kept something after all subscriptions were removed

`exit_code` is what the command line returns for it.
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


class SimulationError(ExperimentError):
    """A run that broke a promise: something owed was missed or came twice, or two equal runs differ."""


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
        # The arguments as they are: workers' errors come back pickled.
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
