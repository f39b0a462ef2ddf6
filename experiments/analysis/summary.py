"""The summary with one row for each run, joined from other tables, and the comparison of runs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import NumericType

from experiments.analysis.columns import RUN_COLUMNS, ratio

SUMMARY_COLUMNS: dict[str, tuple[str, ...]] = {
    "latency": ("latency_ms_mean", "latency_ms_p50", "latency_ms_p95", "latency_ms_p99"),
    "hops": ("hops_mean",),
    "routing_accuracy": ("interested_share_mean", "inverse_hops"),
    "destinations": ("destinations_mean", "destinations_at_source_mean"),
    "matching_work": ("matches_mean",),
    "stored_subscriptions": ("stored_subscriptions_mean", "copies_mean", "routing_table_bytes_max"),
}
"""The columns of the summary from tables with one row for each run."""


def summary(tables: Mapping[str, DataFrame]) -> DataFrame:
    """run, protocol, and a column for each number of a run. `tables` are results by name."""
    busiest = tables["broker_load"].groupBy(*RUN_COLUMNS).agg(f.max("busy_share").alias("busy_share_max"))
    sent = (
        tables["messages_by_kind"]
        .groupBy(*RUN_COLUMNS)
        .agg(f.sum("messages").alias("messages"), f.sum(f.col("header_bytes") + f.col("body_bytes")).alias("bytes"))
    )
    parts = [tables[name].select(*RUN_COLUMNS, *columns) for name, columns in SUMMARY_COLUMNS.items()]
    return reduce(
        lambda joined, part: joined.join(part, list(RUN_COLUMNS), "left"), [tables["delivery"], *parts, busiest, sent]
    )


def comparison(summary: DataFrame, first: str) -> DataFrame:
    """run, figure, first, second, difference (second - first), ratio (second / first).

    Compares the numbers of every other run with those of the run `first`.
    """
    figures: list[Column | str] = [field.name for field in summary.schema if isinstance(field.dataType, NumericType)]
    rows = summary.select("run", *(f.col(str(name)).cast("double").alias(str(name)) for name in figures))
    values = rows.unpivot(["run"], figures, "figure", "value")
    is_first = f.col("run") == first
    ones = values.where(is_first).select("figure", f.col("value").alias("first"))
    others = values.where(~is_first).select("run", "figure", f.col("value").alias("second"))
    return others.join(f.broadcast(ones), "figure").select(
        "run",
        "figure",
        "first",
        "second",
        (f.col("second") - f.col("first")).alias("difference"),
        ratio(f.col("second"), f.col("first")).alias("ratio"),
    )
