"""Keeps tables of a running deployment up to date from its trace folder, with Structured Streaming.

Each refresh reads only files that are new since the last refresh, and adds them to the state of every table. The folder
`checkpoints` below the output records the files that were read: an analysis that is started again continues there.

A file counts when it has its final name, regardless of its age and of the times in it: tables have no watermark. Files
whose names begin with a dot or do not end in `.parquet` are unfinished and ignored. A file with its final name may be
incomplete, for example while it is copied. It is tried again at the next refreshes. If it stays unreadable, an error
names it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

from broker.trace.schema import TABLES, TraceError, spark_ddl
from experiments.analysis.errors import NoRunsError
from experiments.analysis.metrics import delivery, destinations, latency, link_traffic, messages, paths, subscriptions
from experiments.analysis.results import collect, short_error, write
from experiments.analysis.runs import describe_run

FAILURES_MAX = 5
"""A file counts as damaged after this number of failed refreshes in a row."""
STATE_PARTITIONS = 2
STEP_S = 10.0


@dataclass(frozen=True, slots=True)
class LiveTable:
    """A table that is one grouping of one table of the trace, so that every new file can be added to it."""

    source: str
    order: tuple[str, ...]
    make: Callable[[DataFrame], DataFrame]


LIVE: dict[str, LiveTable] = {
    "latency": LiveTable("deliveries", (), latency.latency),
    "latency_by_broker": LiveTable("deliveries", ("broker",), lambda rows: latency.latency(rows, "broker")),
    "latency_over_time": LiveTable("deliveries", ("at_s",), lambda rows: latency.latency_over_time(rows, STEP_S)),
    "hops": LiveTable("deliveries", (), paths.hops),
    "published": LiveTable("publications", ("broker",), delivery.published),
    "destinations": LiveTable("hops", (), destinations.destinations),
    "messages_by_kind": LiveTable("hops", ("kind",), messages.messages_by_kind),
    "link_traffic": LiveTable("hops", ("a", "b"), link_traffic.link_traffic),
    "broker_state": LiveTable("brokers", ("broker",), subscriptions.latest_state),
    "drops": LiveTable("drops", ("broker", "reason"), delivery.drops),
}


@dataclass(frozen=True, slots=True)
class Refresh:
    """The result of a refresh."""

    tables: tuple[str, ...]
    """Tables that changed."""
    waiting: tuple[str, ...]
    """Messages about files that could not be read yet."""
    headline: str
    """A line with the sums of all tables so far; empty while there is none."""


def check_trace_folder(folder: Path) -> None:
    if not folder.is_dir():
        raise NoRunsError(f"{folder} is not there; give the folder that the brokers write their trace to")


class Follower:
    """Follows one trace folder. `refresh` returns when all files that existed at its start are in the tables."""

    def __init__(self, session: SparkSession, folder: Path, out: Path) -> None:
        check_trace_folder(folder)
        self._folder = folder.resolve()
        self._session = session
        self._out = out
        self._failed: Counter[str] = Counter()
        session.conf.set("spark.sql.shuffle.partitions", STATE_PARTITIONS)
        session.conf.set("spark.sql.streaming.minBatchesToRetain", 10)

    def refresh(self) -> Refresh:
        changed: list[str] = []
        started = [
            (name, self._start(name, table, path, changed))
            for name, table in LIVE.items()
            if (path := self._path(table.source)) is not None
        ]
        waiting = [problem for name, query in started if (problem := self._finish(name, query)) is not None]
        return Refresh(
            tuple(name for name in LIVE if name in changed),
            tuple(dict.fromkeys(waiting)),
            headline(self._out / "tables"),
        )

    @property
    def has_trace(self) -> bool:
        """Whether a broker has begun to record in the folder."""
        return any(self._path(table.source) is not None for table in LIVE.values())

    def _path(self, table: str) -> str | None:
        """The path of a table's files: a folder of each broker, or a common one. None while there is none."""
        if (self._folder / "trace" / table).is_dir():
            return str(self._folder / "trace" / table)
        return str(self._folder / "*" / "trace" / table) if any(self._folder.glob(f"*/trace/{table}")) else None

    def _labels(self) -> tuple[Column, Column]:
        parts = sorted(path.parent for path in self._folder.glob("*/trace")) or [self._folder]
        run = describe_run(self._folder, parts, self._folder.name)
        return f.lit(run.label).alias("run"), f.lit(run.protocol).alias("protocol")

    def _start(self, name: str, table: LiveTable, path: str, changed: list[str]) -> StreamingQuery:
        stored = (
            self._session.readStream.schema(spark_ddl(TABLES[table.source]))
            .option("pathGlobFilter", "*.parquet")
            # Spark ignores files that are older than the newest by more than this.
            .option("maxFileAge", "3650d")
            # Operators of the deployment may remove old files.
            .option("ignoreMissingFiles", "true")
            .parquet(path)
        )
        rows = stored.select(*self._labels(), *(column.name for column in TABLES[table.source].row_columns))

        def renew(result: DataFrame, _: int) -> None:
            write(collect(name, result, table.order), self._out / "tables")
            changed.append(name)

        return (
            table.make(rows)
            .writeStream.outputMode("complete")
            .option("checkpointLocation", str(self._out / "checkpoints" / name))
            .trigger(availableNow=True)
            .foreachBatch(renew)
            .start()
        )

    def _finish(self, name: str, query: StreamingQuery) -> str | None:
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            problem = short_error(error)
            self._failed[name] += 1
            if not isinstance(problem, TraceError) or self._failed[name] >= FAILURES_MAX:
                raise problem from error
            return str(problem)
        del self._failed[name]
        return None


def headline(tables: Path) -> str:
    """A line with the sums of the written tables. A table that did not change may be from an earlier start."""
    published = _column(tables, "published", "publications")
    delivered, mean_ms, p99_ms = (
        _column(tables, "latency", name) for name in ("deliveries", "latency_ms_mean", "latency_ms_p99")
    )
    parts = [
        f"{sum(published):,} published" if published else "",
        f"{sum(delivered):,} delivered, {mean_ms[0]:.1f} ms mean, {p99_ms[0]:.1f} ms p99" if delivered else "",
        f"{sum(messages):,} messages" if (messages := _column(tables, "messages_by_kind", "messages")) else "",
        f"{sum(dropped):,} dropped" if (dropped := _column(tables, "drops", "drops")) else "",
    ]
    return "; ".join(part for part in parts if part)


def _column(tables: Path, table: str, column: str) -> list[float]:
    import pyarrow.parquet

    path = tables / f"{table}.parquet"
    values: list[float] = pyarrow.parquet.read_table(path).column(column).to_pylist() if path.is_file() else []
    return values
