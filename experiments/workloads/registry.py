"""The workloads by name, as a literal table."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

from experiments.errors import WorkloadError
from experiments.workloads.abe_gen import AbeGen, AbeGenParameters
from experiments.workloads.ads import Ads, AdsParameters
from experiments.workloads.be_gen import BeGen, BeGenParameters
from experiments.workloads.query_log import QueryLog, QueryLogParameters
from experiments.workloads.stock_quotes import StockQuoteParameters, StockQuotes
from experiments.workloads.workload import Workload
from matching.nearest import nearest
from matching.registry import Accepts

Parameters: TypeAlias = BeGenParameters | AbeGenParameters | QueryLogParameters | AdsParameters | StockQuoteParameters
"""The parameters of any workload."""


@dataclass(frozen=True, slots=True)
class WorkloadInfo:
    name: str
    title: str
    makes: Accepts
    """The expressions that an index must accept to store the workload's subscriptions."""
    workload: Callable[..., Workload]
    parameters: type[Parameters]

    @property
    def parameter_names(self) -> tuple[str, ...]:
        return tuple(field.name for field in dataclasses.fields(self.parameters))


WORKLOADS = {
    info.name: info
    for info in (
        WorkloadInfo("be-gen", "conjunctions that match at will", Accepts.CONJUNCTIONS, BeGen, BeGenParameters),
        WorkloadInfo("abe-gen", "arbitrary expressions", Accepts.ANY_EXPRESSION, AbeGen, AbeGenParameters),
        WorkloadInfo("query-log", "queries by keywords", Accepts.CONJUNCTIONS, QueryLog, QueryLogParameters),
        WorkloadInfo("ads", "display advertisements", Accepts.CONJUNCTIONS, Ads, AdsParameters),
        WorkloadInfo("stock-quotes", "daily stock quotes", Accepts.CONJUNCTIONS, StockQuotes, StockQuoteParameters),
    )
}


def names() -> tuple[str, ...]:
    """The names of all workloads."""
    return tuple(WORKLOADS)


def info(name: str) -> WorkloadInfo:
    if name not in WORKLOADS:
        raise WorkloadError(
            f"no workload is called {name!r}{nearest(name, WORKLOADS)}; there are {', '.join(WORKLOADS)}"
        )
    return WORKLOADS[name]


def info_of(parameters: Parameters) -> WorkloadInfo:
    """The workload to which the parameters belong."""
    return next(known for known in WORKLOADS.values() if known.parameters is type(parameters))


def create(parameters: Parameters, *, subscriptions: int, publications: int, seed: int) -> Workload:
    """Creates the workload that these parameters describe."""
    workload = info_of(parameters).workload
    return workload(parameters, subscriptions=subscriptions, publications=publications, seed=seed)


def parameters_from_text(name: str, settings: Mapping[str, str]) -> Parameters:
    """A workload's parameters from texts of the command line. Missing parameters have their defaults."""
    chosen = info(name)
    types = typing.get_type_hints(chosen.parameters)
    values: dict[str, Any] = {}
    for key, text in settings.items():
        parameter = key.replace("-", "_")
        if parameter not in chosen.parameter_names:
            raise WorkloadError(
                f"{name} has no parameter {key!r}{nearest(parameter, chosen.parameter_names)}; "
                f"there are {', '.join(chosen.parameter_names)}"
            )
        values[parameter] = _parse(f"{name}: {parameter}", types[parameter], text)
    return chosen.parameters(**values)


def _parse(where: str, wanted: Any, text: str) -> int | float | str | tuple[float, ...]:
    if isinstance(wanted, type) and issubclass(wanted, StrEnum):
        if text not in list(wanted):
            raise WorkloadError(f"{where} is {text!r}; it must be one of {', '.join(wanted)}")
        return wanted(text)
    readers: dict[Any, tuple[Callable[[str], int | float | str | tuple[float, ...]], str]] = {
        int: (int, "a whole number"),
        float: (float, "a number"),
        str: (str, "text"),
        tuple[float, ...]: (lambda many: tuple(float(one) for one in many.split(",")), "numbers with commas between"),
    }
    read, type_text = readers[wanted]
    try:
        return read(text)
    except ValueError:
        raise WorkloadError(f"{where} is {text!r}; it must be {type_text}") from None
