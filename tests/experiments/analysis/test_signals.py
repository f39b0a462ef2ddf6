"""Proves that Ctrl-C ends an analysis with one line, while Java starts and while Spark works."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from experiments.analysis.benchmark import start_without_sigint
from tests.harness.conditions import wait_until
from tests.harness.programs import path_of

pytestmark = pytest.mark.slow


def wait_for_java(process: subprocess.Popen[str]) -> None:
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")

    def is_spark(child: str) -> bool:
        # The first Java process only prints its version and ends soon.
        with suppress(OSError):
            folder = Path(f"/proc/{child}")
            is_java = (folder / "comm").read_text().strip() == "java"
            return is_java and "deploy.SparkSubmit" in (folder / "cmdline").read_text()
        return False

    wait_until(lambda: any(map(is_spark, children.read_text().split())), what="Java runs Spark")


@pytest.mark.parametrize("after_s", [0.5, 4])
@pytest.mark.parametrize("command", ["analyse", "analyse-bench"])
def test_ctrl_c_ends_it_with_one_line(folder_of_runs: Path, tmp_path: Path, command: str, after_s: float) -> None:
    path_of("java")
    given = {
        "analyse": [str(folder_of_runs), "--out", str(tmp_path / "out")],
        "analyse-bench": ["--rows", "400000", "--keep", str(tmp_path / "traces")],
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "mercast", command, *given[command]],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    wait_for_java(process)
    # The point of the start at which the signal arrives.
    time.sleep(after_s)
    # A terminal sends the signal to the command and all its children.
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert out == ""
    assert "Traceback" not in err
    assert err.splitlines()[-1] == "mercast: interrupted"


def test_ctrl_c_does_not_reach_duckdbs_process_even_while_it_starts(capfd: pytest.CaptureFixture[str]) -> None:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        start_without_sigint(pool)
        (child,) = multiprocessing.active_children()
        assert child.pid is not None
        os.kill(child.pid, signal.SIGINT)
        assert pool.submit(os.getpid).result() == child.pid
    assert capfd.readouterr().err == ""
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
