"""Violations of limits and rules by clients and other brokers. Each is counted by limit and logged."""

from __future__ import annotations

from collections import Counter

from broker.log import Log


class Violations:
    def __init__(self, log: Log) -> None:
        self.counts: Counter[str] = Counter()
        self._log = log

    def count(self, limit: str, who: str, detail: str = "") -> None:
        """Counts and logs that a client or broker exceeded a limit or broke a rule."""
        self.counts[limit] += 1
        self._log.warning("violation", limit=limit, who=who, detail=detail)
