"""Real broker processes for tests: on free loopback ports, stopped by their process id."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.harness.ports import free_ports

START_WITHIN_S = 60.0
"""Far more than a start takes: the machine that runs the tests may be busy."""


def overlay_text(
    ports: dict[str, int],
    *,
    name: str = "test",
    links: Sequence[tuple[str, str]] = (),
    settings: str = "",
    tables: str = "",
) -> str:
    brokers = "\n".join(
        f'[[broker]]\nid = "{id}"\nlisten = "127.0.0.1:{port}"\nadmin = "127.0.0.1:0"' for id, port in ports.items()
    )
    joined = "\n".join(f'[[link]]\nbetween = ["{a}", "{b}"]' for a, b in links)
    return f'schema = 1\n[overlay]\nname = "{name}"\n{settings}\n{tables}\n{brokers}\n{joined}\n'


class BrokerProcess:
    """`mercast broker` for one broker of an overlay file."""

    def __init__(self, file: Path, id: str) -> None:
        self._file = file
        self._id = id
        self._process: subprocess.Popen[str] | None = None
        self.listen = ""

    @property
    def url(self) -> str:
        return f"mercast://{self.listen}"

    def start(self) -> None:
        with self._file.with_name(f"{self._id}.log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "mercast", "broker", str(self._file), "--id", self._id],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=Path(__file__).resolve().parents[2],
            )
        assert self._process.stdout is not None
        overdue = threading.Timer(START_WITHIN_S, self._process.kill)
        overdue.start()
        line = self._process.stdout.readline()
        overdue.cancel()
        assert line, f"broker {self._id} did not start: {self._file.with_name(f'{self._id}.log').read_text()}"
        self.listen = json.loads(line)["listen"]

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        if self._process is not None:
            os.kill(self._process.pid, number)
            self._process.wait(START_WITHIN_S)
            assert self._process.stdout is not None
            self._process.stdout.close()
            self._process = None


@contextmanager
def brokers(folder: Path, ids: Sequence[str], **overlay: object) -> Iterator[dict[str, BrokerProcess]]:
    """One process for each broker; links lead from each to the next."""
    ports = dict(zip(ids, free_ports(len(ids)), strict=True))
    links = [(a, b) for a, b in itertools.pairwise(ids)]
    file = folder / "overlay.toml"
    file.write_text(overlay_text(ports, links=links, **overlay))  # type: ignore[arg-type]
    running = {id: BrokerProcess(file, id) for id in ids}
    try:
        for each in running.values():
            each.start()
        yield running
    finally:
        for each in running.values():
            each.stop()
