"""Delivery: compares deliveries with expected and owed pairs.

A pair of publication and client is expected when an active subscription matches. It is owed unless the client left
before the publication arrived, the publication was lost with a killed broker, or a final drop names it. Only a
simulation knows the expected pairs. If they are not recorded, the counts and ratios are null, not zero.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from experiments.analysis.columns import RUN_COLUMNS, ratio

PAIR = (*RUN_COLUMNS, "publication", "client")


def delivery(publications: DataFrame, deliveries: DataFrame, expectations: DataFrame) -> DataFrame:
    """run, protocol, published, expected, owed, delivered, duplicated, missed, unexpected, and two ratios.

    `delivered` counts distinct pairs, `duplicated` the deliveries beyond them. `missed` pairs were owed and not
    delivered, `unexpected` ones delivered and not expected. `delivered_of_expected` and `delivered_of_owed` are shares.
    """
    arrived = deliveries.select(*PAIR, f.lit(1).alias("times"), f.lit(None).cast("boolean").alias("owed"))
    known = expectations.where("expected").select(*PAIR, f.lit(0).alias("times"), "owed")
    pairs = (
        arrived.unionByName(known).groupBy(*PAIR).agg(f.sum("times").alias("times"), f.bool_or("owed").alias("owed"))
    )
    is_delivered = f.col("times") > 0
    is_expected = f.col("owed").isNotNull()
    counted = pairs.groupBy(*RUN_COLUMNS).agg(
        f.count_if(is_expected).alias("expected"),
        f.count_if("owed").alias("owed"),
        f.count_if(is_delivered).alias("delivered"),
        f.sum(f.greatest(f.col("times") - 1, f.lit(0))).alias("duplicated"),
        f.count_if(f.col("owed") & ~is_delivered).alias("missed"),
        f.count_if(~is_expected).alias("unexpected"),
        f.count_if(is_expected & is_delivered).alias("expected_delivered"),
        f.count_if(f.col("owed") & is_delivered).alias("owed_delivered"),
    )
    published = publications.groupBy(*RUN_COLUMNS).agg(f.count("*").alias("published"))
    is_known = f.col("expected") > 0
    return published.join(counted, list(RUN_COLUMNS), "left").select(
        *RUN_COLUMNS,
        "published",
        *(f.when(is_known, f.col(name)).alias(name) for name in ("expected", "owed")),
        *(f.coalesce(f.col(name), f.lit(0)).alias(name) for name in ("delivered", "duplicated")),
        *(f.when(is_known, f.col(name)).alias(name) for name in ("missed", "unexpected")),
        ratio(f.col("expected_delivered"), f.col("expected")).alias("delivered_of_expected"),
        ratio(f.col("owed_delivered"), f.col("owed")).alias("delivered_of_owed"),
    )


def published(publications: DataFrame) -> DataFrame:
    """run, protocol, broker, publications, bytes: the publications that each broker accepted from its clients."""
    return publications.groupBy(*RUN_COLUMNS, "broker").agg(
        f.count("*").alias("publications"), f.sum("bytes").alias("bytes")
    )


def misses(deliveries: DataFrame, expectations: DataFrame) -> DataFrame:
    """run, protocol, publication, client: every pair that was owed and not delivered."""
    return expectations.where("owed").select(*PAIR).join(deliveries, list(PAIR), "left_anti")


def duplicates(deliveries: DataFrame) -> DataFrame:
    """run, protocol, publication, client, times: every pair that was delivered more than once."""
    return deliveries.groupBy(*PAIR).agg(f.count("*").alias("times")).where(f.col("times") > 1)


def drops(drops: DataFrame) -> DataFrame:
    """run, protocol, broker, reason, drops."""
    return drops.groupBy(*RUN_COLUMNS, "broker", "reason").agg(f.count("*").alias("drops"))
