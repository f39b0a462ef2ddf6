"""Publishers and subscribers of a scenario: their brokers, times, advertisements and subscriptions.

The plan depends only on the scenario and on the brokers' ids. So protocols whose overlays have the same ids have the
same clients.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from experiments.errors import ScenarioError
from experiments.scenario.arrival_times import at_random, exponential
from experiments.scenario.content import content_of, unrelated_advertisement
from experiments.scenario.model import Scenario
from experiments.scenario.workload import publishing_window_ns
from matching.expressions.model import Expression
from matching.expressions.printing import to_text
from topologies.errors import nearest
from topologies.overlay import Overlay
from topologies.random_streams import stream


@dataclass(frozen=True, slots=True)
class Publisher:
    name: str
    broker: str
    advertisement: str | None
    """The text of its expression; None if every broker counts as a publisher of everything."""
    is_publishing: bool = True
    """False if its advertisement matches no subscription."""


@dataclass(frozen=True, slots=True)
class Subscriber:
    name: str
    broker: str
    subscriptions: tuple[str, ...]
    """The texts of their expressions."""
    arrives_ns: int = 0
    leaves_ns: int | None = None
    """None if it stays to the end of the run."""


@dataclass(frozen=True, slots=True)
class ClientPlan:
    publishers: tuple[Publisher, ...]
    subscribers: tuple[Subscriber, ...]
    """Permanent subscribers first, then those that arrive and leave, by arrival."""
    notice: str = ""
    """A notice that every display of results must show; may be empty."""


def place_clients(scenario: Scenario, overlay: Overlay) -> ClientPlan:
    content = content_of(scenario.workload.parameters, scenario.seed)
    subscribers = _permanent_subscribers(scenario, overlay) + list(_churn_subscribers(scenario, overlay))
    expressions = content.subscriptions(len(subscribers) * scenario.clients.subscriptions_each)
    texts = _Texts()
    return ClientPlan(
        publishers=tuple(_publishers(scenario, overlay)),
        subscribers=tuple(
            Subscriber(
                name=subscriber.name,
                broker=subscriber.broker,
                subscriptions=tuple(map(texts.of, islice(expressions, scenario.clients.subscriptions_each))),
                arrives_ns=subscriber.arrives_ns,
                leaves_ns=subscriber.leaves_ns,
            )
            for subscriber in subscribers
        ),
        notice=content.notice,
    )


def _publishers(scenario: Scenario, overlay: Overlay) -> Iterator[Publisher]:
    setup = scenario.clients
    rng = stream(scenario.seed, "clients/publishers' brokers")
    candidates = _candidate_brokers("publishers_at", setup.publishers_at, scenario, overlay)
    brokers = _brokers_of(setup.publishers, candidates, setup.placement, rng)
    matching = _matching_brokers(scenario, brokers)
    content = content_of(scenario.workload.parameters, scenario.seed)
    publishing = sum(broker in matching for broker in brokers)
    names = _names("p", len(brokers))
    number = 0
    for name, broker in zip(names, brokers, strict=True):
        is_publishing = broker in matching
        if is_publishing:
            advertised = content.advertisement(number, publishing)
            number += 1
        else:
            advertised = unrelated_advertisement(content)
        text = to_text(advertised) if scenario.advertise == "strict" else None
        yield Publisher(name, broker, text, is_publishing)


def _matching_brokers(scenario: Scenario, brokers: Sequence[str]) -> set[str]:
    """The publishers' brokers whose advertisements match subscriptions, at least one."""
    distinct = sorted(set(brokers))
    count = max(1, round(scenario.clients.advertised_share * len(distinct)))
    return set(stream(scenario.seed, "clients/matching advertisements").sample(distinct, count))


def _permanent_subscribers(scenario: Scenario, overlay: Overlay) -> list[Subscriber]:
    setup = scenario.clients
    rng = stream(scenario.seed, "clients/subscribers' brokers")
    candidates = _candidate_brokers("subscribers_at", setup.subscribers_at, scenario, overlay)
    brokers = _brokers_of(setup.subscribers, candidates, setup.placement, rng)
    return [Subscriber(name, broker, ()) for name, broker in zip(_names("s", len(brokers)), brokers, strict=True)]


def _churn_subscribers(scenario: Scenario, overlay: Overlay) -> Iterator[Subscriber]:
    churn = scenario.clients.churn
    rng = stream(scenario.seed, "clients/churn")
    candidates = _candidate_brokers("subscribers_at", scenario.clients.subscribers_at, scenario, overlay)
    begin, end = publishing_window_ns(scenario)
    times = list(at_random(rng, churn.per_minute, begin, end))
    for name, arrives in zip(_names("v", len(times)), times, strict=True):
        leaves = arrives + exponential(rng, churn.mean_stay_s)
        yield Subscriber(name, rng.choice(candidates), (), arrives, leaves if leaves < end else None)


def _candidate_brokers(key: str, wanted: Sequence[str], scenario: Scenario, overlay: Overlay) -> list[str]:
    """The brokers that clients may be at. Resolves `first` and `last`."""
    ends = {"first": overlay.ids[0], "last": overlay.ids[-1]}
    brokers = []
    for name in wanted or overlay.ids:
        broker = name if name in overlay.ids else ends.get(name)
        if broker is None:
            known = nearest(name, (*overlay.ids, *ends))
            raise ScenarioError(f"{scenario.source}: clients.{key} names {name!r}; {known}")
        brokers.append(broker)
    return brokers


def _brokers_of(count: int | str, candidates: Sequence[str], placement: str, rng: random.Random) -> list[str]:
    """The broker of each client."""
    if isinstance(count, str):
        return list(candidates)
    if placement == "random":
        return [rng.choice(candidates) for _ in range(count)]
    return [candidates[number % len(candidates)] for number in range(count)]


def _names(letter: str, count: int) -> list[str]:
    """Names of clients. Numbers are padded, so that sorted names are in the order of clients."""
    width = max(3, len(str(count)))
    return [f"{letter}{number:0{width}d}" for number in range(1, count + 1)]


class _Texts:
    """Caches texts of expressions, because many subscriptions are equal."""

    def __init__(self) -> None:
        self._texts: dict[Expression, str] = {}

    def of(self, expression: Expression) -> str:
        if expression not in self._texts:
            self._texts[expression] = to_text(expression)
        return self._texts[expression]
