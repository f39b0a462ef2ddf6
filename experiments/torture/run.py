"""Runs schedules, one or many, and shortens those that fail.

The kind of a schedule depends on its seed, as far as the plan leaves it open: protocol, mode, options, loss.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from experiments.torture.minimise import minimise
from experiments.torture.random_scenario import Scenario
from experiments.torture.schedule import FAULTS, Step
from routing.registry import names

MINIMISE_RUNS_MAX = 400
"""Runs that shortening one schedule may take."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What schedules may be like. None leaves a choice to the seed."""

    protocols: tuple[str, ...] = ()
    """Empty: all, in turn."""
    is_durable: bool | None = None
    is_open: bool | None = None
    matcher: str = "auto"
    faults: tuple[str, ...] | None = None
    """None: all kinds in most schedules, none in some."""
    loss: float | None = None
    reorganises: bool | None = None
    options: tuple[str, ...] | None = None
    """Options of the router that are switched on."""

    def scenario(self, seed: int, steps: tuple[Step, ...] | None = None) -> Scenario:
        """The scenario of a seed. It depends on the seed and the plan only."""
        chosen = random.Random(f"kind of {seed}")
        protocols = self.protocols or names()
        protocol = protocols[seed % len(protocols)]
        options = [option for option in ("readvertise", "covering") if chosen.random() < 0.25 and protocol == "fbr"]
        is_durable, is_open = chosen.random() < 0.5, chosen.random() < 0.6
        loss = chosen.choice((0.0, 0.0, 0.0, 0.1))
        has_faults = chosen.random() < 0.85
        reorganises = protocol in ("d-dbr", "merc") and chosen.random() < 0.1
        return Scenario(
            seed,
            protocol,
            self.matcher,
            is_durable=is_durable if self.is_durable is None else self.is_durable,
            is_open=is_open if self.is_open is None else self.is_open,
            loss=loss if self.loss is None else self.loss,
            has_faults=has_faults if self.faults is None else bool(self.faults),
            reorganises=reorganises if self.reorganises is None else self.reorganises,
            options=dict.fromkeys(options if self.options is None else self.options, True),
            faults=self.faults or FAULTS,
            steps=steps,
        )


@dataclass(frozen=True, slots=True)
class Failure:
    """A schedule that failed."""

    seed: int
    protocol: str
    message: str
    replay: str
    """The command that replays it, with the fewest steps that fail."""
    steps: int


@dataclass(slots=True)
class Tally:
    """The results of some schedules."""

    schedules: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By protocol and mode."""
    pairs: Counter[str] = field(default_factory=Counter)
    """Expected pairs of publication and client, by result."""
    weak: int = 0
    """Schedules of whose expected pairs less than half are owed."""
    cpu_seconds: float = 0.0
    virtual_seconds: float = 0.0
    publications: int = 0
    failures: list[Failure] = field(default_factory=list)

    @property
    def count(self) -> int:
        return self.schedules.total()

    def add(self, other: Tally) -> None:
        self.schedules += other.schedules
        self.pairs += other.pairs
        self.weak += other.weak
        self.cpu_seconds += other.cpu_seconds
        self.virtual_seconds += other.virtual_seconds
        self.publications += other.publications
        self.failures += other.failures


def failure_of(scenario: Scenario) -> str:
    """Runs a scenario. Returns why it failed, or no text."""
    try:
        scenario.run()
    except Exception as error:
        # Also an error that the core raised: it is a defect.
        return f"{type(error).__name__}: {error}".strip()
    return ""


def run_seeds(plan: Plan, seeds: Sequence[int], steps: tuple[Step, ...] | None = None) -> Tally:
    """Runs the schedules of these seeds in this process. Shortens those that fail, unless their steps are given."""
    tally = Tally()
    start = time.process_time()
    for seed in seeds:
        scenario = plan.scenario(seed, steps)
        failure = failure_of(scenario)
        tally.schedules[scenario.protocol, "durable" if scenario.is_durable else "memory"] += 1
        tally.virtual_seconds += scenario.world.now / 1e9
        tally.publications += len(scenario.sent)
        if failure:
            tally.failures.append(shortened(plan, seed, failure) if steps is None else _described(scenario, failure))
        else:
            tally.pairs += scenario.pairs
            tally.weak += scenario.is_weak
    tally.cpu_seconds = time.process_time() - start
    return tally


def shortened(plan: Plan, seed: int, failure: str) -> Failure:
    """Removes steps while the schedule fails, with whatever message."""
    kept = _described(plan.scenario(seed), failure)

    def fails(steps: tuple[Step, ...]) -> bool:
        nonlocal kept
        scenario = plan.scenario(seed, steps)
        message = failure_of(scenario)
        if message:
            kept = _described(scenario, message)
        return bool(message)

    minimise(plan.scenario(seed).schedule, fails, MINIMISE_RUNS_MAX)
    return kept


def _described(scenario: Scenario, failure: str) -> Failure:
    steps = scenario.steps = scenario.schedule
    message, _, _ = failure.partition("\nreplay:")
    return Failure(scenario.seed, scenario.protocol, message, scenario.command(), len(steps))


def batches(seeds: range, size: int) -> Iterator[range]:
    for start in range(0, len(seeds), size):
        yield seeds[start : start + size]
