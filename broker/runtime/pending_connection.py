"""A connection before its first frame, which shows whether a client or another broker connected."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from broker.log import Log
from broker.runtime.connection import Connection
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
    pending: dict[PendingConnection, None]
    """All pending connections."""
    admit_client: ClientAdmission
    admit_link: LinkAdmission


class PendingConnection:
    """The receiver of an accepted connection until its first frame. It refuses connections or hands them over."""

    def __init__(self, handover: Handover, connection: Connection) -> None:
        self.connection = connection
        self._handover = handover
        self._is_broker = False

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
        self._handover.pending.pop(self, None)

    def lost(self) -> None:
        self.release()


ClientAdmission = Callable[[PendingConnection, Hello, PeerCredentials], None]
LinkAdmission = Callable[[PendingConnection, LinkHello], None]
