"""A real standalone cluster, of a master and two workers, gives the tables that one machine gives."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet
import pytest

from tests.ports import free_port
from tests.programs import path_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WORKERS = 2
UP_WITHIN_S = 180

SCRIPT = """
import sys
from pathlib import Path
from experiments import analysis
from experiments.analysis.results import collect, write
from experiments.analysis.tables import RESULTS
session = analysis.session(sys.argv[1], memory="512m")
runs = analysis.read_runs(session, [Path(sys.argv[2])])
for name in sys.argv[4:]:
    write(collect(name, RESULTS[name].make(runs, 1.0), RESULTS[name].order), Path(sys.argv[3]))
state = session.sparkContext._jsc.sc().getExecutorMemoryStatus().size()
session.stop()
print("block managers", state)
"""
TABLES = ("latency_by_broker", "routing_accuracy", "destination_distribution", "delivery", "slowest")


@contextlib.contextmanager
def spark_program(*words: str) -> Iterator[subprocess.Popen[bytes]]:
    import pyspark

    home = Path(pyspark.__file__).parent
    # The script becomes Java itself, so that stopping it stops Java.
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


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    path_of("java")
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
            folder = str(tmp_path / f"worker{number}")
            limits = ("-c", "1", "-m", "600m", "-d", folder, "--webui-port", str(free_port()))
            programs.append(stack.enter_context(spark_program(f"{deploy}.worker.Worker", *at, *limits, address)))
        give_up_at = time.monotonic() + UP_WITHIN_S
        while workers_alive(f"http://127.0.0.1:{web}/json/") < WORKERS:
            assert time.monotonic() < give_up_at, "the cluster did not come up"
            assert all(program.poll() is None for program in programs), "a part of the cluster ended"
            time.sleep(0.5)
        yield address


@pytest.mark.slow
def test_a_cluster_gives_the_same_tables_as_one_machine(
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
    assert done.stdout.strip() == f"block managers {WORKERS + 1}"
    runs = analysis.read_runs(spark, [folder_of_runs])
    for name in TABLES:
        here = collect(name, RESULTS[name].make(runs, 1.0), RESULTS[name].order).rows
        assert_same(pa.parquet.read_table(tmp_path / "tables" / f"{name}.parquet"), here, name)


def assert_same(there: pa.Table, here: pa.Table, name: str) -> None:
    """Equal but for the last bits of sums of floats, which are added in another order."""
    assert there.schema == here.schema
    assert here.num_rows > 0
    for ours, theirs in zip(here.to_pylist(), there.to_pylist(), strict=True):
        assert theirs == {
            column: pytest.approx(value, rel=1e-12) if isinstance(value, float) else value
            for column, value in ours.items()
        }, name
