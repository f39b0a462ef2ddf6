"""Links: traffic of each link, and its utilisation."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from experiments.analysis.columns import MILLISECONDS, PUBLISH, RUN_COLUMNS, ratio

LINK = (*RUN_COLUMNS, "a", "b")


def link_traffic(hops: DataFrame) -> DataFrame:
    """run, protocol, a, b, messages, publications, bytes, transit_ms_mean, transit_s; both directions together."""
    transit_s = f.col("received_s") - f.col("sent_s")
    return hops.groupBy(
        *RUN_COLUMNS,
        f.least("sender", "receiver").alias("a"),
        f.greatest("sender", "receiver").alias("b"),
    ).agg(
        f.count("*").alias("messages"),
        f.count_if(f.col("kind") == PUBLISH).alias("publications"),
        f.sum(f.col("header_bytes") + f.col("body_bytes")).alias("bytes"),
        (f.avg(transit_s) * MILLISECONDS).alias("transit_ms_mean"),
        f.sum(transit_s).alias("transit_s"),
    )


def link_utilisation(hops: DataFrame, links: DataFrame) -> DataFrame:
    """run, protocol, a, b, up_s, messages, publications, bytes, messages_per_s, bytes_per_s, in_flight_mean, ….

    Rates are over the time that the link was up. `in_flight_mean` is the mean number of frames in flight. Links without
    traffic have a row too.
    """
    end = hops.groupBy(*RUN_COLUMNS).agg(f.max("received_s").alias("end_s"))
    up_until = f.coalesce("down_s", f.greatest("end_s", "up_s"))
    up = (
        links.join(f.broadcast(end), list(RUN_COLUMNS), "left")
        .groupBy(*RUN_COLUMNS, f.least("a", "b").alias("a"), f.greatest("a", "b").alias("b"))
        .agg(f.sum(up_until - f.col("up_s")).alias("up_s"))
    )
    counted = ("messages", "publications", "bytes", "transit_s")
    joined = up.join(link_traffic(hops), list(LINK), "full").fillna(0, list(counted))
    return joined.select(
        *LINK,
        "up_s",
        *counted[:3],
        "transit_ms_mean",
        ratio(f.col("messages"), f.col("up_s")).alias("messages_per_s"),
        ratio(f.col("bytes"), f.col("up_s")).alias("bytes_per_s"),
        ratio(f.col("transit_s"), f.col("up_s")).alias("in_flight_mean"),
    )
