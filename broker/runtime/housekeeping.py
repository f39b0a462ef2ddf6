"""Periodic work of a broker: computes rates, closes idle connections, and records the broker's state in the trace."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from broker.core.settings import SECOND
from broker.runtime.pending_connection import PendingConnection
from broker.wire import link_handshake
from broker.wire.client_frames import Reason

if TYPE_CHECKING:
    from broker.runtime.server import BrokerServer


class Housekeeping:
    def __init__(self, server: BrokerServer) -> None:
        self._server = server
        self._limits = server.config.overlay.limits
        self._loop = asyncio.get_running_loop()
        self._totals = server.totals()
        self._counted_at = self._loop.time()

    async def run(self) -> None:
        """Runs until it is cancelled."""
        limits = self._limits
        while True:
            await asyncio.sleep(min(1.0, limits.idle / SECOND / 4, limits.hello / SECOND / 4))
            now = self._loop.time()
            self._update_rates(now)
            self._close_idle(now)
            self._record_state()
            self._server.tracer.remove_expired()
            self._server.submit_waiting_publications()

    def _update_rates(self, now: float) -> None:
        before, totals = self._totals, self._server.totals()
        span = now - self._counted_at
        self._server.rates = {kind: round((total - before[kind]) / span, 1) for kind, total in totals.items()}
        self._totals, self._counted_at = totals, now

    def _close_idle(self, now: float) -> None:
        server, limits = self._server, self._limits
        for pending in list(server.pending_connections):
            if now - pending.connection.last_received_s > limits.hello / SECOND:
                self._refuse_silent(pending)
        for session in list(server.clients.values()):
            if now - session.connection.last_received_s > limits.idle / SECOND:
                server.count_violation("idle", session.name)
                session.end(Reason.IDLE, f"nothing was heard for {limits.idle / SECOND:g} s")

    def _refuse_silent(self, pending: PendingConnection) -> None:
        # TLS handshakes have their own timeout.
        if pending.connection.is_established:
            self._server.count_violation("hello", pending.connection.remote_address)
            pending.refuse(Reason.IDLE, link_handshake.LIMIT, "nothing was said in time")

    def _record_state(self) -> None:
        server = self._server
        if server.recorder is not None:
            waiting = len(server.waiting_publishers) + (server.store.pending_count if server.store is not None else 0)
            server.recorder.state(server.core.router.counts(), waiting)
