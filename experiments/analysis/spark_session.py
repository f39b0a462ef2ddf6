"""Starts Spark sessions with settings for traces, on one machine or on a cluster."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.analysis.errors import AnalysisError, ClusterError, MemoryTextError, ProgramMissingError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA_AT_LEAST = 17
INSTALL_JAVA = "Debian, Ubuntu: apt-get install openjdk-17-jre-headless; macOS: brew install openjdk@17"
CONNECT_WITHIN_S = 5.0
EXECUTORS_WITHIN_S = 60.0
MEMORY_MB_LEAST = 512
"""Spark refuses heaps of less than 450 MB."""
PARTITIONS = 64
"""Partitions of a shuffle on this machine. Adaptive execution merges small ones."""
SHORT_PARTITIONS = 8

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    # Keeps percentiles of thousands of groups in hash tables instead of sorting: two to three times as fast.
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "100000",
    # Partitions of a shuffle are small, so that the hash table of each task stays in memory. Otherwise Spark sorts,
    # which takes several times as long.
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "8m",
    "spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold": "64m",
    # The writer stores a checksum with every page. A flipped bit is an error that names the file, not a wrong number.
    "spark.hadoop.parquet.page.verify-checksum.enabled": "true",
    # One task reads small files of many runs together.
    "spark.sql.files.openCostInBytes": "262144",
}


def check_programs() -> None:
    """Checks that Java and pyspark are installed. Call it before importing modules that import pyspark."""
    _check_java()
    try:
        import pyspark.sql  # noqa: F401
    except ImportError as error:
        raise ProgramMissingError(f"the analysis needs {error.name}: pip install 'mercast[spark]'") from error


def check_memory(text: str) -> None:
    """Refuses invalid or too small sizes. Java or Spark would fail with pages of text."""
    read = re.fullmatch(r"(\d+)([mgt])", text.lower())
    if read is None or int(read[1]) * {"m": 1, "g": 1024, "t": 1024**2}[read[2]] < MEMORY_MB_LEAST:
        raise MemoryTextError(f"--memory {text}: write {MEMORY_MB_LEAST}m or more, as 512m or 2g")


def start(master: str, *, memory: str = "2g", is_short: bool = False) -> SparkSession:
    """Starts a session. `is_short` is for small traces: Java optimises less, which saves seconds at the start."""
    check_memory(memory)
    check_programs()
    _check_cluster(master)
    from pyspark.sql import SparkSession

    # The program that starts Java reads it, so it cannot be a setting of the session.
    os.environ.setdefault("SPARK_CONF_DIR", str(Path(__file__).parent / "conf"))
    if _host_of(master) is None:
        # Spark's own choice is the `python3` of the path, which may be another version than this one.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.Builder().appName("mercast").master(master)
    for key, value in {**SETTINGS, **_settings_for(master, memory, is_short)}.items():
        builder = builder.config(key, value)
    from pyspark.errors import PySparkRuntimeError

    try:
        session = builder.getOrCreate()
    except PySparkRuntimeError as error:
        raise AnalysisError(f"Java did not start with {memory} of memory; it says why above") from error
    if _host_of(master) is not None:
        _wait_for_executors(session, master, memory)
    return session


def _wait_for_executors(session: SparkSession, master: str, memory: str) -> None:
    """Waits until a worker accepts work. Without this, work for which no worker has memory would wait silently."""
    end = time.monotonic() + EXECUTORS_WITHIN_S
    # The driver counts as one.
    while session.sparkContext._jsc.sc().getExecutorMemoryStatus().size() < 2:
        if time.monotonic() > end:
            session.stop()
            raise ClusterError(
                f"no worker of {master} took work within {EXECUTORS_WITHIN_S:g} s: none is up, all are busy, or none "
                f"has {memory} of memory free"
            )
        time.sleep(0.1)


def _settings_for(master: str, memory: str, is_short: bool) -> dict[str, str]:
    settings = {
        "spark.driver.memory": memory,
        "spark.executor.memory": memory,
        # Without this, tasks use the first Python on the worker's path.
        "spark.pyspark.python": sys.executable,
    }
    host = _host_of(master)
    compiler = " -XX:TieredStopAtLevel=1" if is_short else ""
    settings["spark.driver.extraJavaOptions"] = f"-XX:+UseSerialGC{compiler}"
    if host is None:
        settings["spark.sql.shuffle.partitions"] = str(SHORT_PARTITIONS if is_short else PARTITIONS)
    elif is_short:
        settings["spark.executor.extraJavaOptions"] = compiler.strip()
    if host in (None, "127.0.0.1", "localhost"):
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return settings


def _host_of(master: str) -> str | None:
    """The first host of a standalone cluster's address."""
    found = re.match(r"spark://([^:,]+):\d+", master)
    return found[1] if found else None


def _check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")
    if java is None:
        where = f"JAVA_HOME is {home}, and has no bin/java" if home else "there is no java on the PATH"
        raise ProgramMissingError(f"Spark needs Java {JAVA_AT_LEAST} or later, and {where}. {INSTALL_JAVA}")
    shown = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(\d+)', shown)
    if version is None or int(version[1]) < JAVA_AT_LEAST:
        answer = shown.strip().splitlines()[0] if shown.strip() else "nothing about its version"
        raise ProgramMissingError(f"Spark needs Java {JAVA_AT_LEAST} or later; {java} says {answer}. {INSTALL_JAVA}")


def _check_cluster(master: str) -> None:
    """Checks the address of the master. Spark would try for a minute and give little information."""
    if not re.fullmatch(r"local(\[(\*|[1-9]\d*)(,\s*\d+)?\])?|spark://.+|yarn|k8s://.+", master):
        raise ClusterError(f"--master {master}: write local[2], local[*] or spark://host:7077")
    if not master.startswith("spark://"):
        return
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host, int(port)), timeout=CONNECT_WITHIN_S).close()
        except ValueError:
            raise ClusterError(f"--master {master}: write the port too, as spark://{address}:7077") from None
        except OSError as error:
            last: OSError = error
        else:
            return
    raise ClusterError(f"no Spark master answers at {master}: {last}")
