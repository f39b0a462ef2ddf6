"""What goes wrong within a broker through nobody's fault but its own: counted by what failed, logged, never silent."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable

from broker.log import Log


class InternalErrors:
    def __init__(self, log: Log) -> None:
        self.counts: Counter[str] = Counter()
        self._log = log

    def report(self, kind: str, error: BaseException, **fields: object) -> None:
        """The broker goes on; `what` is one of a few words."""
        self.counts[kind] += 1
        self._log.error(kind, error, reason=f"{type(error).__name__}: {error}", **fields)

    def watch(self, task: asyncio.Task[None], fail: Callable[[BaseException], None] | None = None) -> None:
        """For a task that nobody awaits. `fail`: the broker cannot go on without it."""

        def ended(task: asyncio.Task[None]) -> None:
            error = None if task.cancelled() else task.exception()
            if error is not None:
                self.report("task ended", error, task=task.get_name())
                if fail is not None:
                    fail(error)

        task.add_done_callback(ended)
