"""Proves that a follower adds new files, skips unfinished ones, counts late ones, and continues after a restart."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.csv
import pyarrow.parquet
import pytest

from broker.trace.schema import TraceError
from experiments.analysis.errors import NoRunsError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from experiments.analysis.follow import Follower
    from experiments.analysis.runs import Runs

PART = "part-00000.parquet"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """The folder of a deployment without any records."""
    path = tmp_path / "deployment" / "trace"
    path.mkdir(parents=True)
    return path


@pytest.fixture
def follower(spark: SparkSession, trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Follower:
    from experiments.analysis import follow

    # Two tables are enough here. Each takes seconds.
    monkeypatch.setattr(follow, "LIVE", {name: follow.LIVE[name] for name in ("latency_by_broker", "messages_by_kind")})
    return follow.Follower(spark, trace.parent, tmp_path / "out")


def table(tmp_path: Path, name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pyarrow.csv.read_csv(tmp_path / "out" / "tables" / f"{name}.csv").to_pylist()
    return rows


def put(run: Path, trace: Path, table: str, name: str) -> Path:
    (trace / table).mkdir(parents=True, exist_ok=True)
    return Path(shutil.copy(run / "trace" / table / PART, trace / table / name))


def batch(runs: Runs, *labels: str) -> list[dict[str, Any]]:
    """The result of an analysis of all these runs together."""
    from pyspark.sql import functions as f

    from experiments.analysis.metrics.latency import latency

    together = runs.deliveries.where(runs.deliveries["run"].isin(*labels)).drop("run", "protocol")
    named = together.withColumns({"run": f.lit("deployment"), "protocol": f.lit("unknown")})
    rows: list[dict[str, Any]] = latency(named, "broker").orderBy("broker").toArrow().to_pylist()
    return rows


@pytest.mark.slow
def test_tables_grow_with_complete_files_and_wait_for_others(
    follower: Follower, trace: Path, tmp_path: Path, folder_of_runs: Path, runs: Runs
) -> None:
    assert follower.refresh().tables == ()
    lossy, line = folder_of_runs / "lossy", folder_of_runs / "line" / "fbr"
    put(lossy, trace, "deliveries", "b1-00000.parquet")
    # Unfinished files: named by the writer, named by other programs, and truncated.
    unfinished = [put(line, trace, "deliveries", name) for name in (f".{PART}.unfinished", "b2.parquet.tmp")]
    for path in unfinished:
        path.write_bytes(path.read_bytes()[:300])
    refreshed = follower.refresh()
    assert (refreshed.tables, refreshed.waiting) == (("latency_by_broker",), ())
    assert table(tmp_path, "latency_by_broker") == approximately(batch(runs, "lossy"))

    # The file of a second broker arrives late, with earlier times; hops appear for the first time.
    unfinished[0].unlink()
    put(line, trace, "deliveries", "b2-00000.parquet")
    put(line, trace, "hops", "b2-00000.parquet")
    assert follower.refresh().tables == ("latency_by_broker", "messages_by_kind")
    assert table(tmp_path, "latency_by_broker") == approximately(batch(runs, "lossy", "line/fbr"))
    assert follower.refresh().tables == ()


@pytest.mark.slow
def test_a_partial_file_is_tried_again_and_a_follower_that_starts_again_continues(
    follower: Follower, spark: SparkSession, trace: Path, tmp_path: Path, folder_of_runs: Path, runs: Runs
) -> None:
    from experiments.analysis.follow import Follower

    put(folder_of_runs / "lossy", trace, "deliveries", "b1-00000.parquet")
    follower.refresh()
    path = put(folder_of_runs / "line" / "fbr", trace, "deliveries", "b2-00000.parquet")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    (problem,) = follower.refresh().waiting
    assert str(path) in problem
    assert table(tmp_path, "latency_by_broker") == approximately(batch(runs, "lossy"))
    path.write_bytes(whole)
    again = Follower(spark, trace.parent, tmp_path / "out")
    assert again.refresh().tables == ("latency_by_broker",)
    assert table(tmp_path, "latency_by_broker") == approximately(batch(runs, "lossy", "line/fbr"))


@pytest.mark.slow
def test_a_file_that_stays_damaged_is_named(
    follower: Follower, trace: Path, folder_of_runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from experiments.analysis import follow

    monkeypatch.setattr(follow, "FAILURES_MAX", 2)
    path = put(folder_of_runs / "lossy", trace, "hops", "b1-00000.parquet")
    path.write_bytes(path.read_bytes()[:-200])
    assert len(follower.refresh().waiting) == 1
    with pytest.raises(TraceError, match=rf"{path} is damaged"):
        follower.refresh()


@pytest.mark.slow
def test_every_live_table_equals_the_analysis_of_the_finished_trace(
    spark: SparkSession, tmp_path: Path, folder_of_runs: Path
) -> None:
    from experiments import analysis
    from experiments.analysis.follow import LIVE, Follower
    from experiments.analysis.results import collect

    Follower(spark, folder_of_runs / "lossy", tmp_path / "out").refresh()
    runs = analysis.read_runs(spark, [folder_of_runs / "lossy"])
    for name, live in LIVE.items():
        whole = collect(name, live.make(getattr(runs, live.source)), live.order).rows.to_pylist()
        stored = pyarrow.parquet.read_table(tmp_path / "out" / "tables" / f"{name}.parquet").to_pylist()
        assert stored == approximately(whole), name
        assert whole, name


def test_a_folder_that_is_not_there_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    from experiments.analysis.follow import Follower

    with pytest.raises(NoRunsError, match="nowhere is not there"):
        Follower(spark, tmp_path / "nowhere", tmp_path / "out")


def approximately(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {name: pytest.approx(value) if isinstance(value, float) else value for name, value in row.items()}
        for row in rows
    ]
