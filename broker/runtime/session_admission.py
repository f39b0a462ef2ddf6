"""Where clients that may come in get their session: is there room for it, and is nobody else using its name?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.core.inputs import ClientConnected
from broker.runtime.client_session import ClientSession
from broker.runtime.pending_connection import PendingConnection
from broker.security.authentication import Introduction
from broker.wire.client_frames import Hello, Reason

if TYPE_CHECKING:
    from broker.runtime.server import BrokerServer


class SessionAdmission:
    def __init__(self, server: BrokerServer) -> None:
        self._server = server

    def greet(self, newcomer: PendingConnection, first: Hello, introduction: Introduction) -> None:
        server = self._server
        refusal = self._refusal(first)
        if refusal is not None:
            reason, text = refusal
            newcomer.refuse(reason, "", text)
            return
        present = server.clients.get(first.client)
        if present is not None:
            present.end(Reason.NAME_IN_USE, "the same session connected again")
        server.newcomers.pop(newcomer, None)
        session = ClientSession(server, newcomer.connection, first, introduction)
        newcomer.connection.receiver = session
        server.clients[first.client] = session
        server.log.debug("client connected", client=first.client, other_end=newcomer.connection.other_end)
        session.hold_to_rights()
        delivery = server.config.overlay.delivery
        keep = None if first.is_durable else delivery.session if session.is_reliable else 0
        server.handle(ClientConnected(first.client, first.session, session.is_reliable, keep, session.window))

    def _refusal(self, first: Hello) -> tuple[Reason, str] | None:
        """Why there is no session for this client; None: there is."""
        server = self._server
        if first.is_durable and server.store is None:
            return Reason.NOT_DURABLE, f"{server.config.id} has no data directory and keeps nothing for durable clients"
        present = server.clients.get(first.client)
        if present is None:
            return self._lack_of_room(first.client)
        if present.session != first.session:
            text = f"a client called {first.client!r} is connected from {present.connection.other_end}"
            return Reason.NAME_IN_USE, text
        return None

    def _lack_of_room(self, client: str) -> tuple[Reason, str] | None:
        server, limits = self._server, self._server.config.overlay.limits
        if len(server.clients) >= limits.connections:
            server.violated("connections", client)
            return Reason.LIMIT, f"{len(server.clients)} clients are connected, and no more may be"
        sessions = len(server.core.clients)
        if sessions >= limits.sessions and server.core.client(client) is None:
            server.violated("sessions", client)
            return Reason.LIMIT, f"{sessions} sessions are kept, of clients here or away, and no more may be"
        return None
