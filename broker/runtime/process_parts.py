"""Parts that run in the broker's process with the broker, such as a gateway."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

PartStatus = Callable[[], dict[str, object]]


class ProcessParts:
    def __init__(self, fail: Callable[[BaseException], None]) -> None:
        """`fail` is called with the error of a part that ended with one."""
        self._fail = fail
        self._statuses: dict[str, PartStatus] = {}

    def add(self, name: str, status: PartStatus, task: asyncio.Task[None]) -> None:
        """Adds a running part. `status` gives what the broker's status shows of it."""
        self._statuses[name] = status
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._fail(error)

    def statuses(self) -> dict[str, dict[str, object]]:
        """The status of each part, by name."""
        return {name: status() for name, status in self._statuses.items()}
