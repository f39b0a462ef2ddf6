"""One Spark session and a few small runs for all tests of the analysis, because each takes seconds to make."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from broker.trace.files import arrow_schema
from broker.trace.schema import TABLE_OF, Row
from experiments import analysis
from experiments.scenario.load import load
from experiments.simulate.run import simulate
from tests.harness.programs import path_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from experiments.analysis.runs import Runs

MakeFrame = Callable[..., "DataFrame"]


def no_progress(what: str, done: int, total: int) -> None:
    assert done <= total, what


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    path_of("java")
    session = analysis.start_session("local[2]", memory="1g", is_short=True)
    session.conf.set("spark.sql.shuffle.partitions", 2)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def folder_of_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`line` under three protocols, and a run with pairs that are expected and not owed. One name has a space."""
    folder = tmp_path_factory.mktemp("some runs")
    scenario = load("line", {"workload.publications": "60", "clients.subscribers": "20"})
    for protocol in scenario.protocols:
        simulate(scenario, protocol, no_progress, folder / "line" / protocol)
    lossy = load("failures", {"overlay.brokers": "12", "overlay.degree": "3", "workload.publications": "40"})
    simulate(lossy, "d-dbr", no_progress, folder / "lossy")
    return folder


@pytest.fixture(scope="session")
def runs(spark: SparkSession, folder_of_runs: Path) -> Runs:
    return analysis.read_runs(spark, [folder_of_runs])


@pytest.fixture(scope="session")
def frame(spark: SparkSession) -> MakeFrame:
    """A DataFrame of rows of a trace, as the analysis reads it."""

    def make(
        rows: Sequence[Row], row_type: type[Row] | None = None, run: str = "one", protocol: str = "p"
    ) -> DataFrame:
        table = TABLE_OF[row_type or type(rows[0])]
        names = [column.name for column in table.row_columns]
        fields = list(arrow_schema(table))[1:]
        columns = [
            pa.array([getattr(row, name) for row in rows], field.type)
            for name, field in zip(names, fields, strict=True)
        ]
        labels = [pa.repeat(run, len(rows)), pa.repeat(protocol, len(rows))]
        return spark.createDataFrame(pa.table([*labels, *columns], names=["run", "protocol", *names]))

    return make
