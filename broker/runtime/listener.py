"""Accepts connections of clients and other brokers."""

from __future__ import annotations

import asyncio

from broker.config.address import Address
from broker.config.overlay_config import BrokerConfig
from broker.core.settings import SECOND
from broker.log import Log
from broker.runtime.connection import Connection, FlushQueue, TurnBudget
from broker.runtime.internal_errors import InternalErrors
from broker.runtime.pending_connection import (
    ClientAdmission,
    Handover,
    LinkAdmission,
    PendingConnection,
    PendingConnections,
)
from broker.runtime.tls_handshake import TlsHandshake
from broker.runtime.violations import Violations
from broker.security.authentication import Security
from broker.wire import link_handshake
from broker.wire.client_frames import Reason

CLIENT_BUFFER_BYTES = 256 << 10


class ListenError(Exception):
    """The broker cannot listen: the address is in use or not of this machine, or the admin pages need a package."""

    exit_code = 4


class Listener:
    """Call `open` to occupy the port and learn the addresses, then `serve` to accept connections."""

    def __init__(
        self,
        config: BrokerConfig,
        security: Security,
        flush_queue: FlushQueue,
        violations: Violations,
        errors: InternalErrors,
        log: Log,
    ) -> None:
        self.address = config.listen
        """The address of the socket. From `open` on it has the port that the system chose for port 0."""
        self.contact_address = config.address or config.listen
        """The address that others connect to."""
        limits = config.overlay.limits
        self.pending = PendingConnections(limits.pending_connections, limits.hello / SECOND)
        self._broker = config.id
        self._limits = config.wire_limits()
        self._hello_bytes = limits.hello_bytes
        self._security = security
        self._flush_queue = flush_queue
        self._budget = TurnBudget()
        self._violations = violations
        self._errors = errors
        self._log = log
        self._tls_handshakes: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        listen = self.address
        try:
            self._server = await asyncio.get_running_loop().create_server(
                self._new_connection, listen.host, listen.port, start_serving=False
            )
        except OSError as error:
            raise ListenError(
                f"broker {self._broker} cannot listen on {listen}: {error.strerror or error}; is another running?"
            ) from error
        self.address = Address(listen.host, self._server.sockets[0].getsockname()[1])
        if not self.contact_address.port:
            self.contact_address = self.address

    async def serve(self, admit_client: ClientAdmission, admit_link: LinkAdmission) -> None:
        """Accepts connections. Passes each to one of the parameters when its first frame is authenticated."""
        self._handover = Handover(
            self._limits, self._security, self._violations, self._log, self.pending, admit_client, admit_link
        )
        await self._server.start_serving()

    def _new_connection(self) -> asyncio.BaseProtocol:
        connection = Connection(self._flush_queue, self._budget, self._limits, CLIENT_BUFFER_BYTES, self._hello_bytes)
        pending = PendingConnection(self._handover, connection)
        connection.receiver = pending
        self.pending.add(pending)
        context = self._security.server_tls
        if context is None:
            return connection
        within_s = self.pending.hello_within_s
        return TlsHandshake(pending, context, within_s, self._tls_handshakes, self._violations, self._errors)

    def close(self) -> None:
        """Accepts no more connections."""
        self._server.close()

    def refuse_pending(self) -> None:
        """Ends the connections that neither a session nor a link has taken over, because the broker stops."""
        for handshake in self._tls_handshakes:
            handshake.cancel()
        for pending in list(self.pending):
            pending.refuse(Reason.STOPPING, link_handshake.STOPPING, f"{self._broker} is stopping")

    async def wait_closed(self) -> None:
        await self._server.wait_closed()
