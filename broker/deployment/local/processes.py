"""Identities of processes that stay valid when the operating system reuses a process id."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """A process id together with the time at which the process started."""

    pid: int
    started: int
    """The start time in kernel ticks since boot; 0 on systems without /proc."""

    @classmethod
    def of(cls, pid: int) -> ProcessIdentity:
        return cls(pid, _start_ticks(pid) or 0)

    @property
    def is_alive(self) -> bool:
        """Whether this process still runs. A zombie does not count as running."""
        if self.started:
            return _start_ticks(self.pid) == self.started
        try:
            os.kill(self.pid, 0)
        except OSError:
            return False
        return True

    def send(self, number: signal.Signals) -> bool:
        """Sends the signal. Returns False if the process has ended."""
        if not self.is_alive:
            return False
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            return False
        return True


def _start_ticks(pid: int) -> int | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The second field is the program's name in parentheses, which may contain spaces and parentheses.
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in ("Z", "X") else int(fields[19])


def wait_for_exit(processes: Sequence[ProcessIdentity], timeout_s: float) -> list[ProcessIdentity]:
    """Waits until the processes have ended. Returns those that still run after the timeout."""
    end = time.monotonic() + timeout_s
    alive = [each for each in processes if each.is_alive]
    while alive and time.monotonic() < end:
        time.sleep(0.02)
        alive = [each for each in alive if each.is_alive]
    return alive
