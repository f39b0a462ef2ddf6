"""Hops: the number of links that a delivery passed, and the accuracy of routing."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from experiments.analysis.columns import PUBLISH, RUN_COLUMNS, ratio, spread


def hops(deliveries: DataFrame, *by: str) -> DataFrame:
    """run, protocol, `by`…, deliveries, hops_mean, _p50, _p90, _p95, _p99, _max. The source's own clients have 0."""
    grouped = deliveries.groupBy(*RUN_COLUMNS, *by)
    return spread(grouped, {"hops": f.col("hops")}, f.count("*").alias("deliveries"))


def hop_distribution(deliveries: DataFrame) -> DataFrame:
    """run, protocol, hops, deliveries, share."""
    counted = deliveries.groupBy(*RUN_COLUMNS, "hops").agg(f.count("*").alias("deliveries"))
    whole = f.sum("deliveries").over(Window.partitionBy(*RUN_COLUMNS))
    return counted.withColumn("share", f.col("deliveries") / whole)


def routing_accuracy(hops: DataFrame, deliveries: DataFrame) -> DataFrame:
    """run, protocol, publications, interested_share_mean, destination_hops_mean, inverse_hops.

    The thesis defines accuracy twice. `interested_share_mean` [THESIS 2.1] is the share of brokers with a client that
    received the publication, among the brokers that it reached. It is the mean over publications that left their
    source; the source itself does not count. `inverse_hops` [THESIS 10.1.2] is one over the mean number of hops to a
    destination broker.
    """
    publication = [*RUN_COLUMNS, "publication"]
    at_broker = [*publication, "broker"]
    passed = hops.where(f.col("kind") == PUBLISH).select(
        *RUN_COLUMNS,
        f.col("message").alias("publication"),
        f.col("receiver").alias("broker"),
        f.lit(None).alias("hops"),
    )
    arrived = deliveries.where(f.col("hops") > 0).select(*at_broker, "hops")
    # Both groupings below are within a publication, so its rows are brought together once for both.
    together = passed.unionByName(arrived).repartition(*publication)
    brokers = together.groupBy(*at_broker).agg(f.min("hops").alias("hops"))
    publications = brokers.groupBy(*publication).agg(
        f.count("*").alias("reached"), f.count("hops").alias("interested"), f.sum("hops").alias("hops")
    )
    return publications.groupBy(*RUN_COLUMNS).agg(
        f.count("*").alias("publications"),
        f.avg(f.col("interested") / f.col("reached")).alias("interested_share_mean"),
        ratio(f.sum("hops"), f.sum("interested")).alias("destination_hops_mean"),
        ratio(f.sum("interested"), f.sum("hops")).alias("inverse_hops"),
    )
