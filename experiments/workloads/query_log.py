"""Keyword queries against documents, with the statistics that the papers publish.

The data of [THESIS 10.3.3], the queries and documents of the SIGMOD 2013 programming contest, is not public here. This
generator has its published statistics. A query is a conjunction of equalities on strings, 2.78 on average, over 17,577
dimensions. A document has 93 pairs. The frequencies of words are not published; dimensions and values are drawn from
Zipf distributions, which words of a language follow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from experiments.workloads.sampling import sizes, zipf
from experiments.workloads.workload import attribute, check_at_least, check_between
from matching.expressions.model import And, Expression, Operator, Predicate
from matching.expressions.values import Value
from topologies.random_streams import stream


@dataclass(frozen=True, slots=True)
class QueryLogParameters:
    dimensions: int = 17_577
    cardinality: int = 50
    """Values of a dimension."""
    subscription_size: float = 2.78
    """Mean number of predicates."""
    largest_subscription: int = 12
    event_size: int = 93
    zipf: float = 0.8
    """Exponent of the distributions of dimensions and of the values of each."""

    def __post_init__(self) -> None:
        check_at_least("query-log", "cardinality", self.cardinality, 1)
        check_between("query-log", "largest_subscription", self.largest_subscription, 1, self.dimensions)
        check_between("query-log", "subscription_size", self.subscription_size, 1, (1 + self.largest_subscription) / 2)
        check_between("query-log", "event_size", self.event_size, 1, self.dimensions)
        check_between("query-log", "zipf", self.zipf, 0, 20)


class QueryLog:
    notice: ClassVar[str] = (
        "query-log is generated: the SIGMOD 2013 queries are not public here, only their published statistics"
    )

    def __init__(self, parameters: QueryLogParameters, *, subscriptions: int, publications: int, seed: int) -> None:
        self._parameters = parameters
        self._subscriptions = subscriptions
        self._publications = publications
        self._seed = seed
        self._dimensions = zipf(parameters.dimensions, parameters.zipf)
        self._values = zipf(parameters.cardinality, parameters.zipf)

    def subscriptions(self) -> Iterator[Expression]:
        rng = stream(self._seed, "query-log/subscriptions")
        lengths = sizes(self._parameters.subscription_size, self._parameters.largest_subscription)
        for _ in range(self._subscriptions):
            ranks = self._dimensions.draw_distinct(rng, lengths.draw(rng) + 1)
            yield And.of([Predicate(attribute(rank), Operator.EQ, (f"v{self._values.draw(rng)}",)) for rank in ranks])

    def publications(self) -> Iterator[dict[str, Value]]:
        rng = stream(self._seed, "query-log/publications")
        for _ in range(self._publications):
            ranks = sorted(self._dimensions.draw_distinct(rng, self._parameters.event_size))
            yield {attribute(rank): f"v{self._values.draw(rng)}" for rank in ranks}
