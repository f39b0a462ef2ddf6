"""The protocol of workloads, and checks of their parameters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Protocol

from experiments.errors import WorkloadError
from matching.expressions.model import Expression
from matching.expressions.values import Value


class Workload(Protocol):
    """Generates subscriptions and publications one at a time. Each call of a method starts over."""

    notice: ClassVar[str]
    """A notice that every display of the workload's results must show; may be empty."""

    def subscriptions(self) -> Iterator[Expression]: ...

    def publications(self) -> Iterator[dict[str, Value]]: ...


def check_between(workload: str, parameter: str, value: float, smallest: float, largest: float) -> None:
    if not smallest <= value <= largest:
        raise WorkloadError(f"{workload}: {parameter} is {value}; it must lie between {smallest} and {largest}")


def check_at_least(workload: str, parameter: str, value: float, smallest: float) -> None:
    if not value >= smallest:
        raise WorkloadError(f"{workload}: {parameter} is {value}; it must be at least {smallest}")


def attribute(rank: int) -> str:
    """The name of a dimension; under a Zipf distribution `a0` is the most frequent."""
    return f"a{rank}"
