"""Workloads: seeded generators of subscriptions and publications, by name. The same seed gives the same workload on any
machine. It imports no other package of `experiments`.

    workload = create(BeGenParameters(dimensions=300), subscriptions=20_000, publications=100, seed=1)
    for expression in workload.subscriptions(): …
    for publication in workload.publications(): …

Each call of `subscriptions` or `publications` starts over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from experiments.workloads.be_gen import BeGen, BeGenParameters
    from experiments.workloads.registry import Parameters, create, names, parameters_from_text
    from experiments.workloads.stock_quotes import StockQuoteParameters, StockQuotes

__all__ = [
    "BeGen",
    "BeGenParameters",
    "Parameters",
    "StockQuoteParameters",
    "StockQuotes",
    "create",
    "names",
    "parameters_from_text",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "BeGen": "experiments.workloads.be_gen",
        "BeGenParameters": "experiments.workloads.be_gen",
        "Parameters": "experiments.workloads.registry",
        "StockQuoteParameters": "experiments.workloads.stock_quotes",
        "StockQuotes": "experiments.workloads.stock_quotes",
        "create": "experiments.workloads.registry",
        "names": "experiments.workloads.registry",
        "parameters_from_text": "experiments.workloads.registry",
    },
)
