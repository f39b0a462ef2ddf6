"""State of brokers in their last rows: subscriptions, their copies, advertisements and routing tables."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from broker.trace.schema import TABLES
from experiments.analysis.columns import RUN_COLUMNS, ratio

STATE = [column.name for column in TABLES["brokers"].row_columns if column.name != "broker"]


def latest_state(brokers: DataFrame) -> DataFrame:
    """The last row of each broker. `stored_subscriptions` counts those of its own clients and of other brokers."""
    last = brokers.groupBy(*RUN_COLUMNS, "broker").agg(f.max_by(f.struct(*STATE), "at_s").alias("state"))
    stored = f.col("local_subscriptions") + f.col("remote_subscriptions")
    return last.select(*RUN_COLUMNS, "broker", "state.*").withColumn("stored_subscriptions", stored)


def stored_subscriptions(brokers: DataFrame) -> DataFrame:
    """run, protocol, brokers, local_subscriptions, stored_mean, _max, copies_mean, advertisements_mean, …_bytes_max.

    `copies_mean` is the mean number of copies of a subscription, without that at its home [THESIS Fig. 10.1.11].
    """
    return (
        latest_state(brokers)
        .groupBy(*RUN_COLUMNS)
        .agg(
            f.count("*").alias("brokers"),
            f.sum("local_subscriptions").alias("local_subscriptions"),
            f.avg("stored_subscriptions").alias("stored_subscriptions_mean"),
            f.max("stored_subscriptions").alias("stored_subscriptions_max"),
            ratio(f.sum("remote_subscriptions"), f.sum("local_subscriptions")).alias("copies_mean"),
            f.avg("advertisements").alias("advertisements_mean"),
            f.avg("routing_table_bytes").alias("routing_table_bytes_mean"),
            f.max("routing_table_bytes").alias("routing_table_bytes_max"),
        )
    )
