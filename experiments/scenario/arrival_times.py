"""Moments of virtual time in integer nanoseconds, at equal intervals or at random.

Random durations are rounded to microseconds, so that they do not depend on the last bit of a platform's logarithm.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

SECOND_NS = 1_000_000_000
MICROSECOND_NS = 1_000


def nanoseconds(seconds: float) -> int:
    return round(seconds * SECOND_NS)


def exponential(rng: random.Random, mean_s: float) -> int:
    """A random duration in nanoseconds, at least a microsecond, from the exponential distribution of this mean."""
    drawn_us = round(-math.log(1.0 - rng.random()) * mean_s * 1_000_000)
    return max(1, drawn_us) * MICROSECOND_NS


def evenly(per_minute: float) -> Iterator[int]:
    """Moments at equal intervals from 0 on. Each is rounded separately, so that errors do not add up."""
    number = 0
    while True:
        yield round(number * 60 * SECOND_NS / per_minute)
        number += 1


def at_random(rng: random.Random, per_minute: float, begin: int = 0, end: int | None = None) -> Iterator[int]:
    """Moments of a Poisson process between begin and end; none if the rate is 0."""
    moment = begin
    while per_minute:
        moment += exponential(rng, 60 / per_minute)
        if end is not None and moment >= end:
            return
        yield moment
