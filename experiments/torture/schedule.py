"""Schedules: the steps of a random run, as a list that can be shortened and written as a text.

A step has a kind and a draw, from which all its choices follow: which broker, which link, how long. So each step stays
meaningful when others are removed. The text of a schedule has a word for each step, such as `publish.2f0`.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

from experiments.errors import ScheduleError

BASIC_FAULTS = ("cut", "repair", "crash", "restart", "bounce")
DURABLE_FAULTS = ("failed-commit",)
"""Faults of the store: only durable brokers have one."""
FAULTS = (
    *BASIC_FAULTS,
    "partition",
    "half-open",
    "slow",
    "clock",
    "join",
    "leave",
    "narrow",
    "move",
    *DURABLE_FAULTS,
)
"""All kinds of faults. `repair` and `restart` undo some."""
FREQUENCIES = {"cut": 2, "repair": 2, "crash": 2}
"""How many times as often as others a kind of fault is drawn."""
STEPS = ("subscribe", "publish", "withdraw", "advertise", "pause", "heal", *FAULTS)
DRAWS = 1 << 16

ROUNDS = 10
"""Faults in a schedule. The faults of `bounce` and `clock` count as one."""
CHANGES_BEFORE_FAULT = 3
CHANGES_AFTER_HEAL = 4
CHANGES_WITHOUT_FAULTS = 25


class Step(NamedTuple):
    kind: str
    draw: int


def steps_of(seed: int, faults: Sequence[str], *, is_open: bool) -> tuple[Step, ...]:
    """The schedule of a seed: subscriptions, then changes of clients between faults, then more changes after all faults
    are repaired. There is a pause after each change and each fault, which may be 0."""
    generator = random.Random(f"schedule {seed}")
    changes = ("subscribe",) * 4 + ("publish",) * 9 + ("withdraw",) + ("advertise",) * (1 if is_open else 3)
    frequent = [kind for kind in faults for _ in range(FREQUENCIES.get(kind, 1))]
    kinds = ["subscribe"] * 4

    def change(count: int) -> None:
        for _ in range(count):
            kinds.extend((generator.choice(changes), "pause"))

    if faults:
        for _ in range(ROUNDS):
            change(CHANGES_BEFORE_FAULT)
            kinds += [generator.choice(frequent), "pause"]
        kinds.append("heal")
        change(CHANGES_AFTER_HEAL)
    else:
        change(CHANGES_WITHOUT_FAULTS)
    return tuple(Step(kind, generator.randrange(DRAWS)) for kind in kinds)


def text_of(steps: Sequence[Step]) -> str:
    """The steps as words, with their draws in hexadecimal digits."""
    return " ".join(f"{step.kind}.{step.draw:x}" for step in steps)


def read_steps(text: str) -> tuple[Step, ...]:
    """The steps of a text that `text_of` wrote."""
    steps: list[Step] = []
    for place, word in enumerate(text.split(), start=1):
        kind, _, draw = word.rpartition(".")
        if kind not in STEPS:
            raise ScheduleError(f"step {place}, {word!r}: no step is called {kind!r}; there are {', '.join(STEPS)}")
        try:
            steps.append(Step(kind, int(draw, 16)))
        except ValueError:
            raise ScheduleError(f"step {place}, {word!r}: {draw!r} is no hexadecimal number") from None
    return tuple(steps)
