"""Proves that the benchmark generates a valid trace, and times Spark and DuckDB on it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from broker.trace.files import read_table
from tests.experiments.analysis.conftest import no_progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_generated_trace_is_the_same_every_time_and_has_the_requested_rows(tmp_path: Path) -> None:
    from experiments.analysis.synthetic import write_trace

    for name in ("one", "two"):
        write_trace(tmp_path / name, 4_000, lambda done, total: no_progress("", done, total))
    hops = read_table(tmp_path / "one", "hops")
    assert hops.num_rows == 4_000
    assert hops.equals(read_table(tmp_path / "two", "hops"))
    senders, receivers = (hops.column(name).to_pylist() for name in ("sender", "receiver"))
    assert all(sender != receiver for sender, receiver in zip(senders, receivers, strict=True))


@pytest.mark.slow
def test_every_size_is_timed_with_spark_and_duckdb(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from experiments.analysis import benchmark as module

    monkeypatch.setattr(module, "WARM_UP_ROWS", 1_000)
    tables = ("messages_by_kind", "drops")
    reported: list[module.Timing] = []
    observer = module.BenchmarkObserver(no_progress, reported.append)
    measured = list(
        module.benchmark(spark, tmp_path, [4_000, 2_000], tables, cores=1, memory="500MB", observer=observer)
    )
    assert reported == [timing for each in measured for timing in each.timings]
    assert [each.hop_rows for each in measured] == [2_000, 4_000]
    for each in measured:
        assert [timing.table for timing in each.timings] == list(tables)
        assert each.wall_s > 0
        assert each.spark_peak_mb > 100
        assert 10 < each.duckdb_peak_mb < each.spark_peak_mb
        assert each.timings[0].duckdb_s is not None
        assert each.timings[1].duckdb_s is None
