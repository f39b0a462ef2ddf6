"""Periodic work of a broker: computes rates, disconnects idle clients, compares clocks with neighbours, and records the
broker's state in the trace."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from broker.config.tables import LimitsTable
from broker.core.settings import SECOND
from broker.runtime.client_registry import ClientRegistry
from broker.runtime.core_driver import CoreDriver
from broker.runtime.internal_errors import InternalErrors
from broker.runtime.pause_meter import PauseMeter
from broker.runtime.store import Store
from broker.runtime.violations import Violations
from broker.wire.client_frames import Reason


class Housekeeping:
    def __init__(
        self,
        limits: LimitsTable,
        driver: CoreDriver,
        clients: ClientRegistry,
        store: Store | None,
        compare_clocks: Callable[[], None],
        violations: Violations,
        errors: InternalErrors,
    ) -> None:
        self.rates: dict[str, float] = {}
        """Publications per second since the last run, by kind."""
        self.pauses = PauseMeter()
        self._limits = limits
        self._driver = driver
        self._clients = clients
        self._store = store
        self._compare_clocks = compare_clocks
        self._violations = violations
        self._errors = errors
        self._loop = asyncio.get_running_loop()

    def start(self) -> None:
        self._totals = self._driver.totals()
        self._counted_at = self._loop.time()
        self._task = asyncio.create_task(self._run(), name="housekeeping")
        self._errors.watch(self._task, self._errors.fail)
        self.pauses.start()

    def stop(self) -> None:
        self._task.cancel()
        self.pauses.stop()

    async def _run(self) -> None:
        limits = self._limits
        while True:
            await asyncio.sleep(min(1.0, limits.idle / SECOND / 4))
            now = self._loop.time()
            self._update_rates(now)
            self._close_idle(now)
            self._record_state()
            self._compare_clocks()
            self._driver.tracer.remove_expired()
            self._clients.submit_waiting()

    def _update_rates(self, now: float) -> None:
        before, totals = self._totals, self._driver.totals()
        span = now - self._counted_at
        self.rates = {kind: round((total - before[kind]) / span, 1) for kind, total in totals.items()}
        self._totals, self._counted_at = totals, now

    def _close_idle(self, now: float) -> None:
        limits = self._limits
        for session in list(self._clients.sessions.values()):
            if now - session.connection.last_received_s > limits.idle / SECOND:
                self._violations.count("idle", session.name)
                session.end(Reason.IDLE, f"nothing was heard for {limits.idle / SECOND:g} s")

    def _record_state(self) -> None:
        recorder = self._driver.recorder
        if recorder is not None:
            pending_writes = self._store.pending_count if self._store is not None else 0
            waiting = len(self._clients.waiting_publishers) + pending_writes
            recorder.state(self._driver.core.router.counts(), waiting)
