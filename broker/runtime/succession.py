"""The incarnations of one process: the first, and a later one if other brokers know one that is not earlier.

A broker without a store takes its incarnation from the clock. If the clock was set back between two starts, other
brokers know the new incarnation as an old one, or as the same one, and ignore its messages. A neighbour shows in the
handshake which incarnation it remembers. The broker then replaces its core by one with a later incarnation. This is a
restart without a new process: clients and neighbours connect again.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from broker.config.overlay_config import BrokerConfig
from broker.log import Log
from broker.runtime.client_registry import ClientRegistry
from broker.runtime.core_driver import CoreDriver
from broker.runtime.incarnation import Incarnation, create_core
from broker.runtime.internal_errors import InternalErrors
from broker.runtime.listener import Listener
from broker.runtime.neighbours import Neighbours
from broker.runtime.store import Store
from broker.runtime.store_format import StoreError
from broker.wire import link_handshake
from broker.wire.client_frames import Reason


class Succession:
    def __init__(
        self,
        config: BrokerConfig,
        driver: CoreDriver,
        clients: ClientRegistry,
        listener: Listener,
        neighbours: Neighbours,
        stop_timers: Callable[[], None],
        store: Store | None,
        trace: Path | None,
        errors: InternalErrors,
        log: Log,
    ) -> None:
        self._config = config
        self._driver = driver
        self._clients = clients
        self._listener = listener
        self._neighbours = neighbours
        self._stop_timers = stop_timers
        self._store = store
        self._trace = trace
        self._errors = errors
        self._log = log

    def start_core(self, incarnation: Incarnation) -> None:
        """Starts a core of this incarnation. Clients may publish when the required links are up."""
        address = self._listener.contact_address
        core = create_core(self._config, incarnation, address, is_traced=self._trace is not None)
        self._driver.start(core, incarnation.records, self._config.overlay, self._trace)
        self._clients.start_accepting(self._neighbours.has_required_links)

    def replace_core(self, peer: str, known: int) -> None:
        """Replaces the core by one that is later than `known`, the incarnation that the neighbour knows.

        A durable broker stops instead. Its store has the later incarnation at the next start.
        """
        me, now = self._config.id, self._driver.core.incarnation
        self._log.warning("incarnation outlived", peer=peer, known=known, incarnation=now)
        if self._store is not None:
            self._store.raise_incarnation(known)
            text = f"{peer} knows incarnation {known} of {me}, and the store led to {now}: the clock was set back, and"
            self._errors.fail(
                StoreError(f"{text} the store is an old one. Start the broker again: it takes a later one")
            )
            return
        reason = f"{me} begins a later incarnation"
        self._clients.end_all(Reason.STOPPING, reason)
        self._neighbours.end_links(link_handshake.STOPPING, reason)
        self._stop_timers()
        self._driver.close_trace()
        self.start_core(Incarnation(known + 1, has_lived=True))
