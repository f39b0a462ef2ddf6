"""A connection before its hello, the first frame, which shows whether a client or another broker connected.

Anyone who reaches the broker can open such connections. So each has a deadline that no byte extends, a small limit for
its frame, and their number is limited. At that limit the oldest gives way: a client sends its hello at once, so a flood
of silent connections does not keep it out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from broker.log import Log
from broker.runtime.connection import Connection, remote_address
from broker.runtime.violations import Violations
from broker.security.authentication import PeerCredentials, Security
from broker.wire import broker_codec, client_codec, link_handshake
from broker.wire.client_codec import FIRST_KIND, kind_of
from broker.wire.client_frames import Goodbye, Hello, Reason
from broker.wire.limits import Limits, WireError
from broker.wire.link_handshake import LinkGoodbye, LinkHello


@dataclass(frozen=True, slots=True)
class Handover:
    """The parts that pending connections use, and the functions that take over authenticated connections."""

    limits: Limits
    security: Security
    violations: Violations
    log: Log
    pending: PendingConnections
    admit_client: ClientAdmission
    admit_link: LinkAdmission


class PendingConnection:
    """The receiver of an accepted connection until its first frame. It refuses connections or hands them over."""

    def __init__(self, handover: Handover, connection: Connection) -> None:
        self.connection = connection
        self.handshake: asyncio.Transport | None = None
        """The transport without encryption, while the TLS handshake runs."""
        self._handover = handover
        self._is_broker = False
        within_s = handover.pending.hello_within_s
        self._deadline = asyncio.get_running_loop().call_later(within_s, self.expire)

    def received(self, frames: list[bytes]) -> None:
        first, *rest = frames
        self._is_broker = 0 < kind_of(first) < FIRST_KIND
        version = broker_codec.VERSION if self._is_broker else client_codec.CLIENT_VERSION
        if len(first) > 5 and first[5] != version:
            self._handover.violations.count("version", self.connection.remote_address)
            text = f"version {first[5]} of the protocol is not spoken here; this is version {version}"
            self.refuse(Reason.VERSION, link_handshake.VERSION_UNKNOWN, text)
            return
        if self._is_broker:
            self._receive_link_hello(first)
        else:
            self._receive_client_hello(first)
        if rest and self.connection.receiver is not self and self.connection.receiver is not None:
            self.connection.receiver.received(rest)

    def _receive_client_hello(self, frame: bytes) -> None:
        content = client_codec.decode(frame, self._handover.limits)
        if not isinstance(content, Hello):
            raise WireError(f"a connection starts with Hello, not with {type(content).__name__}")
        credentials = self._credentials(content.client, content.token)
        refusal = self._handover.security.authenticator.refusal(credentials)
        if refusal is not None:
            self._handover.violations.count("unauthorised", content.client)
            self.refuse(Reason.UNAUTHORISED, link_handshake.UNAUTHORISED, refusal)
            return
        self._handover.admit_client(self, content, credentials)

    def _receive_link_hello(self, frame: bytes) -> None:
        content = link_handshake.decode(frame, self._handover.limits)
        if not isinstance(content, LinkHello):
            raise WireError(f"a link starts with LinkHello, not with {type(content).__name__}")
        refusal = self._handover.security.authenticator.refusal(self._credentials(content.broker, content.token))
        if refusal is not None:
            self._handover.violations.count("unauthorised", content.broker)
            self.refuse(Reason.UNAUTHORISED, link_handshake.UNAUTHORISED, refusal)
            return
        self._handover.admit_link(self, content)

    def _credentials(self, name: str, token: str) -> PeerCredentials:
        return PeerCredentials(
            name, self._is_broker, token, self.connection.remote_address, self.connection.certificate
        )

    def refuse(self, reason: Reason, code: str, text: str) -> None:
        """Closes the connection with `text`, and with `reason` for a client or `code` for a broker."""
        self._handover.log.warning("refused", other_end=self.connection.remote_address, reason=text)
        if self._is_broker:
            self.connection.close(link_handshake.encode(LinkGoodbye(code, text)))
        else:
            self.connection.close(client_codec.encode(Goodbye(reason, text)))

    def expire(self) -> None:
        """Refuses the connection if its hello has not arrived. A hello that waits for its turn has arrived."""
        if self.connection.is_closing or self.connection.is_delayed:
            return
        within = f"{self._handover.pending.hello_within_s:g} s"
        if self.handshake is not None:
            self._end_handshake(self.handshake, "tls", f"no handshake within {within}")
        else:
            self._handover.violations.count("hello", self.connection.remote_address)
            self.refuse(Reason.IDLE, link_handshake.LIMIT, f"no hello within {within}")

    def evict(self) -> None:
        """Ends the connection at once, because a new one needs its place."""
        self.release()
        if self.handshake is not None:
            self._end_handshake(self.handshake, "pending_connections", "no handshake yet")
            return
        if not self.connection.is_closing:
            self._handover.violations.count("pending_connections", self.connection.remote_address)
            most = self._handover.pending.most
            text = f"newer connections took the place of this one; the limit pending_connections is {most}"
            self.refuse(Reason.LIMIT, link_handshake.LIMIT, text)
        # The other end decides how long an orderly close takes.
        self.connection.abort()

    def _end_handshake(self, transport: asyncio.Transport, limit: str, detail: str) -> None:
        if not self.connection.is_closing:
            self._handover.violations.count(limit, remote_address(transport), detail)
            self.connection.close()
        transport.abort()

    def before_writing(self) -> None:
        """Does nothing: a pending connection collects no frames."""

    def paused(self) -> None:
        """Does nothing: a pending connection sends nothing."""

    def resumed(self) -> None:
        """Does nothing: a pending connection sends nothing."""

    def malformed(self, error: WireError) -> None:
        self._handover.violations.count("malformed", self.connection.remote_address, str(error))
        self.refuse(Reason.MALFORMED, link_handshake.MALFORMED, str(error))

    def release(self) -> None:
        """Removes the connection from the pending ones, because it is lost or a session or link takes it over."""
        self._deadline.cancel()
        self._handover.pending.remove(self)

    def lost(self) -> None:
        self.release()


class PendingConnections:
    """All pending connections of a broker, the oldest first."""

    def __init__(self, most: int, hello_within_s: float) -> None:
        self.most = most
        self.hello_within_s = hello_within_s
        self._connections: dict[PendingConnection, None] = {}

    def add(self, pending: PendingConnection) -> None:
        """Adds a connection. At the limit, another one gives way."""
        if len(self._connections) >= self.most:
            self._next_to_evict().evict()
        self._connections[pending] = None

    def _next_to_evict(self) -> PendingConnection:
        """The oldest connection whose hello has not arrived, or the oldest of all."""
        waiting = (each for each in self._connections if not each.connection.is_delayed)
        return next(waiting, None) or next(iter(self._connections))

    def remove(self, pending: PendingConnection) -> None:
        self._connections.pop(pending, None)

    def __iter__(self) -> Iterator[PendingConnection]:
        return iter(self._connections)

    def __len__(self) -> int:
        return len(self._connections)


ClientAdmission = Callable[[PendingConnection, Hello, PeerCredentials], None]
LinkAdmission = Callable[[PendingConnection, LinkHello], None]
