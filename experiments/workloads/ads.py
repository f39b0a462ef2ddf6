"""Display advertisements against sessions of visitors, with the statistics that the papers publish.

The data of [THESIS 10.3.4], the advertisements of an online shop, is not public. This generator has its published
statistics. An advertisement is a conjunction of 1 to 56 conditions, 8 on average, over 122 dimensions such as channel
and region. A session has 20 pairs. The frequencies of dimensions and values are not published; both are drawn from Zipf
distributions. Conditions are on strings, mostly `=` and `IN`, some their negations.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from experiments.workloads.sampling import RankSampler, sizes, zipf
from experiments.workloads.workload import attribute, check_at_least, check_between
from matching.expressions.model import And, Expression, Operator, Predicate
from matching.expressions.values import Value
from topologies.random_streams import stream

_NAMED_DIMENSIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("channel", ("mobile", "pc", "tablet")),
    ("region", ("US", "DE", "CN", "GB", "FR", "JP", "CA", "IT", "ES", "BR", "IN", "NL", "PL", "SE", "AT", "CH")),
    ("position", ("top", "side", "bottom", "search", "cart", "mail")),
    ("gender", ("female", "male", "other")),
    ("age", ("18-24", "25-34", "35-44", "45-54", "55-64", "65+")),
)
"""Names and values of the most frequent dimensions. The others are numbered."""

_LARGEST_LIST = 6


@dataclass(frozen=True, slots=True)
class AdsParameters:
    dimensions: int = 122
    cardinality: int = 40
    """Values of a dimension that is not one of the named ones."""
    subscription_size: float = 8
    """Mean number of conditions."""
    largest_subscription: int = 56
    event_size: int = 20
    equality: float = 0.6
    """Share of conditions that are equalities."""
    negation: float = 0.1
    """Share of conditions that are `!=` or `NOT IN`. The rest are `IN`."""
    zipf: float = 0.8
    """Exponent of the distributions of dimensions and of the values of each."""

    def __post_init__(self) -> None:
        check_at_least("ads", "cardinality", self.cardinality, 2)
        check_between("ads", "largest_subscription", self.largest_subscription, 1, self.dimensions)
        check_between("ads", "subscription_size", self.subscription_size, 1, (1 + self.largest_subscription) / 2)
        check_between("ads", "event_size", self.event_size, 1, self.dimensions)
        check_between("ads", "equality", self.equality, 0, 1)
        check_between("ads", "negation", self.negation, 0, round(1 - self.equality, 12))
        check_between("ads", "zipf", self.zipf, 0, 20)


class Ads:
    notice: ClassVar[str] = "ads is generated: the advertisements are not public, only their published statistics"

    def __init__(self, parameters: AdsParameters, *, subscriptions: int, publications: int, seed: int) -> None:
        self._parameters = parameters
        self._subscriptions = subscriptions
        self._publications = publications
        self._seed = seed
        self._dimensions = zipf(parameters.dimensions, parameters.zipf)
        named = _NAMED_DIMENSIONS[: parameters.dimensions]
        numbered_values = tuple(f"v{number}" for number in range(parameters.cardinality))
        numbered = [(attribute(rank), numbered_values) for rank in range(len(named), parameters.dimensions)]
        self._vocabulary = (*named, *numbered)
        self._values = {
            count: zipf(count, parameters.zipf) for count in dict.fromkeys(len(v) for _, v in self._vocabulary)
        }

    def subscriptions(self) -> Iterator[Expression]:
        rng = stream(self._seed, "ads/subscriptions")
        lengths = sizes(self._parameters.subscription_size, self._parameters.largest_subscription)
        for _ in range(self._subscriptions):
            ranks = self._dimensions.draw_distinct(rng, lengths.draw(rng) + 1)
            yield And.of([self._condition(rng, *self._vocabulary[rank]) for rank in ranks])

    def publications(self) -> Iterator[dict[str, Value]]:
        rng = stream(self._seed, "ads/publications")
        for _ in range(self._publications):
            pairs = [self._vocabulary[rank] for rank in sorted(self._dimensions.draw_distinct(rng, self._event_size))]
            yield {name: values[self._sampler(values).draw(rng)] for name, values in pairs}

    @property
    def _event_size(self) -> int:
        return self._parameters.event_size

    def _sampler(self, values: tuple[str, ...]) -> RankSampler:
        return self._values[len(values)]

    def _condition(self, rng: random.Random, name: str, values: tuple[str, ...]) -> Predicate:
        kind = rng.random()
        is_negation = self._parameters.equality <= kind < self._parameters.equality + self._parameters.negation
        if kind < self._parameters.equality or (is_negation and rng.random() < 0.5):
            operator = Operator.NE if is_negation else Operator.EQ
            return Predicate(name, operator, (values[self._sampler(values).draw(rng)],))
        # At least one value is not in the list: with all values, `IN` would always hold and `NOT IN` never.
        count = rng.randint(min(2, len(values) - 1), min(_LARGEST_LIST, len(values) - 1))
        listed = tuple(values[rank] for rank in self._sampler(values).draw_distinct(rng, count))
        return Predicate(name, Operator.NOT_IN if is_negation else Operator.IN, listed)
