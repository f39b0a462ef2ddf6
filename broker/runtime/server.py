"""One broker in one event loop: the parts around the core, how they are connected, and their start and stop.

Received frames, timers and commits become inputs of the core. The core's effects become frames, timers and records.
No part knows the server: each gets the parts that it uses.
"""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

from broker.config.address import Address
from broker.config.overlay_config import BrokerConfig
from broker.core.settings import SECOND
from broker.log import Log
from broker.runtime.admin_endpoint import AdminEndpoint
from broker.runtime.client_registry import ClientRegistry
from broker.runtime.commit_handler import create_store
from broker.runtime.connection import FlushQueue
from broker.runtime.core_driver import CoreDriver
from broker.runtime.drain import Drain
from broker.runtime.effect_executor import EffectExecutor
from broker.runtime.housekeeping import Housekeeping
from broker.runtime.incarnation import begin_incarnation
from broker.runtime.internal_errors import InternalErrors
from broker.runtime.listener import Listener
from broker.runtime.neighbours import Neighbours
from broker.runtime.process_parts import ProcessParts
from broker.runtime.publication_tracer import PublicationTracer
from broker.runtime.rights_enforcement import RightsEnforcement
from broker.runtime.security_reload import reload_security
from broker.runtime.session_admission import SessionAdmission
from broker.runtime.status import Status, StatusSources, status_of
from broker.runtime.succession import Succession
from broker.runtime.violations import Violations
from broker.security.authentication import Security, check_exposure
from broker.security.security_config import load_security
from broker.wire import link_handshake
from broker.wire.client_frames import Reason


class BrokerServer:
    """Connects the parts of one broker. It is made in the event loop that runs the broker.

    Call `start`, wait for `failed` or `leave_requested`, then call `stop`.
    """

    def __init__(
        self,
        config: BrokerConfig,
        *,
        security: Security | None = None,
        is_insecure: bool = False,
        trace: Path | None = None,
    ) -> None:
        overlay = config.overlay
        self.config = config
        self.security = security = security or load_security(config)
        check_exposure(config.listen, config.admin, security, is_insecure)
        self.leave_requested = asyncio.Event()
        self._generator = random.Random(config.id)
        self._flush_queue = flush_queue = FlushQueue()
        self.log = log = Log(config.id)
        self.errors = errors = InternalErrors(log)
        self.failed = errors.failed
        self.violations = violations = Violations(log)
        self.parts = ProcessParts(errors.fail)
        self.driver = driver = CoreDriver(errors)
        self.clients = clients = ClientRegistry(driver, overlay.heartbeat.dead_after / SECOND, log)
        self.rights = rights = RightsEnforcement(driver, clients.sessions, overlay.limits.sessions, log)
        self.listener = listener = Listener(config, security, flush_queue, violations, errors, log)
        self.neighbours = neighbours = Neighbours(
            config, driver, clients, listener, security, flush_queue, violations, errors, log, self._generator
        )
        self.store = create_store(config, driver, rights, clients, errors, log)
        self.drain = Drain(driver, clients, self.store)
        self.executor = EffectExecutor(driver, clients.sessions, neighbours, self.store, violations, errors, log)
        driver.connect(self.executor, PublicationTracer(neighbours.address_of))
        self._succession = Succession(
            config, driver, clients, listener, neighbours, self.executor.stop, self.store, trace, errors, log
        )
        self._admission = SessionAdmission(config, driver, clients, rights, security, violations, errors)
        self.housekeeping = Housekeeping(
            overlay.limits, driver, clients, self.store, neighbours.compare_clocks, violations, errors
        )
        self.admin = AdminEndpoint(config, security, driver, self.leave_requested, log)
        self._status_sources = StatusSources(
            config, driver, neighbours, clients, rights, self.store, self.housekeeping, self.parts, violations, errors
        )

    async def start(self, join: Address | None = None) -> None:
        """Opens the store, listens, and dials the neighbours.

        `join` is the address of a further broker to link to, which need not be in the configuration.
        """
        config = self.config
        incarnation = begin_incarnation(config.id, self.store)
        self._generator.seed(f"{config.id} {incarnation.number}")
        await self.listener.open()
        self._succession.start_core(incarnation)
        self.neighbours.start(join, self._succession.replace_core)
        await self.listener.serve(self._admission.admit, self.neighbours.hello_received)
        await self.admin.start(self.status)
        self.housekeeping.start()
        restored = len(incarnation.records)
        self.log.info("serving", listen=str(self.listen), incarnation=incarnation.number, restored=restored)

    @property
    def listen(self) -> Address:
        """The address on which the broker accepts connections."""
        return self.listener.address

    def status(self) -> Status:
        """The state of the broker, as its admin pages show it."""
        return status_of(self._status_sources, self.listen, self.admin.address)

    def reload_security(self) -> None:
        """Reads certificates and the access list again, and enforces the new rights."""
        reload_security(self.security, self.clients, self.log)

    async def stop(self, *, leaves: bool = False) -> None:
        """Stops in order: disconnects clients, waits for unsettled publications, then closes links and the store.

        With `leaves` the broker leaves the overlay for good.
        """
        me = self.config.id
        self.driver.is_stopping = True
        self.listener.close()
        self.clients.end_all(Reason.STOPPING, f"{me} is {'leaving' if leaves else 'stopping'}")
        self.listener.refuse_pending()
        await self.drain.wait()
        self.driver.finish(leaves=leaves)
        self._flush_queue.flush()
        self.neighbours.stop(link_handshake.LEFT if leaves else link_handshake.STOPPING, f"{me} is going")
        self.housekeeping.stop()
        self.executor.stop()
        self._admission.stop()
        if self.store is not None:
            await self.store.close()
        await self.admin.stop()
        self.driver.close_trace()
        await self.listener.wait_closed()
        # Transports send the last frames in the next turns of the loop.
        await asyncio.sleep(0.05)
        self.log.info("stopped")
