"""TLS handshakes of accepted connections.

asyncio's own listener keeps the certificates that it started with, and does not report failed handshakes. Here each
handshake uses the certificates that were loaded last, and a failed handshake is counted and logged with its reason.
"""

from __future__ import annotations

import asyncio
import ssl

from broker.runtime.connection import remote_address
from broker.runtime.internal_errors import InternalErrors
from broker.runtime.pending_connection import PendingConnection
from broker.runtime.violations import Violations


class TlsHandshake(asyncio.Protocol):
    """Performs the handshake, then hands the encrypted transport to the pending connection."""

    def __init__(
        self,
        pending: PendingConnection,
        context: ssl.SSLContext,
        within_s: float,
        running: set[asyncio.Task[None]],
        violations: Violations,
        errors: InternalErrors,
    ) -> None:
        """`running`: the handshakes of the broker that have not ended."""
        self._pending = pending
        self._context = context
        self._within_s = within_s
        self._running = running
        self._violations = violations
        self._errors = errors
        self._early = bytearray()
        self._is_lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        if self._pending.connection.is_closing:
            # The pending connection had to give way before it had a transport.
            transport.abort()
            return
        self._pending.handshake = transport
        # The handshake must read the first bytes.
        transport.pause_reading()
        handshake = asyncio.create_task(self._perform_handshake(transport), name="TLS handshake")
        self._running.add(handshake)
        handshake.add_done_callback(self._running.discard)
        self._errors.watch(handshake)

    async def _perform_handshake(self, transport: asyncio.Transport) -> None:
        connection = self._pending.connection
        try:
            encrypted = await asyncio.get_running_loop().start_tls(
                transport, self, self._context, server_side=True, ssl_handshake_timeout=self._within_s
            )
        except OSError as error:
            self._pending.release()
            if not connection.is_closing:
                self._violations.count("tls", remote_address(transport), _reason(error))
            return
        finally:
            self._pending.handshake = None
        if encrypted is None or connection.is_closing:
            self._pending.release()
            transport.abort()
            return
        encrypted.set_protocol(connection)
        connection.connection_made(encrypted)
        connection.receive_early(bytes(self._early))
        if self._is_lost:
            connection.connection_lost(None)

    def data_received(self, data: bytes) -> None:
        """Keeps bytes that arrive after the handshake and before `start_tls` returns."""
        self._early += data

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_lost = True


def _reason(error: OSError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    if isinstance(error, ssl.SSLError):
        return (error.reason or str(error)).replace("_", " ").lower()
    return str(error) or type(error).__name__
