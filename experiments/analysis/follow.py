"""Tables of a deployment that is still running, kept up to date from its trace folder with Structured Streaming.

Each refresh reads only the files that came since the last one, and adds them to the state of every table. What was
read is remembered in `checkpoints` below the output: an analysis that is started again goes on from there.

A file counts when it has its final name, however late it comes and whatever times are in it: tables have no watermark.
Names with a leading dot, and names that do not end in `.parquet`, are unfinished and passed over. A file that cannot
be read to its end under its final name (someone copies it there) is tried again at the next refreshes, and named when
it stays that way.
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
from experiments.analysis.results import collect, in_one_line, write
from experiments.analysis.runs import describe

PATIENCE = 5
"""So many refreshes in a row may fail on a file before it counts as damaged."""
STATE_PARTITIONS = 2
STEP_S = 10.0


@dataclass(frozen=True, slots=True)
class LiveTable:
    """A table that one grouping of one table of the trace gives, so that it can grow with every file."""

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
class Refreshed:
    tables: tuple[str, ...]
    """Those that changed."""
    waiting: tuple[str, ...]
    """What could not be read yet, in words."""
    headline: str
    """The sums of all tables so far, in words; empty while there is none."""


def check_folder(folder: Path) -> None:
    if not folder.is_dir():
        raise NoRunsError(f"{folder} is not there; give the folder that the brokers write their trace to")


class Follower:
    """Follows one trace folder. `refresh` returns when everything that was there at its start is in the tables."""

    def __init__(self, session: SparkSession, folder: Path, out: Path) -> None:
        check_folder(folder)
        self._folder = folder.resolve()
        self._session = session
        self._out = out
        self._failed: Counter[str] = Counter()
        session.conf.set("spark.sql.shuffle.partitions", STATE_PARTITIONS)
        session.conf.set("spark.sql.streaming.minBatchesToRetain", 10)

    def refresh(self) -> Refreshed:
        changed: list[str] = []
        started = [
            (name, self._start(name, table, path, changed))
            for name, table in LIVE.items()
            if (path := self._path(table.source)) is not None
        ]
        waiting = [problem for name, query in started if (problem := self._finish(name, query)) is not None]
        return Refreshed(
            tuple(name for name in LIVE if name in changed),
            tuple(dict.fromkeys(waiting)),
            headline(self._out / "tables"),
        )

    @property
    def has_trace(self) -> bool:
        """Has any broker begun to record there?"""
        return any(self._path(table.source) is not None for table in LIVE.values())

    def _path(self, table: str) -> str | None:
        """Where files of a table come: in a folder of each broker, or in one of all; None while there is none."""
        if (self._folder / "trace" / table).is_dir():
            return str(self._folder / "trace" / table)
        return str(self._folder / "*" / "trace" / table) if any(self._folder.glob(f"*/trace/{table}")) else None

    def _labels(self) -> tuple[Column, Column]:
        parts = sorted(path.parent for path in self._folder.glob("*/trace")) or [self._folder]
        run = describe(self._folder, parts, self._folder.name)
        return f.lit(run.label).alias("run"), f.lit(run.protocol).alias("protocol")

    def _start(self, name: str, table: LiveTable, path: str, changed: list[str]) -> StreamingQuery:
        stored = (
            self._session.readStream.schema(spark_ddl(TABLES[table.source]))
            .option("pathGlobFilter", "*.parquet")
            # A file that is older than the newest by more than this would be passed over.
            .option("maxFileAge", "3650d")
            # Who runs the deployment may remove old files.
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
            problem = in_one_line(error)
            self._failed[name] += 1
            if not isinstance(problem, TraceError) or self._failed[name] >= PATIENCE:
                raise problem from error
            return str(problem)
        del self._failed[name]
        return None


def headline(tables: Path) -> str:
    """Read from the written tables: one that did not change may be from an earlier start."""
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
