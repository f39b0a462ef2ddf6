"""Admission of authenticated clients: checks durability, limits and names, and starts sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.core.inputs import ClientConnected
from broker.runtime.client_session import ClientSession
from broker.runtime.pending_connection import PendingConnection
from broker.security.authentication import PeerCredentials
from broker.wire.client_frames import Hello, Reason

if TYPE_CHECKING:
    from broker.runtime.server import BrokerServer


class SessionAdmission:
    def __init__(self, server: BrokerServer) -> None:
        self._server = server

    def admit(self, pending: PendingConnection, hello: Hello, credentials: PeerCredentials) -> None:
        server = self._server
        refusal = self._refusal(hello)
        if refusal is not None:
            reason, text = refusal
            pending.refuse(reason, "", text)
            return
        current = server.clients.get(hello.client)
        if current is not None:
            current.end(Reason.NAME_IN_USE, "the same session connected again")
        server.pending_connections.pop(pending, None)
        session = ClientSession(server, pending.connection, hello, credentials)
        pending.connection.receiver = session
        server.clients[hello.client] = session
        server.log.debug("client connected", client=hello.client, other_end=pending.connection.remote_address)
        session.enforce_rights()
        delivery = server.config.overlay.delivery
        keep = None if hello.is_durable else delivery.session if session.is_reliable else 0
        server.handle(ClientConnected(hello.client, hello.session, session.is_reliable, keep, session.window))

    def _refusal(self, hello: Hello) -> tuple[Reason, str] | None:
        """The reason to refuse a session to this client, or None."""
        server = self._server
        if hello.is_durable and server.store is None:
            return Reason.NOT_DURABLE, f"{server.config.id} has no data directory and keeps nothing for durable clients"
        current = server.clients.get(hello.client)
        if current is None:
            return self._limit_refusal(hello.client)
        if current.session != hello.session:
            text = f"a client called {hello.client!r} is connected from {current.connection.remote_address}"
            return Reason.NAME_IN_USE, text
        return None

    def _limit_refusal(self, client: str) -> tuple[Reason, str] | None:
        server, limits = self._server, self._server.config.overlay.limits
        if len(server.clients) >= limits.connections:
            server.count_violation("connections", client)
            return Reason.LIMIT, f"{len(server.clients)} clients are connected, and no more may be"
        sessions = len(server.core.clients)
        if sessions >= limits.sessions and server.core.client(client) is None:
            server.count_violation("sessions", client)
            return Reason.LIMIT, f"{sessions} sessions are kept, of clients here or away, and no more may be"
        return None
