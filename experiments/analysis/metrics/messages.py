"""Messages between brokers, by kind."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from experiments.analysis.columns import RUN_COLUMNS


def messages_by_kind(hops: DataFrame, *by: str) -> DataFrame:
    """run, protocol, `by`…, kind, messages, header_bytes, body_bytes, bytes_mean."""
    return hops.groupBy(*RUN_COLUMNS, *by, "kind").agg(
        f.count("*").alias("messages"),
        f.sum("header_bytes").alias("header_bytes"),
        f.sum("body_bytes").alias("body_bytes"),
        f.avg(f.col("header_bytes") + f.col("body_bytes")).alias("bytes_mean"),
    )
