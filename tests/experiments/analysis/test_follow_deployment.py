"""Proves with real brokers that record that `mercast analyse --follow` brings its tables up to date."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from broker import connect
from tests.harness.client_processes import overlay_text
from tests.harness.command_line import CommandLine
from tests.harness.conditions import wait_until
from tests.harness.ports import free_ports
from tests.harness.programs import path_of

IDS = ("b1", "b2", "b3")
WITHIN_S = 180.0
"""Much longer than a refresh, because the machine that runs the tests may be busy."""


@pytest.fixture
def command(tmp_path: Path) -> Iterator[CommandLine]:
    line = CommandLine(tmp_path / "run", tmp_path)
    yield line
    line.run("down", "--all")


class FollowingCommand:
    """A process of `mercast analyse --follow` with its output."""

    def __init__(self, trace: Path, out: Path) -> None:
        words = ["analyse", "--follow", str(trace), "--out", str(out), "--every", "1", "--master", "local[2]"]
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "mercast", *words], stderr=subprocess.PIPE, text=True
        )
        assert self._process.stderr is not None
        self._stderr = self._process.stderr
        self.output: list[str] = []

    def __enter__(self) -> FollowingCommand:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._stderr.close()

    def until(self, words: str) -> None:
        """Waits for a line that contains the words. Fails if it does not appear in time."""
        overdue = threading.Timer(WITHIN_S, self._process.kill)
        overdue.start()
        for line in self._stderr:
            self.output.append(line)
            if words in line:
                overdue.cancel()
                return
        raise AssertionError(f"{words!r} never came: {self.output}")

    def interrupt(self) -> int:
        os.kill(self._process.pid, signal.SIGINT)
        self.output += self._stderr.readlines()
        return self._process.wait(WITHIN_S)


LAST = 1_000_000


async def publish(first: str, last: str, count: int) -> tuple[int, int]:
    """Publishes at one broker to a reader at another. Returns the numbers of published and of received publications."""
    async with (
        connect(last, name="reader") as reader,
        reader.subscribe("n >= 0") as stream,
        connect(first, name="source") as source,
    ):
        published = 0
        # Publications before the first broker knows the subscription have no subscriber.
        while not len(stream):
            await source.publish({"n": 0})
            published += 1
            # A pause between two publications.
            await asyncio.sleep(0.1)
        for n in [*range(count), LAST]:
            await source.publish({"n": n})
            published += 1
        delivered = 1
        while (await stream.next(60.0)).attributes["n"] != LAST:
            delivered += 1
    return published, delivered


@pytest.mark.slow
def test_tables_are_updated_with_publications_while_brokers_run(command: CommandLine, tmp_path: Path) -> None:
    path_of("java")
    ports = free_ports(len(IDS))
    file, trace, out = tmp_path / "overlay.toml", tmp_path / "trace", tmp_path / "live"
    links = [("b1", "b2"), ("b2", "b3")]
    file.write_text(overlay_text(dict(zip(IDS, ports, strict=True)), name="three", links=links))
    command.succeed("up", str(file), "--trace", str(trace))
    ends = (f"mercast://127.0.0.1:{ports[0]}", f"mercast://127.0.0.1:{ports[-1]}")

    def counts(table: str, column: str) -> dict[str, Any]:
        rows = pyarrow.parquet.read_table(out / "tables" / f"{table}.parquet").to_pylist()
        assert {(row["run"], row["protocol"]) for row in rows} == {("trace", "d-dbr")}
        return {row.get("broker") or row.get("kind") or "all": row[column] for row in rows}

    with FollowingCommand(trace, out) as following:
        published, delivered = asyncio.run(publish(*ends, count=50))
        following.until(f"{published} published; {delivered} delivered")
        more = asyncio.run(publish(*ends, count=30))
        published, delivered = published + more[0], delivered + more[1]
        following.until(f"{published} published; {delivered} delivered")
        assert counts("published", "publications") == {"b1": published}
        assert counts("latency_by_broker", "deliveries") == {"b3": delivered}
        # Each broker completes its files at times of its own, and b2 may be the last.
        wait_until(lambda: counts("messages_by_kind", "messages")["publish"] == 2 * delivered, WITHIN_S)
        assert counts("broker_state", "queue") == {"b1": 0, "b2": 0, "b3": 0}
        assert all(0 < latency_ms < 60_000 for latency_ms in counts("latency", "latency_ms_max").values())
        assert following.interrupt() == 0
    assert following.output[-1] == f"stopped; tables: {out / 'tables'}\n"
    assert not [line for line in following.output if "Exception" in line or "Traceback" in line]
