"""Waits for unsettled publications before a broker stops."""

from __future__ import annotations

import asyncio

from broker.runtime.client_registry import ClientRegistry
from broker.runtime.core_driver import CoreDriver
from broker.runtime.store import Store

DRAIN_TIMEOUT_S = 5.0


class Drain:
    def __init__(self, driver: CoreDriver, clients: ClientRegistry, store: Store | None) -> None:
        self._driver = driver
        self._clients = clients
        self._store = store

    @property
    def is_settled(self) -> bool:
        """Whether no publication waits here or awaits settlement by another broker."""
        core = self._driver.core
        return not (core.unsettled or core.in_custody or core.postponed or self._clients.waiting_publishers)

    async def wait(self) -> None:
        """Waits until all publications are settled, at most DRAIN_TIMEOUT_S."""
        loop = asyncio.get_running_loop()
        end = loop.time() + DRAIN_TIMEOUT_S
        # With a failed store, publications that wait for a commit never settle.
        while not self.is_settled and not self._store_has_failed and loop.time() < end:
            await asyncio.sleep(0.02)

    @property
    def _store_has_failed(self) -> bool:
        return self._store is not None and self._store.has_failed
