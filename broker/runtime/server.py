"""One broker in one event loop: sockets, timers and the store around the core.

Received frames, timers and commits become inputs of the core. The core's effects become frames, timers and records.
Only the event loop calls the core, and the core never blocks.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from broker.config.address import Address
from broker.config.overlay_config import BrokerConfig, ConfigError
from broker.core.broker import Broker
from broker.core.effects import Accept, Effect, Refuse
from broker.core.inputs import Input, LeaveRequested, Persisted, Published, Restored, TimerFired
from broker.core.publications import SETTLE
from broker.core.settings import SECOND
from broker.log import Log
from broker.runtime.client_session import ClientSession
from broker.runtime.connection import Connection, FlushQueue
from broker.runtime.effect_executor import EffectExecutor
from broker.runtime.housekeeping import Housekeeping
from broker.runtime.internal_errors import InternalErrors
from broker.runtime.link import Link
from broker.runtime.neighbours import Neighbours
from broker.runtime.pending_connection import PendingConnection
from broker.runtime.publication_tracer import PublicationTracer
from broker.runtime.rights_enforcement import RightsEnforcement
from broker.runtime.session_admission import SessionAdmission
from broker.runtime.store import Store
from broker.runtime.store_records import RecordError
from broker.runtime.tls_handshake import TlsHandshake
from broker.security.authentication import Security, check_exposure
from broker.security.security_config import load_security
from broker.wire import link_handshake
from broker.wire.client_frames import Reason
from routing.messages import Publish
from routing.registry import create

if TYPE_CHECKING:
    from broker.runtime.admin import AdminPages
    from broker.trace.recorder import TraceRecorder

CLIENT_BUFFER_BYTES = 256 << 10
DRAIN_TIMEOUT_S = 5.0
EPOCH_NS = 1_767_225_600 * SECOND
"""The start of 2026. Incarnations count tenths of seconds from here, so they grow with every start and stay small."""


class ListenError(Exception):
    """The broker cannot listen: the address is in use or not of this machine, or the admin pages need a package."""

    exit_code = 4


class BrokerServer:
    """Owns the core of one broker and all parts that connect it to the outside.

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
        self.config = config
        self.limits = config.wire_limits()
        self.security = security or load_security(config)
        check_exposure(config.listen, self.security, is_insecure)
        self.log = Log(config.id)
        self.errors = InternalErrors(self.log)
        self.clients: dict[str, ClientSession] = {}
        self.pending_connections: dict[PendingConnection, None] = {}
        self.tls_handshakes: set[asyncio.Task[None]] = set()
        self.waiting_publishers: dict[ClientSession, None] = {}
        """Sessions with publications that wait until the broker accepts publications."""
        self.published_here = 0
        self.received = 0
        """Publications from neighbours."""
        self.rates: dict[str, float] = {}
        self.parts: dict[str, Callable[[], dict[str, object]]] = {}
        """Parts that run in this process with the broker, such as a gateway: name and a function for the status."""
        self.is_stopping = False
        self.violations: Counter[str] = Counter()
        self.address = config.address or config.listen
        self.started = time.time()
        self.admin_address: Address | None = None
        self.leave_requested = asyncio.Event()
        self.recorder: TraceRecorder | None = None
        self.trace_state = ""
        """The word `recording`, or the reason why recording ended. Empty without a trace."""
        self._trace_folder = trace
        self._admin_pages: AdminPages | None = None
        self._clock_offset = time.time_ns() - time.monotonic_ns()
        self._traced_requests: set[tuple[str, int]] = set()

    async def start(self, join: Address | None = None) -> None:
        """Opens the store, listens, and dials the neighbours.

        `join` is the address of a further broker to link to, which need not be in the configuration.
        """
        config = self.config
        self._loop = asyncio.get_running_loop()
        self.flush_queue = FlushQueue()
        self.executor = EffectExecutor(self)
        self.admission = SessionAdmission(self)
        self.rights = RightsEnforcement(self)
        self.failed: asyncio.Future[None] = self._loop.create_future()
        """Gets an exception when the broker cannot continue."""
        self.store: Store | None = None
        incarnation = (time.time_ns() - EPOCH_NS) // (SECOND // 10)
        earlier = 0
        records: dict[tuple[str, ...], object] = {}
        if config.data_dir is not None:
            self.store = Store(
                config.data_dir, config.overlay.store, self._persisted, self._fail, refused=self._record_refused
            )
            earlier, incarnation, records = self.store.open(config.id, incarnation)
        self._listener = await self._listen()
        router = create(
            config.overlay.protocol,
            config.id,
            incarnation,
            config.overlay.general.matcher,
            config.clusters,
            str(self.address),
            config.overlay.general.router_options,
        )
        self.core = Broker(
            router,
            config.id,
            incarnation,
            config.settings(is_traced=self._trace_folder is not None),
            has_lived=earlier > 0,
            expected_neighbours=tuple(neighbour.id for neighbour in config.neighbours),
        )
        self.neighbours = Neighbours(self, random.Random(f"{config.id} {incarnation}"))
        self.tracer = PublicationTracer(self.neighbours.address_of)
        if records:
            self.handle(Restored(records))
        if self._trace_folder is not None:
            # Imports pyarrow, which nothing else here needs.
            from broker.trace.recorder import TraceRecorder

            names = (config.id, incarnation, config.overlay.name, config.overlay.protocol)
            self.recorder = TraceRecorder(self._trace_folder, *names, self.now, self._trace_failed)
            self.trace_state = "recording"
        self._perform(self.core.start(self.now()))
        for neighbour in config.neighbours:
            self.neighbours.require_link(neighbour.id, neighbour.address, neighbour.cost)
        if join is not None:
            self.neighbours.join(join)
        self._serving_since = self._loop.time()
        self._is_ready = False
        self._update_readiness()
        self._housekeeping = asyncio.create_task(Housekeeping(self).run(), name="housekeeping")
        self.errors.watch(self._housekeeping, self._fail)
        await self._listener.start_serving()
        await self._open_admin_pages()
        self.log.info("serving", listen=str(self.listen), incarnation=incarnation, restored=len(records))

    async def _listen(self) -> asyncio.Server:
        listen = self.config.listen
        try:
            listener = await self._loop.create_server(
                self._new_connection, listen.host, listen.port, start_serving=False
            )
        except OSError as error:
            raise ListenError(
                f"broker {self.config.id} cannot listen on {listen}: {error.strerror or error}; is another running?"
            ) from error
        self.listen = Address(listen.host, listener.sockets[0].getsockname()[1])
        if not self.address.port:
            self.address = self.listen
        return listener

    async def _open_admin_pages(self) -> None:
        """Starts the admin pages if they are configured.

        They alone import aiohttp. Without aiohttp the broker runs without pages, unless the configuration names a port.
        """
        address = self.config.admin
        if address is None:
            return
        try:
            from broker.runtime.admin import AdminPages
        except ImportError as error:
            if address.port:
                raise ListenError(f"the admin pages need {error.name}: pip install 'mercast[admin]'") from error
            self.log.warning("no admin pages", reason=f"{error.name} is not installed: pip install 'mercast[admin]'")
            return
        if not address.is_loopback:
            self.log.warning("admin pages beyond this machine", address=str(address))
        self._admin_pages = AdminPages(self)
        try:
            self.admin_address = await self._admin_pages.start(address)
        except OSError as error:
            raise ListenError(f"broker {self.config.id}: admin pages on {address}: {error.strerror}") from error

    def _new_connection(self) -> asyncio.BaseProtocol:
        connection = Connection(self.flush_queue, self.limits, CLIENT_BUFFER_BYTES)
        pending = PendingConnection(self, connection)
        connection.receiver = pending
        self.pending_connections[pending] = None
        context = self.security.server_tls
        return connection if context is None else TlsHandshake(self, pending, context)

    def now(self) -> int:
        """Wall-clock nanoseconds. The value never decreases while the broker runs."""
        return time.monotonic_ns() + self._clock_offset

    def handle(self, input: Input) -> None:
        """Passes an input to the core and performs its effects."""
        if self.recorder is not None:
            self._handle_recorded(input, self.recorder)
            return
        effects = self.core.handle(input, self.now())
        if effects:
            self._perform(effects)

    def _handle_recorded(self, input: Input, recorder: TraceRecorder) -> None:
        """Performs the effects before it records them, because nothing may depend on the trace."""
        if isinstance(input, Published):
            recorder.requested(input)
        started = self.now()
        effects = self.core.handle(input, started)
        took_ns = self.now() - started
        recorder.note_times(effects)
        self._perform(effects)
        recorder.handled(effects, started, took_ns)

    def _trace_failed(self, error: Exception) -> None:
        """Ends the trace. The broker continues without it."""
        self.recorder = None
        self.trace_state = f"ended: {error}"
        self.errors.report("trace not written", error)

    def publish(self, request: Published) -> None:
        if self.core.is_repeated(request):
            # The core may have answered it already, and then does not answer again: nothing may wait for an answer.
            return
        self.published_here += 1
        if request.is_traced:
            self._traced_requests.add((request.client, request.reference))
        self.handle(request)

    def publication_received(self, peer: str, message: Publish) -> None:
        self.received += 1
        if message.is_traced:
            self.tracer.received(message, peer)

    def totals(self) -> dict[str, int]:
        """Counts of publications since the start."""
        return {
            "published": self.published_here,
            "received": self.received,
            "sent": self.executor.sent,
            "delivered": self.executor.delivered,
        }

    def _perform(self, effects: list[Effect]) -> None:
        if self._traced_requests:
            self._trace_accepted(effects)
        if self.tracer.is_active:
            self.tracer.add_effects(effects)
        self.executor.perform(effects)

    def _trace_accepted(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Accept | Refuse) and (effect.client, effect.reference) in self._traced_requests:
                self._traced_requests.discard((effect.client, int(effect.reference)))
                if isinstance(effect, Accept):
                    self.tracer.accepted(effect)

    def _persisted(self, keys: list[tuple[str, ...]]) -> None:
        """Reports each committed record to the core. An error over one record does not affect the others."""
        for key in keys:
            try:
                self.handle(Persisted(key))
                self.rights.check_stored(key)
            except Exception as error:
                self.errors.report("stored record not taken", error, key="/".join(key))
        self.submit_waiting_publications()

    def _record_refused(self, error: RecordError) -> None:
        self.errors.report("record not written", error)

    def _fail(self, error: BaseException) -> None:
        if not self.failed.done():
            self.failed.set_exception(error)

    def reload_security(self) -> None:
        """Reads certificates and the access list again, and enforces the new rights.

        Disconnects clients that are no longer authorised, and revokes entries that rights no longer cover.
        """
        try:
            self.security.reload()
        except ConfigError as error:
            self.log.error("security not reloaded", reason=str(error))
            return
        for session in list(self.clients.values()):
            session.update_rights()
        self.log.info("security reloaded")

    def remove_client(self, session: ClientSession) -> bool:
        """Removes a client's connection. Returns False if the client has another connection or none."""
        self.waiting_publishers.pop(session, None)
        if self.clients.get(session.name) is not session:
            return False
        del self.clients[session.name]
        self.log.debug("client gone", client=session.name)
        return True

    def count_violation(self, limit: str, who: str, detail: str = "") -> None:
        """Counts and logs that a client or broker exceeded a limit or broke a rule."""
        self.violations[limit] += 1
        self.log.warning("violation", limit=limit, who=who, detail=detail)

    def part_ended(self, part: asyncio.Task[None]) -> None:
        """Fails the broker if a part, such as a gateway, ended with an error."""
        error = None if part.cancelled() else part.exception()
        if error is not None:
            self._fail(error)

    def record_link_down(self, link: Link) -> None:
        if self.recorder is not None:
            self.recorder.link(link.peer, link.up_since, None if self.is_stopping else self.now())

    @property
    def accepts_publications(self) -> bool:
        """Whether the broker has room for a publication and knows which brokers want it."""
        return self._is_ready and self.core.admits and not self.core.is_recovering

    def _update_readiness(self) -> None:
        """Sets `_is_ready` when all required links are up, or after the time in which they should have come up."""
        if not self._is_ready:
            late = self._loop.time() - self._serving_since > self.config.overlay.heartbeat.dead_after / SECOND
            self._is_ready = late or self.neighbours.links.keys() >= set(self.neighbours.required_peers())

    def submit_waiting_publications(self) -> None:
        """Submits publications that wait, as long as the broker accepts publications."""
        self._update_readiness()
        for session in list(self.waiting_publishers):
            if session.submit_waiting():
                self.waiting_publishers.pop(session, None)

    @property
    def is_settled(self) -> bool:
        """Whether no publication waits here or awaits settlement by another broker."""
        core = self.core
        return not (core.unsettled or core.in_custody or core.postponed or self.waiting_publishers)

    @property
    def _store_has_failed(self) -> bool:
        return self.store is not None and self.store.has_failed

    async def stop(self, *, leaves: bool = False) -> None:
        """Stops in order: disconnects clients, waits for unsettled publications, then closes links and the store.

        With `leaves` the broker leaves the overlay for good.
        """
        self.is_stopping = True
        self._listener.close()
        for session in list(self.clients.values()):
            session.end(Reason.STOPPING, f"{self.config.id} is {'leaving' if leaves else 'stopping'}")
        for handshake in self.tls_handshakes:
            handshake.cancel()
        for pending in list(self.pending_connections):
            pending.refuse(Reason.STOPPING, link_handshake.STOPPING, f"{self.config.id} is stopping")
        end = self._loop.time() + DRAIN_TIMEOUT_S
        # With a failed store, publications that wait for a commit never settle.
        while not self.is_settled and not self._store_has_failed and self._loop.time() < end:
            await asyncio.sleep(0.02)
        # Sends collected acknowledgements now, so that other brokers do not wait for them.
        self.handle(TimerFired(SETTLE))
        if leaves:
            self.handle(LeaveRequested())
        self.flush_queue.flush()
        self.neighbours.stop(link_handshake.LEFT if leaves else link_handshake.STOPPING, f"{self.config.id} is going")
        self._housekeeping.cancel()
        self.executor.stop()
        if self.store is not None:
            await self.store.close()
        if self._admin_pages is not None:
            await self._admin_pages.stop()
        if self.recorder is not None:
            self.recorder.close()
        await self._listener.wait_closed()
        # Transports send the last frames in the next turns of the loop.
        await asyncio.sleep(0.05)
        self.log.info("stopped")
