"""Admission of authenticated clients: checks durability, limits and names, and starts sessions."""

from __future__ import annotations

from broker.config.overlay_config import BrokerConfig
from broker.core.inputs import ClientConnected
from broker.runtime.client_registry import ClientRegistry
from broker.runtime.client_session import ClientSession, SessionContext
from broker.runtime.core_driver import CoreDriver
from broker.runtime.expression_reader import ExpressionReader
from broker.runtime.internal_errors import InternalErrors
from broker.runtime.pending_connection import PendingConnection
from broker.runtime.rights_enforcement import RightsEnforcement
from broker.runtime.violations import Violations
from broker.security.authentication import PeerCredentials, Security
from broker.wire.client_frames import Hello, Reason


class SessionAdmission:
    def __init__(
        self,
        config: BrokerConfig,
        driver: CoreDriver,
        clients: ClientRegistry,
        rights: RightsEnforcement,
        security: Security,
        violations: Violations,
        errors: InternalErrors,
    ) -> None:
        self._config = config
        self._driver = driver
        self._clients = clients
        self._violations = violations
        self._reader = ExpressionReader("requests", errors)
        self._context = SessionContext(
            config.overlay, config.wire_limits(), driver, clients, rights, security, violations, self._reader
        )

    def admit(self, pending: PendingConnection, hello: Hello, credentials: PeerCredentials) -> None:
        refusal = self._refusal(hello)
        if refusal is not None:
            reason, text = refusal
            pending.refuse(reason, "", text)
            return
        current = self._clients.sessions.get(hello.client)
        if current is not None:
            current.end(Reason.NAME_IN_USE, "the same session connected again")
        pending.release()
        session = ClientSession(self._context, pending.connection, hello, credentials)
        pending.connection.receiver = session
        self._clients.add(session)
        session.enforce_rights()
        delivery = self._config.overlay.delivery
        keep = None if hello.is_durable else delivery.session if session.is_reliable else 0
        self._driver.handle(ClientConnected(hello.client, hello.session, session.is_reliable, keep, session.window))

    def _refusal(self, hello: Hello) -> tuple[Reason, str] | None:
        """The reason to refuse a session to this client, or None."""
        if hello.is_durable and self._config.data_dir is None:
            text = f"{self._config.id} has no data directory and keeps nothing for durable clients"
            return Reason.NOT_DURABLE, text
        current = self._clients.sessions.get(hello.client)
        if current is None:
            return self._limit_refusal(hello.client)
        if current.session != hello.session:
            text = f"a client called {hello.client!r} is connected from {current.connection.remote_address}"
            return Reason.NAME_IN_USE, text
        return None

    def _limit_refusal(self, client: str) -> tuple[Reason, str] | None:
        limits, core = self._config.overlay.limits, self._driver.core
        connections = len(self._clients.sessions)
        if connections >= limits.connections:
            self._violations.count("connections", client)
            return Reason.LIMIT, f"{connections} clients are connected, and no more may be"
        sessions = len(core.clients)
        if sessions >= limits.sessions and core.client(client) is None:
            self._violations.count("sessions", client)
            return Reason.LIMIT, f"{sessions} sessions are kept, of clients here or away, and no more may be"
        return None

    def stop(self) -> None:
        """Reads no more expressions."""
        self._reader.stop()
