"""Identities of processes that stay valid when the operating system reuses a process id.

A signal is sent only to a process with the recorded id and start time that belongs to this user. Systems without /proc
do not show the start time. There, a process is identified by its id alone.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple, TypeAlias

from msgspec import Meta

Pid: TypeAlias = Annotated[int, Meta(ge=1, le=(1 << 31) - 1)]
"""A process id. For `os.kill`, 0 and negative numbers would mean groups of processes."""
_HAS_PROC = Path("/proc/self/stat").exists()


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """A process id together with the time at which the process started."""

    pid: Pid
    started: int
    """The start time in kernel ticks since boot. 0 for a process that had ended, and on systems without /proc."""

    @classmethod
    def of(cls, pid: int) -> ProcessIdentity:
        process = _running_process(pid)
        return cls(pid, process.started if process is not None else 0)

    @property
    def is_alive(self) -> bool:
        """Whether this process still runs and belongs to this user. A zombie does not count as running."""
        if _HAS_PROC:
            process = _running_process(self.pid)
            return process is not None and process.started == self.started and process.owner == os.geteuid()
        try:
            os.kill(self.pid, 0)
        except OSError:
            return False
        return True

    def send(self, number: signal.Signals) -> bool:
        """Sends the signal. Returns False if the process has ended."""
        handle = _open_handle(self.pid)
        try:
            # The handle is opened first: it does not move to another process that gets the id after this check.
            if not self.is_alive:
                return False
            if handle is None:
                os.kill(self.pid, number)
            else:
                signal.pidfd_send_signal(handle, number)
        except ProcessLookupError:
            return False
        finally:
            if handle is not None:
                os.close(handle)
        return True


class _RunningProcess(NamedTuple):
    started: int
    owner: int


def _running_process(pid: int) -> _RunningProcess | None:
    """The process with this id, or None if there is none or it is a zombie."""
    try:
        stat, status = (Path(f"/proc/{pid}/{name}").read_text("utf-8", "replace") for name in ("stat", "status"))
    except OSError:
        return None
    # The second field is the program's name in parentheses, which may contain spaces and parentheses.
    fields = stat.rpartition(")")[2].split()
    if fields[0] in ("Z", "X"):
        return None
    # The owner of /proc/PID is root for a process with file capabilities, so the owner is read from its status.
    (uids,) = (line.split() for line in status.splitlines() if line.startswith("Uid:"))
    return _RunningProcess(int(fields[19]), owner=int(uids[2]))


def _open_handle(pid: int) -> int | None:
    """Opens a handle of the process. None if there is no such process, or the system has no handles of processes."""
    if sys.platform != "linux":
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:
        # Kernels before 5.3 and some sandboxes lack the call.
        return None


def wait_for_exit(processes: Sequence[ProcessIdentity], timeout_s: float) -> list[ProcessIdentity]:
    """Waits until the processes have ended. Returns those that still run after the timeout."""
    end = time.monotonic() + timeout_s
    alive = [each for each in processes if each.is_alive]
    while alive and time.monotonic() < end:
        time.sleep(0.02)
        alive = [each for each in alive if each.is_alive]
    return alive
