"""BE-Gen: conjunctions with a given probability to match.

With many dimensions, random subscriptions match nothing. So base events are drawn first, and every subscription is
derived from one of them. It has some of the event's pairs, each weakened to a predicate that the pair implies. The
publications are the base events. With 1 / p base events, a publication matches the subscriptions derived from its
event: a share p of all. It matches a few others by chance. With few dimensions, short subscriptions or a steep Zipf
distribution there may be more of these.

[BET 8.2.1]. Defaults are from [THESIS Table 10.3.1], and from [BET Table III] where the thesis states none (operators,
lengths of lists and ranges).

Departs from [BET 8.2.1]: a subscription keeps a fixed number of pairs, not each pair with a probability. The latter
gives very short subscriptions, which match so often by chance that they alone decide the matching probability.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from experiments.errors import WorkloadError
from experiments.workloads.derivation import OTHER_OPERATORS, Domain, OperatorClass, implied_predicate
from experiments.workloads.sampling import zipf
from experiments.workloads.workload import attribute, check_at_least, check_between
from matching.expressions.model import And, Expression, Operator
from matching.expressions.values import Value
from topologies.files.typed_tables import Whole
from topologies.random_streams import stream


@dataclass(frozen=True, slots=True)
class BeGenParameters:
    """The parameters of be-gen."""

    dimensions: Whole = 100
    cardinality: Whole = 100
    subscription_size: Whole = 5
    event_size: Whole = 30
    matching_probability: float = 0.001
    """There are 1 / p base events, rounded: both 0.4 and 0.5 give two."""
    equality: float = 0.2
    """Share of predicates that are equalities. With the operators `min` all are."""
    operators: OperatorClass = OperatorClass.MEDIUM
    zipf: float = 0.0
    """Exponent of the distribution of dimensions; 0 is uniform."""
    range_share: float = 0.12
    largest_list: Whole = 6
    repeats: Whole = 0
    """The number of additional copies of each subscription."""

    def __post_init__(self) -> None:
        check_at_least("be-gen", "cardinality", self.cardinality, 2)
        check_at_least("be-gen", "subscription_size", self.subscription_size, 1)
        if not 1 <= self.event_size <= self.dimensions:
            raise WorkloadError(
                f"be-gen: event_size is {self.event_size}; it must lie between 1 and {self.dimensions}, the dimensions"
            )
        check_between("be-gen", "matching_probability", self.matching_probability, 1e-6, 1)
        check_between("be-gen", "equality", self.equality, 0, 1)
        check_between("be-gen", "zipf", self.zipf, 0, 20)
        check_between("be-gen", "range_share", self.range_share, 0, 1)
        check_at_least("be-gen", "largest_list", self.largest_list, 1)
        check_at_least("be-gen", "repeats", self.repeats, 0)
        if self.subscription_size > self.event_size:
            raise WorkloadError(
                f"be-gen: subscription_size is {self.subscription_size}, but an event has only {self.event_size} pairs "
                f"to derive it from; raise event_size"
            )


class BeGen:
    """The workload be-gen: conjunctions that match with a given probability."""

    notice: ClassVar[str] = ""

    def __init__(self, parameters: BeGenParameters, *, subscriptions: int, publications: int, seed: int) -> None:
        self._parameters = parameters
        self._subscriptions = subscriptions
        self._publications = publications
        self._seed = seed

    def subscriptions(self) -> Iterator[Expression]:
        for number in range(self._subscriptions):
            # Drawn again, not cached: a repeated subscription must be an equal expression, but not the same object.
            original = number // (self._parameters.repeats + 1)
            rng = stream(self._seed, f"be-gen/subscription {original}")
            yield self._derive(rng, self.base_event_of(number))

    def publications(self) -> Iterator[dict[str, Value]]:
        rng = stream(self._seed, "be-gen/publications")
        for _ in range(self._publications):
            yield dict(rng.choice(self.base_events))

    @cached_property
    def base_events(self) -> list[dict[str, int]]:
        parameters = self._parameters
        rng = stream(self._seed, "be-gen/base events")
        ranks = zipf(parameters.dimensions, parameters.zipf)
        return [
            {
                attribute(rank): rng.randrange(parameters.cardinality)
                for rank in sorted(ranks.draw_distinct(rng, parameters.event_size))
            }
            for _ in range(round(1 / parameters.matching_probability))
        ]

    def base_event_of(self, number: int) -> dict[str, int]:
        """The base event of a subscription. Subscriptions use base events in turn, so that all have an equal share."""
        return self.base_events[number // (self._parameters.repeats + 1) % len(self.base_events)]

    def _derive(self, rng: random.Random, base_event: dict[str, int]) -> Expression:
        kept = rng.sample(list(base_event.items()), self._parameters.subscription_size)
        return And.of([implied_predicate(rng, name, value, self._operator(rng), self._domain) for name, value in kept])

    @cached_property
    def _domain(self) -> Domain:
        parameters = self._parameters
        return Domain(parameters.cardinality, parameters.range_share, parameters.largest_list)

    def _operator(self, rng: random.Random) -> Operator:
        others = OTHER_OPERATORS[self._parameters.operators]
        if not others or rng.random() < self._parameters.equality:
            return Operator.EQ
        return rng.choice(others)
