"""Proves that errors of an analysis name the missing or damaged file, and the command to type."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from broker.trace.schema import TraceError
from experiments import analysis
from experiments.analysis.errors import ClusterError, NoRunsError, ProgramMissingError
from experiments.analysis.runs import differences, find_runs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def run(folder_of_runs: Path, tmp_path: Path) -> Path:
    """A run that a test may damage."""
    return Path(shutil.copytree(folder_of_runs / "line" / "fbr", tmp_path / "fbr"))


def command(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mercast", *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


def test_without_java_the_command_shows_how_to_install_it(run: Path, tmp_path: Path) -> None:
    done = command("analyse", str(run), "--out", str(tmp_path / "out"), PATH=str(tmp_path), JAVA_HOME="")
    assert done.returncode == 3
    assert "there is no java on the PATH. Debian, Ubuntu: apt-get install openjdk-17-jre-headless" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_java_home_without_java_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ProgramMissingError, match=rf"JAVA_HOME is {tmp_path}, and has no bin/java"):
        analysis.start_session()


def test_a_java_that_is_too_old_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(ProgramMissingError, match=r"needs Java 17 or later; .*/java says openjdk version \"11.0.2\""):
        analysis.start_session()


def test_a_cluster_that_does_not_answer_is_named() -> None:
    with pytest.raises(ClusterError, match=r"no Spark master answers at spark://127\.0\.0\.1:9"):
        analysis.start_session("spark://127.0.0.1:9")


@pytest.mark.parametrize("master", ["loca[2]", "local[0]"])
def test_a_master_that_is_none_is_refused(master: str) -> None:
    with pytest.raises(ClusterError, match=rf"--master {re.escape(master)}: write local\[2\]"):
        analysis.start_session(master)


def test_an_empty_folder_is_refused_with_the_command_that_makes_runs(tmp_path: Path) -> None:
    with pytest.raises(NoRunsError, match=rf"{tmp_path} holds no run.*mercast simulate line --out DIR"):
        find_runs([tmp_path])


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(NoRunsError, match="nowhere is not there"):
        find_runs([tmp_path / "nowhere"])


def test_an_unfinished_simulation_does_not_count_as_a_run(run: Path) -> None:
    run.rename(run.with_name(".fbr.unfinished"))
    with pytest.raises(NoRunsError, match="holds no run"):
        find_runs([run.parent])


def test_a_finished_run_that_lacks_a_table_is_named(spark: SparkSession, run: Path) -> None:
    (run / "trace" / "links" / "part-00000.parquet").unlink()
    with pytest.raises(TraceError, match=r"fbr/trace/links/part-00000.parquet is missing"):
        analysis.read_runs(spark, [run])


def test_a_deployments_trace_may_lack_tables_but_not_all(spark: SparkSession, run: Path) -> None:
    (run / "summary.json").unlink()
    shutil.rmtree(run / "trace" / "expectations")
    runs = analysis.read_runs(spark, [run])
    assert runs.expectations.count() == 0
    assert runs.expectations.columns == ["run", "protocol", "publication", "client", "expected", "owed"]
    for table in (run / "trace").iterdir():
        shutil.rmtree(table)
    with pytest.raises(TraceError, match=r"fbr has no complete file of a trace"):
        analysis.read_runs(spark, [run])


def test_a_file_that_was_cut_off_is_named_before_any_work(spark: SparkSession, run: Path) -> None:
    path = run / "trace" / "hops" / "part-00000.parquet"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(TraceError, match=rf"{path} is damaged or cannot be read"):
        analysis.read_runs(spark, [run])


def test_a_file_of_another_table_is_named(spark: SparkSession, run: Path) -> None:
    shutil.copy(run / "trace" / "links" / "part-00000.parquet", run / "trace" / "hops" / "part-00000.parquet")
    with pytest.raises(TraceError, match=r"hops/part-00000.parquet is no table 'hops' of this version"):
        analysis.read_runs(spark, [run])


def test_a_flipped_bit_inside_a_file_is_named_and_not_counted(spark: SparkSession, run: Path) -> None:
    from experiments.analysis.metrics.messages import messages_by_kind
    from experiments.analysis.results import collect

    path = run / "trace" / "hops" / "part-00000.parquet"
    content = bytearray(path.read_bytes())
    for place in range(100, len(content) // 2, 50):
        content[place] ^= 0x10
    path.write_bytes(content)
    runs = analysis.read_runs(spark, [run])
    with pytest.raises(TraceError, match=rf"{path} is damaged"):
        collect("messages_by_kind", messages_by_kind(runs.hops), ("kind",))


def test_damaged_provenance_is_named(run: Path) -> None:
    (run / "provenance.json").write_text("{")
    with pytest.raises(TraceError, match=r"fbr/provenance.json is damaged"):
        find_runs([run])


def test_differences_between_runs_other_than_the_protocol_are_named(folder_of_runs: Path, tmp_path: Path) -> None:
    assert differences(find_runs([folder_of_runs / "line"])) == ""
    assert differences(find_runs([folder_of_runs])).startswith("scenario (line, failures)")
    for name in ("one", "two"):
        shutil.copytree(folder_of_runs / "line" / "fbr", tmp_path / name)
    provenance = tmp_path / "two" / "provenance.json"
    provenance.write_text(provenance.read_text().replace('"seed": 1', '"seed": 7'))
    scenario = tmp_path / "two" / "scenario.toml"
    scenario.write_text(scenario.read_text().replace("subscribers = 20", "subscribers = 30"))
    assert differences(find_runs([tmp_path])) == "seed (1, 7), clients.subscribers (20, 30)"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("analyse", "runs", "--memory", "abc"), "--memory abc: write 512m or more, as 512m or 2g"),
        (("analyse", "--follow", "runs", "--memory", "100m"), "--memory 100m: write 512m or more"),
        (("analyse-bench", "--memory", "2"), "--memory 2: write 512m or more"),
        (("analyse-bench", "--rows", "0"), "--rows 0: write sizes of 1 or more"),
        (("analyse-bench", "--rows", ""), "--rows : write sizes of 1 or more"),
        (("analyse-bench", "--cores", "0"), "--cores"),
        (("analyse", "--follow", "runs", "--every", "0"), "--every"),
        (("analyse", "--follow", "runs", "--every", "-1"), "--every"),
        (("analyse", "--follow", "runs", "--refreshes", "-1"), "--refreshes"),
    ],
)
def test_values_that_cannot_be_are_refused_by_the_name_of_their_option(words: tuple[str, ...], says: str) -> None:
    done = command(*words, NO_COLOR="1", TERM="dumb")
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr
