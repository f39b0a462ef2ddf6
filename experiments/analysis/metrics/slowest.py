"""The slowest publications of each run, with their paths."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from experiments.analysis.columns import PUBLISH, RUN_COLUMNS
from experiments.analysis.metrics.latency import latency_ms

PUBLICATION = (*RUN_COLUMNS, "publication")
ARROW = " > "


def slowest(deliveries: DataFrame, hops: DataFrame, limit: int = 10) -> DataFrame:
    """run, protocol, rank, publication, latency_ms, published_s, client, hops, path: `limit` of each run.

    The latency of a publication is that of its slowest delivery. `path` is the path of that delivery: the brokers, with
    the milliseconds from publishing to the arrival at each.
    """
    last = deliveries.groupBy(*PUBLICATION).agg(
        f.max(f.struct(latency_ms().alias("latency_ms"), "client", "broker", "hops", "published_s")).alias("last")
    )
    order = Window.partitionBy(*RUN_COLUMNS).orderBy(f.desc("last.latency_ms"), "publication")
    chosen = (
        last.withColumn("rank", f.row_number().over(order))
        .where(f.col("rank") <= limit)
        .select(*PUBLICATION, "rank", "last.*")
    )
    steps = (
        hops.where(f.col("kind") == PUBLISH)
        .withColumnRenamed("message", "publication")
        .join(f.broadcast(chosen.select(*PUBLICATION)), list(PUBLICATION), "left_semi")
        .groupBy(*PUBLICATION)
        .agg(f.collect_list(f.struct("hop", "received_s", "sender", "receiver")).alias("steps"))
    )
    found = chosen.join(steps, list(PUBLICATION), "left")
    return found.select(
        *RUN_COLUMNS, "rank", "publication", "latency_ms", "published_s", "client", "hops", _path().alias("path")
    )


def _path() -> Column:
    """Follows the steps backwards: the step that arrived at the last broker at its number of hops, and so on.

    The steps are visited once, from the last hop to the first. After a reroute a broker may have received the
    publication twice. Then the later arrival at the right number of hops counts.
    """
    steps = f.sort_array(f.coalesce("steps", f.array().cast(_STEPS)), asc=False)
    start = f.struct(
        f.col("broker").alias("at"), f.col("hops").alias("hop"), f.array().cast("array<string>").alias("path")
    )

    def back(walked: Column, step: Column) -> Column:
        after_ms = f.format_number((step["received_s"] - f.col("published_s")) * 1_000, 1)
        arrival = f.concat(step["receiver"], f.lit(" "), after_ms, f.lit(" ms"))
        moved = f.struct(
            step["sender"].alias("at"),
            (walked["hop"] - 1).alias("hop"),
            f.array_prepend(walked["path"], arrival).alias("path"),
        )
        return f.when((step["receiver"] == walked["at"]) & (step["hop"] == walked["hop"]), moved).otherwise(walked)

    walked = f.aggregate(steps, start, back)
    return f.array_join(f.array_prepend(walked["path"], walked["at"]), ARROW)


_STEPS = "array<struct<hop: bigint, received_s: double, sender: string, receiver: string>>"
