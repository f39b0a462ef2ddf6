"""Expressions that several themes share: what identifies a run, percentiles, time in even steps."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as f

RUN_COLUMNS = ("run", "protocol")
"""In every table: the run's label, and its protocol."""

PUBLISH = "publish"
"""The kind of a hop that carries a publication."""

PERCENTILES = {"p50": 0.50, "p90": 0.90, "p95": 0.95, "p99": 0.99}
ACCURACY = 10_000
"""Percentiles are exact up to some thousands of values in a group, and within 1/10,000 of a rank beyond."""

MILLISECONDS = 1_000


def spread(value: Column, name: str) -> list[Column]:
    """Aggregates of a value under names that begin with `name`: mean, percentiles, largest."""
    percentiles = [
        f.percentile_approx(value, f.lit(share), ACCURACY).alias(f"{name}_{word}")
        for word, share in PERCENTILES.items()
    ]
    return [f.avg(value).alias(f"{name}_mean"), *percentiles, f.max(value).alias(f"{name}_max")]


def step_of(at_s: Column, step_s: float) -> Column:
    """The start of the even step of time that a moment is in."""
    return f.floor(at_s / f.lit(step_s)) * f.lit(step_s)


def ratio(part: Column, whole: Column) -> Column:
    """Empty where there is no whole."""
    return f.when(whole != 0, part / whole)
