"""`mercast` as its users start it: a process with arguments, output, and an exit code."""

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
"""Far more than any command takes: the machine that runs the tests may be busy."""


@dataclass(frozen=True, slots=True)
class Outcome:
    code: int
    out: str
    talk: str


class CommandLine:
    """Commands that share a run folder, and know no server unless they are told of one."""

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
        outcome = self.run(*words, input=input)
        assert outcome.code == 0, outcome
        return outcome

    def status(self) -> list[Any]:
        shown = json.loads(self.succeed("status", "--json").out)
        assert isinstance(shown, list)
        return shown

    @contextmanager
    def started(self, *words: str) -> Iterator[subprocess.Popen[str]]:
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


def line_of(process: subprocess.Popen[str], *, is_talk: bool = False) -> str:
    stream = process.stderr if is_talk else process.stdout
    assert stream is not None
    return stream.readline().strip()
