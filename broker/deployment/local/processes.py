"""Processes of ours, told from others that were given the same number later."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    pid: int
    started: int
    """When it was started, in the kernel's ticks since boot; 0 where the system does not tell (no /proc)."""

    @classmethod
    def of(cls, pid: int) -> ProcessIdentity:
        return cls(pid, _started(pid) or 0)

    @property
    def is_alive(self) -> bool:
        """Does the very process still run? One that ended and was not waited for does not."""
        if self.started:
            return _started(self.pid) == self.started
        try:
            os.kill(self.pid, 0)
        except OSError:
            return False
        return True

    def send(self, number: signal.Signals) -> bool:
        """Was it there to be told?"""
        if not self.is_alive:
            return False
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            return False
        return True


def _started(pid: int) -> int | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The second field is the program's name in parentheses, which may hold anything.
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in ("Z", "X") else int(fields[19])


def wait_for_exit(processes: Sequence[ProcessIdentity], within_s: float) -> list[ProcessIdentity]:
    """Those that are still there after that time."""
    end = time.monotonic() + within_s
    left = [each for each in processes if each.is_alive]
    while left and time.monotonic() < end:
        time.sleep(0.02)
        left = [each for each in left if each.is_alive]
    return left
