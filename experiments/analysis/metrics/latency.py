"""Latency: the time from publishing to delivery, over all deliveries."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from experiments.analysis.columns import MILLISECONDS, RUN_COLUMNS, spread, step_of


def latency_ms() -> Column:
    return (f.col("delivered_s") - f.col("published_s")) * MILLISECONDS


def latency(deliveries: DataFrame, *by: str) -> DataFrame:
    """run, protocol, `by`…, deliveries, latency_ms_mean, _p50, _p90, _p95, _p99, _max."""
    grouped = deliveries.groupBy(*RUN_COLUMNS, *by)
    return spread(grouped, {"latency_ms": latency_ms()}, f.count("*").alias("deliveries"))


def latency_over_time(deliveries: DataFrame, step_s: float) -> DataFrame:
    """Like `latency`, grouped by `at_s`: the start of the step of time in which the publication was published."""
    return latency(deliveries.withColumn("at_s", step_of(f.col("published_s"), step_s)), "at_s")
