"""Spark sessions with settings that suit traces, on one machine and on a cluster."""

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
"""Spark itself refuses heaps of less than 450 MB."""
PARTITIONS = 64
"""Of a shuffle on this machine; adaptive execution puts small ones together again."""
SHORT_PARTITIONS = 8

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    # Percentiles of thousands of groups stay in hash tables instead of being sorted: two to three times as fast.
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "100000",
    # Parts of a shuffle are small enough for each task's hash table to stay in memory: what does not fit is sorted
    # instead, which takes several times as long.
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "8m",
    "spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold": "64m",
    # The writer stores a checksum with every page; a flipped bit is an error that names the file, not a wrong number.
    "spark.hadoop.parquet.page.verify-checksum.enabled": "true",
    # Small files of many runs are read together by one task.
    "spark.sql.files.openCostInBytes": "262144",
}


def check_programs() -> None:
    """Java and pyspark are there; to be asked before modules that import pyspark."""
    _check_java()
    try:
        import pyspark.sql  # noqa: F401
    except ImportError as error:
        raise ProgramMissingError(f"the analysis needs {error.name}: pip install 'mercast[spark]'") from error


def check_memory(text: str) -> None:
    """Java would end over what it cannot read, and Spark over too little, both with pages of text."""
    read = re.fullmatch(r"(\d+)([mgt])", text.lower())
    if read is None or int(read[1]) * {"m": 1, "g": 1024, "t": 1024**2}[read[2]] < MEMORY_MB_LEAST:
        raise MemoryTextError(f"--memory {text}: write {MEMORY_MB_LEAST}m or more, as 512m or 2g")


def start(master: str, *, memory: str = "2g", is_short: bool = False) -> SparkSession:
    """`is_short`: for small traces. Java then compiles quickly rather than well, which saves seconds at the start."""
    check_memory(memory)
    check_programs()
    _check_cluster(master)
    from pyspark.sql import SparkSession

    # Read by the program that starts Java, so it cannot be a setting of the session.
    os.environ.setdefault("SPARK_CONF_DIR", str(Path(__file__).parent / "conf"))
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
    """Without this, work for which no worker has room would wait for ever, and nobody would be told."""
    end = time.monotonic() + EXECUTORS_WITHIN_S
    # The driver itself counts as one.
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
        # Otherwise tasks that run Python take whichever is first on the path.
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
        says = shown.strip().splitlines()[0] if shown.strip() else "nothing about its version"
        raise ProgramMissingError(f"Spark needs Java {JAVA_AT_LEAST} or later; {java} says {says}. {INSTALL_JAVA}")


def _check_cluster(master: str) -> None:
    """Spark itself would try for a minute, and then say little."""
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
