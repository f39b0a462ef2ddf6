"""Proves that a real standalone cluster of a master and two workers gives the same tables as one machine.

Its tasks give the same outcomes and traces as runs on one machine.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from broker.trace import schema
from broker.trace.files import read_table
from tests.harness.conditions import wait_until
from tests.harness.ports import free_port
from tests.harness.programs import path_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WORKERS = 2
UP_WITHIN_S = 180

SCRIPT = """
import sys
from pathlib import Path
from experiments import analysis
from experiments.analysis import spark_session
from experiments.analysis.errors import ClusterError
from experiments.analysis.results import collect, write
from experiments.analysis.tables import RESULTS
enough, spark_session.EXECUTORS_WITHIN_S = spark_session.EXECUTORS_WITHIN_S, 2.0
try:
    analysis.start_session(sys.argv[1], memory="2g", is_short=True)
except ClusterError as error:
    print(error)
spark_session.EXECUTORS_WITHIN_S = enough
session = analysis.start_session(sys.argv[1], memory="512m", is_short=True)
session.conf.set("spark.sql.shuffle.partitions", 4)
runs = analysis.read_runs(session, [Path(sys.argv[2])])
for name in sys.argv[4:]:
    write(collect(name, RESULTS[name].make(runs, 1.0), RESULTS[name].order), Path(sys.argv[3]))
state = session.sparkContext._jsc.sc().getExecutorMemoryStatus().size()
session.stop()
print("block managers", state)
"""
SWEEP = "fig-10.1.1"
TABLES = ("latency_by_broker", "delivery", "slowest")


@contextlib.contextmanager
def spark_program(*words: str) -> Iterator[subprocess.Popen[bytes]]:
    import pyspark

    home = Path(pyspark.__file__).parent
    # The script replaces itself by Java, so that stopping it stops Java.
    environment = {**os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_NO_DAEMONIZE": "1"}
    program = subprocess.Popen(
        [str(home / "bin" / "spark-class"), *words],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield program
    finally:
        program.terminate()
        program.wait(timeout=60)


def workers_alive(page: str) -> int:
    try:
        with urllib.request.urlopen(page, timeout=5) as answer:
            return int(json.load(answer)["aliveworkers"])
    except OSError:
        return 0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    path_of("java")
    place = tmp_path_factory.mktemp("cluster")
    port, web = free_port(), free_port()
    address = f"spark://127.0.0.1:{port}"
    deploy = "org.apache.spark.deploy"
    with contextlib.ExitStack() as stack:
        at = ("--host", "127.0.0.1")
        programs = [
            stack.enter_context(
                spark_program(f"{deploy}.master.Master", *at, "--port", str(port), "--webui-port", str(web))
            )
        ]
        for number in range(WORKERS):
            folder = str(place / f"worker{number}")
            limits = ("-c", "1", "-m", "600m", "-d", folder, "--webui-port", str(free_port()))
            programs.append(stack.enter_context(spark_program(f"{deploy}.worker.Worker", *at, *limits, address)))

        def is_up() -> bool:
            assert all(program.poll() is None for program in programs), "a part of the cluster ended"
            return workers_alive(f"http://127.0.0.1:{web}/json/") >= WORKERS

        wait_until(is_up, UP_WITHIN_S, "the cluster is up", pause_s=0.5)
        yield address


@pytest.mark.slow
def test_a_cluster_gives_the_same_tables_as_one_machine_and_refuses_memory_that_no_worker_has(
    cluster: str, spark: SparkSession, folder_of_runs: Path, tmp_path: Path
) -> None:
    from experiments import analysis
    from experiments.analysis.results import collect
    from experiments.analysis.tables import RESULTS

    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, cluster, str(folder_of_runs), str(tmp_path / "tables"), *TABLES],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    refused, used = done.stdout.splitlines()
    assert refused.endswith("took work within 2 s: none is up, all are busy, or none has 2g of memory free")
    assert used == f"block managers {WORKERS + 1}"
    runs = analysis.read_runs(spark, [folder_of_runs])
    for name in TABLES:
        here = collect(name, RESULTS[name].make(runs, 1.0), RESULTS[name].order).rows
        assert_same(pa.parquet.read_table(tmp_path / "tables" / f"{name}.parquet"), here, name)


def experiment(place: Path, *where: str) -> list[dict[str, Any]]:
    """Executes six simulations of brokers in a line, and writes the runs to the folder."""
    words = ("experiment", "run", SWEEP, "--runs", str(place / "runs"), "--out", str(place / "results"), "--json")
    done = subprocess.run(
        [sys.executable, "-m", "mercast", *words, *where], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (shown,) = json.loads(done.stdout)
    rows: list[dict[str, Any]] = shown["rows"]
    return rows


@pytest.mark.slow
def test_a_sweep_on_a_cluster_is_that_of_this_machine_traces_included(cluster: str, tmp_path: Path) -> None:
    there = experiment(tmp_path / "there", "--master", cluster)
    assert there == experiment(tmp_path / "here", "--jobs", "2")
    folders = {place: sorted((tmp_path / place / "runs").iterdir()) for place in ("there", "here")}
    assert len(folders["here"]) == 6
    for far, near in zip(folders["there"], folders["here"], strict=True):
        assert far.name == near.name
        assert (far / "summary.json").read_text() == (near / "summary.json").read_text()
        for table in schema.TABLES:
            assert read_table(far, table).equals(read_table(near, table)), table
        assert read_table(far, "hops").num_rows > 0


def assert_same(there: pa.Table, here: pa.Table, name: str) -> None:
    """Whether both are equal, except for the last bits of sums of floats, which are added in another order."""
    assert there.schema == here.schema
    assert here.num_rows > 0
    for ours, theirs in zip(here.to_pylist(), there.to_pylist(), strict=True):
        assert theirs == {
            column: pytest.approx(value, rel=1e-12) if isinstance(value, float) else value
            for column, value in ours.items()
        }, name
