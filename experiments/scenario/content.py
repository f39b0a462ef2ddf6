"""Content of a scenario's clients: advertisements, subscriptions and publications of each kind of workload."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from experiments.scenario.model import EverythingParameters, WorkloadParameters
from experiments.workloads.be_gen import BeGen, BeGenParameters
from experiments.workloads.stock_quotes import ATTRIBUTES, StockQuoteParameters, StockQuotes
from experiments.workloads.workload import attribute
from matching.expressions.model import TRUE, And, Expression, Operator, Predicate
from matching.expressions.values import Value
from topologies.random_streams import stream


class Content(Protocol):
    """Content of one kind of workload."""

    notice: str
    """A notice that every display of results must show; may be empty."""
    attributes: tuple[str, ...]
    """All attributes that occur in subscriptions."""

    def advertisement(self, number: int, publishers: int) -> Expression:
        """The advertisement of publisher `number` of `publishers`."""
        ...

    def subscriptions(self, count: int) -> Iterator[Expression]: ...

    def published_by(self, numbers: Iterable[int], publishers: int) -> Iterator[dict[str, Value]]:
        """A publication for each number, of publisher `number` of `publishers`."""
        ...


def content_of(parameters: WorkloadParameters, seed: int) -> Content:
    if isinstance(parameters, StockQuoteParameters):
        return _StockContent(parameters, seed)
    if isinstance(parameters, BeGenParameters):
        return _BeGenContent(parameters, seed)
    return _EverythingContent(parameters)


def unrelated_advertisement(content: Content) -> Expression:
    """An advertisement that no subscription to this content intersects: it excludes all attributes of the content."""
    absent = [Predicate(name, Operator.NOT_EXISTS) for name in content.attributes]
    return And([Predicate("unrelated", Operator.EXISTS), *absent])


class _StockContent:
    notice = StockQuotes.notice
    attributes: tuple[str, ...] = ATTRIBUTES

    def __init__(self, parameters: StockQuoteParameters, seed: int) -> None:
        self._parameters = parameters
        self._seed = seed
        self._quotes = self._workload(0)

    def advertisement(self, number: int, publishers: int) -> Expression:
        return self._quotes.advertisement(number, publishers)

    def subscriptions(self, count: int) -> Iterator[Expression]:
        return self._workload(count).subscriptions()

    def published_by(self, numbers: Iterable[int], publishers: int) -> Iterator[dict[str, Value]]:
        return self._quotes.published_by(numbers, publishers)

    def _workload(self, subscriptions: int) -> StockQuotes:
        return StockQuotes(self._parameters, subscriptions=subscriptions, publications=0, seed=self._seed)


class _BeGenContent:
    """Publications are base events and do not depend on the publisher, so every publisher advertises everything."""

    notice = BeGen.notice

    def __init__(self, parameters: BeGenParameters, seed: int) -> None:
        self._parameters = parameters
        self._seed = seed
        self.attributes = tuple(attribute(rank) for rank in range(parameters.dimensions))

    def advertisement(self, number: int, publishers: int) -> Expression:
        return TRUE

    def subscriptions(self, count: int) -> Iterator[Expression]:
        return self._workload(count).subscriptions()

    def published_by(self, numbers: Iterable[int], publishers: int) -> Iterator[dict[str, Value]]:
        rng = stream(self._seed, "be-gen/publications")
        base_events = self._workload(0).base_events
        for _ in numbers:
            yield dict(rng.choice(base_events))

    def _workload(self, subscriptions: int) -> BeGen:
        return BeGen(self._parameters, subscriptions=subscriptions, publications=0, seed=self._seed)


class _EverythingContent:
    notice = ""
    attributes: tuple[str, ...] = ("number",)

    def __init__(self, parameters: EverythingParameters) -> None:
        self._expression = Predicate("number", Operator.GE, (0,))

    def advertisement(self, number: int, publishers: int) -> Expression:
        return self._expression

    def subscriptions(self, count: int) -> Iterator[Expression]:
        for _ in range(count):
            yield self._expression

    def published_by(self, numbers: Iterable[int], publishers: int) -> Iterator[dict[str, Value]]:
        for count, _ in enumerate(numbers):
            yield {"number": count}
