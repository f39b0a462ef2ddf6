"""One broker as a process: `mercast broker`, started, awaited until it serves, and stopped by its process id."""

from __future__ import annotations

import json
import selectors
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
START_WITHIN_S = 120.0
"""Far more than a start needs: the machine may be busy."""
STOP_WITHIN_S = 60.0
ANSWER_WITHIN_S = 20.0


def admin_page(admin: str, page: str) -> str:
    with urllib.request.urlopen(f"http://{admin}/{page}", timeout=ANSWER_WITHIN_S) as answer:
        text: str = answer.read().decode()
    return text


class BrokerProcess:
    """A broker of an overlay file. It can be started again after it has ended. Its log is next to the file."""

    def __init__(self, file: Path, id: str) -> None:
        self._file = file
        self._id = id
        self._process: subprocess.Popen[str] | None = None
        self.listen = ""
        self.admin = ""

    @property
    def url(self) -> str:
        return f"mercast://{self.listen}"

    @property
    def pid(self) -> int:
        return self._running.pid

    @property
    def _running(self) -> subprocess.Popen[str]:
        assert self._process is not None, f"broker {self._id} was not started"
        return self._process

    def start(self, *arguments: str) -> None:
        self.launch(*arguments)
        self.wait_until_ready()

    def launch(self, *arguments: str) -> None:
        """Starts the process and does not wait until it serves."""
        command = [sys.executable, "-m", "mercast", "broker", str(self._file), "--id", self._id, *arguments]
        with self._log_path.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True, cwd=ROOT
            )

    def wait_until_ready(self) -> None:
        """Waits for the line with its addresses, which the broker prints when it serves."""
        stdout = self._running.stdout
        assert stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            assert selector.select(START_WITHIN_S), f"broker {self._id} does not serve after {START_WITHIN_S:g} s"
        line = stdout.readline()
        assert line, f"broker {self._id} ended: {self.log()}"
        addresses = json.loads(line)
        self.listen, self.admin = addresses["listen"], addresses["admin"]

    @property
    def _log_path(self) -> Path:
        return self._file.with_name(f"{self._id}.log")

    def log(self) -> str:
        return self._log_path.read_text()

    def status(self) -> dict[str, Any]:
        status: dict[str, Any] = json.loads(admin_page(self.admin, "status"))
        return status

    def metrics(self) -> str:
        return admin_page(self.admin, "metrics")

    def send_signal(self, number: signal.Signals) -> None:
        self._running.send_signal(number)

    def wait(self) -> int:
        """Waits until the process ends, and returns its exit code."""
        process = self._running
        code = process.wait(STOP_WITHIN_S)
        if process.stdout is not None:
            # Not earlier: a broker that leaves its overlay prints a line at its end.
            process.stdout.close()
        return code

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)
        self.wait()

    def stop(self) -> int:
        """Ends the process with SIGTERM. Returns its exit code, also if it has ended before."""
        self.send_signal(signal.SIGTERM)
        try:
            return self.wait()
        except subprocess.TimeoutExpired:
            self.kill()
            raise
