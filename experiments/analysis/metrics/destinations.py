"""Destination lists: the number of destinations in a message of a publication, on all hops and at its source."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from experiments.analysis.columns import PUBLISH, RUN_COLUMNS, spread

ALL = "all"
SOURCE = "source"


def destinations(hops: DataFrame, *by: str) -> DataFrame:
    """run, protocol, `by`…, messages, messages_at_source, destinations_mean, _p50 … _max, and the same `_at_source`.

    For a row for each sender of messages: `destinations(hops, "sender")`.
    """
    at_source = f.when(f.col("hop") == 1, f.col("destinations"))
    return spread(
        hops.where(f.col("kind") == PUBLISH).groupBy(*RUN_COLUMNS, *by),
        {"destinations": f.col("destinations"), "destinations_at_source": at_source},
        f.count("*").alias("messages"),
        f.count(at_source).alias("messages_at_source"),
    )


def destination_distribution(hops: DataFrame) -> DataFrame:
    """run, protocol, place (all or source), destinations, messages, share, share_at_most."""
    counted = (
        hops.where(f.col("kind") == PUBLISH)
        .groupBy(*RUN_COLUMNS, "destinations")
        .agg(f.count("*").alias(ALL), f.count_if(f.col("hop") == 1).alias(SOURCE))
        .unpivot([*RUN_COLUMNS, "destinations"], [ALL, SOURCE], "place", "messages")
        .where(f.col("messages") > 0)
    )
    place = Window.partitionBy(*RUN_COLUMNS, "place")
    whole = f.sum("messages").over(place)
    up_to = f.sum("messages").over(place.orderBy("destinations"))
    return counted.select(
        *RUN_COLUMNS,
        "place",
        "destinations",
        "messages",
        (f.col("messages") / whole).alias("share"),
        (up_to / whole).alias("share_at_most"),
    )
