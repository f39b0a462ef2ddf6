"""Load of brokers: busy time, traffic, and waiting time of publications.

A broker's rows have its work since its start. The share of busy time is from the last row before publishing began to
the first row after it ended. Without a row before, the first row counts, or time zero if there is one row. With rows
before and after publishing, the share is of publishing alone. With one row at the end of a simulation, it is of the
whole run. It counts work, so the share of a broker with several cores may exceed 1.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from experiments.analysis.columns import MILLISECONDS, PUBLISH, RUN_COLUMNS, ratio, spread, step_of

BROKER = (*RUN_COLUMNS, "broker")
MOMENTS = ("arrived", "started", "left")
"""Times of a publication at a broker."""


def broker_load(brokers: DataFrame, publications: DataFrame, hops: DataFrame, matches: DataFrame) -> DataFrame:
    """run, protocol, broker, busy_s, busy_share, queue_frames_max, received, sent, matches, match_cost_s.

    `received` and `sent` count frames of publications to and from other brokers.
    """
    carried = hops.where(f.col("kind") == PUBLISH)
    parts = [
        carried.groupBy(*RUN_COLUMNS, f.col("receiver").alias("broker")).agg(f.count("*").alias("received")),
        carried.groupBy(*RUN_COLUMNS, f.col("sender").alias("broker")).agg(f.count("*").alias("sent")),
        matches.groupBy(*BROKER).agg(f.count("*").alias("matches"), f.sum("cost_s").alias("match_cost_s")),
    ]
    load = _busy(brokers, publications)
    for part in parts:
        load = load.join(part, list(BROKER), "left")
    return load.fillna(0, ["received", "sent", "matches", "match_cost_s"])


def _busy(brokers: DataFrame, publications: DataFrame) -> DataFrame:
    window = publications.groupBy(*RUN_COLUMNS).agg(
        f.min("published_s").alias("first_s"), f.max("published_s").alias("last_s")
    )
    rows = brokers.join(f.broadcast(window), list(RUN_COLUMNS), "left")
    is_before = f.col("at_s") <= f.col("first_s")
    is_after = f.col("at_s") >= f.col("last_s")
    moment = f.struct("at_s", "busy_s")
    ends = rows.groupBy(*BROKER).agg(
        f.coalesce(f.max(f.when(is_before, moment)), f.when(f.count("*") > 1, f.min(moment))).alias("begin"),
        f.min(f.when(is_after, moment)).alias("after"),
        f.max(moment).alias("last"),
        f.max("queue").alias("queue_frames_max"),
    )
    nothing = f.lit(0.0)
    begin_s = f.coalesce(f.col("begin.at_s"), nothing)
    end = f.when(f.col("after.at_s") > begin_s, f.col("after")).otherwise(f.col("last"))
    busy_s = end["busy_s"] - f.coalesce(f.col("begin.busy_s"), nothing)
    length_s = end["at_s"] - begin_s
    return ends.select(*BROKER, busy_s.alias("busy_s"), ratio(busy_s, length_s).alias("busy_share"), "queue_frames_max")


def load_over_time(brokers: DataFrame) -> DataFrame:
    """run, protocol, broker, from_s, until_s, busy_share, queue_frames: between each row of a broker and the next.

    If a broker has one row only, its interval begins at time zero.
    """
    rows = Window.partitionBy(*BROKER)
    earlier = rows.orderBy("at_s")
    from_s = f.coalesce(f.lag("at_s").over(earlier), f.when(f.count("*").over(rows) == 1, f.lit(0.0)))
    busy_s = f.col("busy_s") - f.coalesce(f.lag("busy_s").over(earlier), f.lit(0.0))
    intervals = brokers.select(
        *BROKER,
        from_s.alias("from_s"),
        f.col("at_s").alias("until_s"),
        busy_s.alias("worked_s"),
        f.col("queue").alias("queue_frames"),
    )
    share = ratio(f.col("worked_s"), f.col("until_s") - f.col("from_s"))
    known = intervals.where(f.col("from_s").isNotNull())
    return known.select(*BROKER, "from_s", "until_s", share.alias("busy_share"), "queue_frames")


def matching_over_time(matches: DataFrame, step_s: float) -> DataFrame:
    """run, protocol, broker, at_s, matches, match_share: the share of each step of time that is spent on matching."""
    stepped = matches.withColumn("at_s", step_of(f.col("started_s"), step_s))
    return stepped.groupBy(*BROKER, "at_s").agg(
        f.count("*").alias("matches"), (f.sum("cost_s") / step_s).alias("match_share")
    )


def queueing(publications: DataFrame, hops: DataFrame, matches: DataFrame) -> DataFrame:
    """run, protocol, broker, publications, wait_ms_mean … _max, stay_ms_mean … _max.

    `wait_ms` is from a publication's arrival (or its publishing) to the start of matching, at brokers that match it.
    `stay_ms` is from the arrival to the sending to the next broker, at brokers that forward it.
    """
    publication = [*RUN_COLUMNS, "publication"]
    carried = hops.where(f.col("kind") == PUBLISH)
    # Rows of a publication are brought together once. Only then is a hop split into two times, which saves traffic.
    together = (
        _moments(publications, "publication", arrived=("broker", "published_s"))
        .unionAll(_moments(carried, "message", arrived=("receiver", "received_s"), left=("sender", "sent_s")))
        .unionAll(_moments(matches, "message", started=("broker", "started_s")))
        .repartition(*publication)
    )
    seen = (
        together.select(*publication, f.explode(f.array_compact(f.array(*MOMENTS))).alias("moment"))
        .groupBy(*publication, "moment.broker")
        .agg(*(f.min(f.col(f"moment.{name}_s")).alias(f"{name}_s") for name in MOMENTS))
    )
    wait_ms = (f.col("started_s") - f.col("arrived_s")) * MILLISECONDS
    stay_ms = (f.col("left_s") - f.col("arrived_s")) * MILLISECONDS
    values = {"wait_ms": wait_ms, "stay_ms": stay_ms}
    return spread(seen.groupBy(*BROKER), values, f.count("*").alias("publications"))


def _moments(rows: DataFrame, publication: str, **at: tuple[str, str]) -> DataFrame:
    """A column for each of `MOMENTS`, with the broker and the time, or null."""
    nothing = f.lit(None).cast("double")

    def moment(name: str) -> Column:
        if name not in at:
            return f.lit(None).cast("struct<broker: string, arrived_s: double, started_s: double, left_s: double>")
        broker, at_s = at[name]
        times = [(f.col(at_s) if each == name else nothing).alias(f"{each}_s") for each in MOMENTS]
        return f.struct(f.col(broker).alias("broker"), *times)

    named = f.col(publication).alias("publication")
    return rows.select(*RUN_COLUMNS, named, *(moment(name).alias(name) for name in MOMENTS))
