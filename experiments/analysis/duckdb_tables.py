"""The larger tables in SQL for DuckDB: tests compare both results, and the benchmark compares both times.

DuckDB runs in one process on one machine and is faster there than Spark. Spark runs on many machines.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from broker.trace.schema import TABLES
from experiments.analysis.errors import ProgramMissingError

LATENCY = "(delivered_s - published_s) * 1000"


def _spread(value: str, name: str) -> str:
    percentiles = ", ".join(
        f"quantile_disc({value}, {share}) AS {name}_{word}"
        for word, share in (("p50", 0.50), ("p90", 0.90), ("p95", 0.95), ("p99", 0.99))
    )
    return f"avg({value}) AS {name}_mean, {percentiles}, max({value}) AS {name}_max"


QUERIES: Mapping[str, str] = {
    "latency": f"SELECT count(*) AS deliveries, {_spread(LATENCY, 'latency_ms')} FROM deliveries",
    "latency_by_broker": f"""
        SELECT broker, count(*) AS deliveries, {_spread(LATENCY, "latency_ms")} FROM deliveries GROUP BY broker""",
    "routing_accuracy": """
        WITH seen AS (
            SELECT message AS publication, receiver AS broker, NULL AS hops FROM hops WHERE kind = 'publish'
            UNION ALL SELECT publication, broker, hops FROM deliveries WHERE hops > 0),
        brokers AS (SELECT publication, broker, min(hops) AS hops FROM seen GROUP BY ALL),
        publications AS (
            SELECT publication, count(*) AS reached, count(hops) AS interested, sum(hops) AS hops
            FROM brokers GROUP BY publication)
        SELECT count(*) AS publications, avg(interested / reached) AS interested_share_mean,
            sum(hops) / sum(interested) AS destination_hops_mean, sum(interested) / sum(hops) AS inverse_hops
        FROM publications""",
    "destinations_by_broker": f"""
        SELECT sender, count(*) AS messages, count(*) FILTER (hop = 1) AS messages_at_source,
            {_spread("destinations", "destinations")},
            {_spread("CASE WHEN hop = 1 THEN destinations END", "destinations_at_source")}
        FROM hops WHERE kind = 'publish' GROUP BY sender""",
    "destination_distribution": """
        WITH counted AS (
            SELECT 'all' AS place, destinations, count(*) AS messages FROM hops WHERE kind = 'publish' GROUP BY ALL
            UNION ALL
            SELECT 'source', destinations, count(*) FROM hops WHERE kind = 'publish' AND hop = 1 GROUP BY ALL)
        SELECT *, messages / sum(messages) OVER (PARTITION BY place) AS share,
            sum(messages) OVER (PARTITION BY place ORDER BY destinations)
                / sum(messages) OVER (PARTITION BY place) AS share_at_most
        FROM counted""",
    "messages_by_kind": """
        SELECT kind, count(*) AS messages, sum(header_bytes)::BIGINT AS header_bytes,
            sum(body_bytes)::BIGINT AS body_bytes, avg(header_bytes + body_bytes) AS bytes_mean
        FROM hops GROUP BY kind""",
    "delivery": """
        WITH arrived AS (SELECT publication, client, count(*) AS times FROM deliveries GROUP BY ALL),
        pairs AS (
            SELECT coalesce(times, 0) AS times, expected, coalesce(owed, false) AS owed
            FROM arrived FULL JOIN expectations USING (publication, client))
        SELECT (SELECT count(*) FROM publications) AS published, count(*) FILTER (expected) AS expected,
            count(*) FILTER (owed) AS owed, count(*) FILTER (times > 0) AS delivered,
            sum(greatest(times - 1, 0))::BIGINT AS duplicated, count(*) FILTER (owed AND times = 0) AS missed,
            count(*) FILTER (expected IS NULL) AS unexpected,
            count(*) FILTER (expected AND times > 0) / count(*) FILTER (expected) AS delivered_of_expected,
            count(*) FILTER (owed AND times > 0) / count(*) FILTER (owed) AS delivered_of_owed
        FROM pairs""",
    "matching_work": """
        WITH publications AS (
            SELECT message, count(DISTINCT broker) AS matches, sum(stored) AS stored, sum(matched) AS matched,
                sum(cost_s) AS cost_s
            FROM matches GROUP BY message)
        SELECT count(*) AS publications, avg(matches) AS matches_mean, avg(stored) AS stored_mean,
            avg(matched) AS matched_mean, avg(cost_s) * 1000 AS cost_ms_mean
        FROM publications""",
    "queueing": f"""
        WITH arrived AS (
            SELECT publication, broker, min(at_s) AS arrived_s FROM (
                SELECT publication, broker, published_s AS at_s FROM publications
                UNION ALL SELECT message, receiver, received_s FROM hops WHERE kind = 'publish') GROUP BY ALL),
        started AS (SELECT message AS publication, broker, min(started_s) AS started_s FROM matches GROUP BY ALL),
        departed AS (
            SELECT message AS publication, sender AS broker, min(sent_s) AS left_s
            FROM hops WHERE kind = 'publish' GROUP BY ALL)
        SELECT broker, count(*) AS publications, {_spread("(started_s - arrived_s) * 1000", "wait_ms")},
            {_spread("(left_s - arrived_s) * 1000", "stay_ms")}
        FROM arrived FULL JOIN started USING (publication, broker) FULL JOIN departed USING (publication, broker)
        GROUP BY broker""",
    "link_utilisation": """
        WITH finish AS (SELECT max(received_s) AS end_s FROM hops),
        up AS (
            SELECT least(a, b) AS a, greatest(a, b) AS b,
                sum(coalesce(down_s, greatest(end_s, up_s)) - up_s) AS up_s
            FROM links, finish GROUP BY ALL),
        carried AS (
            SELECT least(sender, receiver) AS a, greatest(sender, receiver) AS b, count(*) AS messages,
                count(*) FILTER (kind = 'publish') AS publications,
                sum(header_bytes + body_bytes)::BIGINT AS bytes, avg(received_s - sent_s) * 1000 AS transit_ms_mean,
                sum(received_s - sent_s) AS transit_s
            FROM hops GROUP BY ALL)
        SELECT a, b, up_s, coalesce(messages, 0) AS messages, coalesce(publications, 0) AS publications,
            coalesce(bytes, 0) AS bytes, transit_ms_mean, coalesce(messages, 0) / up_s AS messages_per_s,
            coalesce(bytes, 0) / up_s AS bytes_per_s, coalesce(transit_s, 0) / up_s AS in_flight_mean
        FROM up FULL JOIN carried USING (a, b)""",
}
"""Queries by the names of the tables in `RESULTS`. Their results lack the columns of the run."""


class DuckDB:
    """The tables of one run as views of an in-memory database."""

    def __init__(self, run: Path, *, threads: int, memory: str) -> None:
        try:
            import duckdb
        except ImportError as error:
            raise ProgramMissingError("the comparison needs DuckDB: pip install duckdb") from error
        # Data that does not fit into memory is written below the run's folder, not to the current folder.
        spill_folder = str(run / ".duckdb")
        self._connection = duckdb.connect(
            config={"threads": threads, "memory_limit": memory, "temp_directory": spill_folder}
        )
        for table in TABLES:
            files = [str(path) for path in sorted((run / "trace" / table).glob("[!.]*.parquet"))]
            if files:
                paths = ", ".join("'" + path.replace("'", "''") + "'" for path in files)
                self._connection.execute(f"CREATE VIEW {table} AS SELECT * FROM read_parquet([{paths}])")

    def rows(self, table: str) -> list[dict[str, Any]]:
        found = self._connection.execute(QUERIES[table])
        names = [column[0] for column in found.description or ()]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]

    def close(self) -> None:
        self._connection.close()
