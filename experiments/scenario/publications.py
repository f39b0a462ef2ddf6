"""Publications of a scenario with their times, generated one at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice, takewhile, tee
from pathlib import Path

from experiments.scenario.arrival_times import at_random, evenly, nanoseconds
from experiments.scenario.clients import ClientPlan, Publisher
from experiments.scenario.content import content_of
from experiments.scenario.model import Scenario, WorkloadSetup
from experiments.scenario.workload import publishing_window_ns, read_times
from matching.expressions.values import Value
from topologies.random_streams import stream


@dataclass(frozen=True, slots=True)
class TimedPublication:
    at_ns: int
    """Time from the start of the run."""
    publisher: str
    broker: str
    attributes: dict[str, Value]
    payload_bytes: int


def publications(scenario: Scenario, plan: ClientPlan) -> Iterator[TimedPublication]:
    """All publications in the order of time. An iterator: a publication is generated when it is needed."""
    publishers = [publisher for publisher in plan.publishers if publisher.is_publishing]
    content = content_of(scenario.workload.parameters, scenario.seed)
    numbers, for_content = tee(_publisher_numbers(scenario, publishers))
    contents = content.published_by(for_content, len(publishers))
    start, _ = publishing_window_ns(scenario)
    for at, number, attributes in zip(_times(scenario), numbers, contents, strict=False):
        publisher = publishers[number]
        yield TimedPublication(
            start + at, publisher.name, publisher.broker, attributes, scenario.workload.payload_bytes
        )


def _publisher_numbers(scenario: Scenario, publishers: Sequence[Publisher]) -> Iterator[int]:
    """Numbers of publishers: random ones for Poisson arrivals, else in turn so that all have the same even rate."""
    if scenario.workload.arrivals == "poisson":
        rng = stream(scenario.seed, "publications/publishers")
        while True:
            yield rng.randrange(len(publishers))
    yield from (number % len(publishers) for number in count())


def _times(scenario: Scenario) -> Iterator[int]:
    setup = scenario.workload
    times = _unlimited_times(setup, scenario.seed)
    if setup.duration_s is not None:
        end = nanoseconds(setup.duration_s)
        times = takewhile(lambda time: time < end, times)
    return times if setup.publications is None else islice(times, setup.publications)


def _unlimited_times(setup: WorkloadSetup, seed: int) -> Iterator[int]:
    if setup.times_file is not None:
        return map(nanoseconds, read_times(Path(setup.times_file)))
    if setup.arrivals == "poisson":
        return at_random(stream(seed, "publications/times"), setup.rate)
    return evenly(setup.rate)
