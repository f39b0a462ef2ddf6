"""Runs the command `mercast` as a process, and returns its output and exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
WITHIN_S = 120.0
"""Far more than any command needs: the machine may be busy."""


@dataclass(frozen=True, slots=True)
class Outcome:
    code: int
    out: str
    err: str
    """The standard error."""


class CommandLine:
    """Runs commands with a shared run folder, and without a server from the environment."""

    def __init__(self, run_folder: Path, place: Path) -> None:
        self._place = place
        self._environment = {
            **{key: value for key, value in os.environ.items() if key != "MERCAST_SERVER"},
            "MERCAST_RUN_DIR": str(run_folder),
        }

    def run(self, *words: str, input: str | None = None) -> Outcome:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "mercast", *words],
            capture_output=True,
            text=True,
            timeout=WITHIN_S,
            env=self._environment,
            cwd=self._place,
            input=input,
            stdin=subprocess.DEVNULL if input is None else None,
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    def succeed(self, *words: str, input: str | None = None) -> Outcome:
        """Runs a command and asserts that its exit code is 0."""
        outcome = self.run(*words, input=input)
        assert outcome.code == 0, outcome
        return outcome

    def status(self) -> list[Any]:
        shown = json.loads(self.succeed("status", "--json").out)
        assert isinstance(shown, list)
        return shown

    @contextmanager
    def started(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        """Starts a command, and kills it at the end of the block."""
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "mercast", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self._environment,
            cwd=self._place,
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate()


def line_of(process: subprocess.Popen[str], *, is_stderr: bool = False) -> str:
    """The next line of the standard output, or of the standard error with `is_stderr`."""
    stream = process.stderr if is_stderr else process.stdout
    assert stream is not None
    return stream.readline().strip()
