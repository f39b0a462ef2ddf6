"""The workloads by name, as a literal table."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from experiments.errors import WorkloadError
from experiments.workloads.abe_gen import AbeGen, AbeGenParameters
from experiments.workloads.ads import Ads, AdsParameters
from experiments.workloads.be_gen import BeGen, BeGenParameters
from experiments.workloads.query_log import QueryLog, QueryLogParameters
from experiments.workloads.stock_quotes import StockQuoteParameters, StockQuotes
from experiments.workloads.workload import Workload
from matching.nearest import nearest
from matching.registry import Accepts
from topologies.files.typed_tables import TableReader

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
    texts = {key.replace("-", "_"): text for key, text in settings.items()}
    for key in texts:
        if key not in chosen.parameter_names:
            raise WorkloadError(
                f"{name} has no parameter {key!r}{nearest(key, chosen.parameter_names)}; "
                f"there are {', '.join(chosen.parameter_names)}"
            )
    return TableReader(name, WorkloadError).read_texts(chosen.parameters, texts)
