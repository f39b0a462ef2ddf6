"""Matching work: the number of brokers that match a publication, and the cost of it."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from experiments.analysis.columns import MILLISECONDS, RUN_COLUMNS


def matching_work(matches: DataFrame) -> DataFrame:
    """run, protocol, publications, matches_mean, stored_mean, matched_mean, cost_ms_mean, each for a publication.

    "A match" is a broker that matched: one that asks two tables counts once.
    """
    # Both groupings are within a publication: its rows are brought together once, for both.
    together = matches.repartition(*RUN_COLUMNS, "message")
    at_broker = together.groupBy(*RUN_COLUMNS, "message", "broker").agg(
        *(f.sum(name).alias(name) for name in ("stored", "matched", "cost_s"))
    )
    publications = at_broker.groupBy(*RUN_COLUMNS, "message").agg(
        f.count("*").alias("matches"), *(f.sum(name).alias(name) for name in ("stored", "matched", "cost_s"))
    )
    return publications.groupBy(*RUN_COLUMNS).agg(
        f.count("*").alias("publications"),
        f.avg("matches").alias("matches_mean"),
        f.avg("stored").alias("stored_mean"),
        f.avg("matched").alias("matched_mean"),
        (f.avg("cost_s") * MILLISECONDS).alias("cost_ms_mean"),
    )
