"""Errors of the broker itself, not of clients or other brokers. Each error is counted by kind and logged."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable

from broker.log import Log


class InternalErrors:
    def __init__(self, log: Log) -> None:
        self.counts: Counter[str] = Counter()
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Gets an exception when the broker cannot continue."""
        self._log = log

    def report(self, kind: str, error: BaseException, **fields: object) -> None:
        """Counts and logs an error after which the broker continues. `kind` is one of a few fixed texts."""
        self.counts[kind] += 1
        self._log.error(kind, error, reason=f"{type(error).__name__}: {error}", **fields)

    def fail(self, error: BaseException) -> None:
        """Reports an error after which the broker cannot continue. Only the first one counts."""
        if not self.failed.done():
            self.failed.set_exception(error)

    def watch(self, task: asyncio.Task[None], fail: Callable[[BaseException], None] | None = None) -> None:
        """Reports the error of a task that no code awaits. `fail` is called too, if the broker needs the task."""

        def ended(task: asyncio.Task[None]) -> None:
            error = None if task.cancelled() else task.exception()
            if error is not None:
                self.report("task ended", error, task=task.get_name())
                if fail is not None:
                    fail(error)

        task.add_done_callback(ended)
