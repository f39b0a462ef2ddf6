"""Expressions that several modules share: columns of a run, percentiles, even steps of time."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, GroupedData
from pyspark.sql import functions as f

RUN_COLUMNS = ("run", "protocol")
"""Columns of every table: the run's label and its protocol."""

PUBLISH = "publish"
"""The kind of a hop that carries a publication."""

PERCENTILES = {"p50": 0.50, "p90": 0.90, "p95": 0.95, "p99": 0.99}
ACCURACY = 10_000
"""Percentiles are exact up to some thousands of values in a group. Above that, their rank is within 1/10,000."""

MILLISECONDS = 1_000


def spread(grouped: GroupedData, values: Mapping[str, Column], *others: Column) -> DataFrame:
    """Mean, percentiles and maximum of each value, in columns whose names begin with the value's name.

    Columns of `others` come first. The percentiles of a value are one aggregate: separate ones would each keep a sketch
    of all values.
    """
    shares = f.array(*(f.lit(share) for share in PERCENTILES.values()))
    aggregates = [*others]
    for name, value in values.items():
        aggregates += [
            f.avg(value).alias(f"{name}_mean"),
            f.percentile_approx(value, shares, ACCURACY).alias(f"{name}_percentiles"),
            f.max(value).alias(f"{name}_max"),
        ]
    found = grouped.agg(*aggregates)
    columns: list[Column] = []
    for column in found.columns:
        name = column.removesuffix("_percentiles")
        if name in values and name != column:
            columns += [f.col(column)[place].alias(f"{name}_{word}") for place, word in enumerate(PERCENTILES)]
        else:
            columns.append(f.col(column))
    return found.select(*columns)


def step_of(at_s: Column, step_s: float) -> Column:
    """The start of the step of time that contains `at_s`."""
    return f.floor(at_s / f.lit(step_s)) * f.lit(step_s)


def ratio(part: Column, whole: Column) -> Column:
    """part / whole; null if whole is zero."""
    return f.when(whole != 0, part / whole)
