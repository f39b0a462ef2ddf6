"""What a broker does once in a while: rates, silent clients, newcomers who say nothing, its state for the trace."""

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
        """Until it is cancelled."""
        limits = self._limits
        while True:
            await asyncio.sleep(min(1.0, limits.idle / SECOND / 4, limits.hello / SECOND / 4))
            now = self._loop.time()
            self._count(now)
            self._part_with_the_silent(now)
            self._record_state()
            self._server.steps.forget_old()
            self._server.admit()

    def _count(self, now: float) -> None:
        before, totals = self._totals, self._server.totals()
        span = now - self._counted_at
        self._server.rates = {what: round((total - before[what]) / span, 1) for what, total in totals.items()}
        self._totals, self._counted_at = totals, now

    def _part_with_the_silent(self, now: float) -> None:
        server, limits = self._server, self._limits
        for newcomer in list(server.newcomers):
            if now - newcomer.connection.heard > limits.hello / SECOND:
                self._give_up_on(newcomer)
        for session in list(server.clients.values()):
            if now - session.connection.heard > limits.idle / SECOND:
                server.violated("idle", session.name)
                session.end(Reason.IDLE, f"nothing was heard for {limits.idle / SECOND:g} s")

    def _give_up_on(self, newcomer: PendingConnection) -> None:
        # A handshake has a time of its own.
        if newcomer.connection.is_made:
            self._server.violated("hello", newcomer.connection.other_end)
            newcomer.refuse(Reason.IDLE, link_handshake.LIMIT, "nothing was said in time")

    def _record_state(self) -> None:
        server = self._server
        if server.recorder is not None:
            waiting = len(server.holding) + (server.store.waiting if server.store is not None else 0)
            server.recorder.state(server.core.router.counts(), waiting)
