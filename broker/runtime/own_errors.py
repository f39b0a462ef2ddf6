"""What goes wrong within a broker through nobody's fault but its own: counted by what failed, logged, never silent."""

from __future__ import annotations

from collections import Counter

from broker.runtime.log import Log


class OwnErrors:
    def __init__(self, log: Log) -> None:
        self.counts: Counter[str] = Counter()
        self._log = log

    def note(self, what: str, error: BaseException, **fields: object) -> None:
        """The broker goes on; `what` is one of a few words."""
        self.counts[what] += 1
        self._log.error(what, error, reason=f"{type(error).__name__}: {error}", **fields)
