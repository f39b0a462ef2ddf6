"""Subscriptions of other brokers that this broker learned of a moment ago.

They are collected for a short time, and then matched together with the retained publications.
"""

from __future__ import annotations

from collections.abc import Sequence

from broker.core.context import CoreContext
from broker.core.retention import LateInterest, Retention
from routing.router import LearnedSubscription

MATCH_LATE = "late interest"
"""The timer at whose end the collected subscriptions are matched."""


class LateSubscriptions:
    def __init__(self, context: CoreContext, retention: Retention) -> None:
        self._context = context
        self._retention = retention
        self._learned: list[LearnedSubscription] = []
        self.batches = 0
        """How often subscriptions were learned."""

    def add(self, learned: Sequence[LearnedSubscription]) -> None:
        """Collects subscriptions, and sets the timer with the first of them."""
        self.batches += 1
        if not len(self._retention):
            return
        if not self._learned:
            self._context.set_timer(MATCH_LATE, self._context.settings.catch_up_after)
        self._learned += learned

    def pop(self) -> LateInterest:
        """Removes the collected subscriptions and returns them as one index."""
        learned, self._learned = self._learned, []
        return LateInterest(learned, self._context.settings.clock_skew)
