"""A link to another broker, from the moment both ends have introduced themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker import hello
from broker.hello import LinkGoodbye, LinkHello
from broker.inputs import FrameReceived, PeerLost, PeerUp
from broker.runtime.connection import Connection
from broker.wire import decode
from broker.wire_limits import WireError
from routing.messages import Publish

if TYPE_CHECKING:
    from broker.runtime.server import BrokerServer

MOST_WAITING_BYTES = 256 << 20
"""Control frames are never held back; a neighbour that does not even read these is lost."""


class Link:
    """The receiver at one end of a link."""

    def __init__(self, server: BrokerServer, connection: Connection, other: LinkHello, is_dialled: bool) -> None:
        self.peer = other.broker
        self.hello = other
        self.is_dialled = is_dialled
        """By this end."""
        self.connection = connection
        self.up_since = server.now()
        self.goodbye: LinkGoodbye | None = None
        """What the other end said at last."""
        self._server = server
        self._limits = server.limits

    def up(self, cost: int) -> None:
        server = self._server
        remembers = 0 < self.hello.remembered < server.core.incarnation
        server.handle(PeerUp(self.peer, self.hello.greeting, cost, remembers))

    def received(self, frames: list[bytes]) -> None:
        server = self._server
        for frame in frames:
            if len(frame) > 6 and frame[6] in hello.KINDS:
                self._taken_leave_of(frame)
                return
            message, sequence = decode(frame, self._limits)
            if type(message) is Publish:
                server.received_publication(self.peer, message, frame)
            server.handle(FrameReceived(self.peer, message, sequence))
            if self.connection.is_closing:
                return
        if server.holding:
            server.admit()

    def _taken_leave_of(self, frame: bytes) -> None:
        content = hello.decode(frame, self._limits)
        if not isinstance(content, LinkGoodbye):
            raise WireError(f"a {type(content).__name__} on a link that stands")
        self.goodbye = content
        self.connection.close()
        self.lost()

    def before_writing(self) -> None:
        if self.connection.waiting_bytes > MOST_WAITING_BYTES:
            self._server.violated("link buffer", self.peer)
            self.connection.abort()

    def paused(self) -> None:
        """Publications are bounded by credit, and control frames must go: nothing is held back here."""

    def resumed(self) -> None:
        """Nothing was held back."""

    def malformed(self, error: WireError) -> None:
        self._server.violated("malformed", self.peer, str(error))
        self.end(hello.MALFORMED, str(error))

    def end(self, code: str, reason: str) -> None:
        self.connection.close(hello.encode(LinkGoodbye(code, reason)))
        self.lost()

    def lost(self) -> None:
        if self._server.neighbours.remove(self):
            self._server.handle(PeerLost(self.peer))
