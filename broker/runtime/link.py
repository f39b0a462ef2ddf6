"""A link to another broker after the handshake."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from broker.core.inputs import FrameReceived, PeerDelayed, PeerLost, PeerUp
from broker.runtime.client_registry import ClientRegistry
from broker.runtime.connection import Connection
from broker.runtime.core_driver import CoreDriver
from broker.runtime.expression_reader import ExpressionReader, long_changes
from broker.runtime.violations import Violations
from broker.wire import link_handshake
from broker.wire.broker_codec import decode
from broker.wire.limits import Limits, WireError
from broker.wire.link_handshake import LinkGoodbye, LinkHello, LinkTimes
from routing.messages import Publish, Update, is_free

MAX_UNSENT_BYTES = 256 << 20
"""Control frames are never held back. With more unsent bytes than this, the link to the neighbour is aborted."""

ALIVE_EVERY_S = 0.25
"""How often the core learns that a neighbour is alive while its frames wait."""


@dataclass(frozen=True, slots=True)
class LinkContext:
    """The parts of the broker that its links use."""

    limits: Limits
    driver: CoreDriver
    clients: ClientRegistry
    violations: Violations
    remove: Callable[[Link], bool]
    """Removes a link that is down. Returns False if it is not the current link to its peer."""
    reader: ExpressionReader


class Link:
    """The receiver at one end of a link."""

    def __init__(self, context: LinkContext, connection: Connection, other: LinkHello, is_dialled: bool) -> None:
        self.peer = other.broker
        self.hello = other
        self.is_dialled = is_dialled
        """Whether this end dialled."""
        self.connection = connection
        self.up_since = context.driver.now()
        self.goodbye: LinkGoodbye | None = None
        """The other end's goodbye, if it sent one."""
        self.wants_times = context.driver.recorder is not None and link_handshake.TIMES_WANTED in other.capabilities
        self.reads_once_ids = link_handshake.ONCE in other.capabilities
        self._times: LinkTimes | None = None
        self._limits = context.limits
        self._driver = context.driver
        self._clients = context.clients
        self._violations = context.violations
        self._remove = context.remove
        self._reader = context.reader
        self._loop = asyncio.get_running_loop()

    def activate(self, cost: int) -> None:
        remembers = 0 < self.hello.remembered < self._driver.core.incarnation
        self._driver.handle(PeerUp(self.peer, self.hello.greeting, cost, remembers))
        self._clients.submit_waiting()

    def received(self, frames: list[bytes]) -> None:
        driver, connection, last = self._driver, self.connection, len(frames) - 1
        for index, frame in enumerate(frames):
            if len(frame) > 6 and frame[6] in link_handshake.KINDS:
                self._handle_link_frame(frame)
                if self.connection.is_closing:
                    return
                continue
            message, sequence = decode(frame, self._limits)
            if type(message) is Publish:
                driver.publication_received(self.peer, message)
            if driver.recorder is not None and not is_free(message):
                driver.recorder.received(self.peer, message, frame, self._times)
                self._times = None
            if type(message) is Update and (changes := long_changes(message.changes)):
                connection.hold(frames[index + 1 :])
                self._mark_delayed()
                self._reader.prepare(changes, partial(self._finish_update, message, sequence))
                return
            driver.handle(FrameReceived(self.peer, message, sequence))
            if connection.is_closing:
                return
            if index < last and connection.budget.is_share_over:
                connection.postpone(frames[index + 1 :])
                break
        if self._clients.waiting_publishers:
            self._clients.submit_waiting()

    def _finish_update(self, update: Update, sequence: int | None, _is_prepared: bool | None) -> None:
        """Handles an update whose expressions were read meanwhile. Without them the core reads them itself."""
        if self.connection.is_closing:
            return
        self._driver.handle(FrameReceived(self.peer, update, sequence))
        if not self.connection.is_closing:
            self.connection.release()

    def _mark_delayed(self) -> None:
        """Tells the core that the neighbour is alive, as long as its frames wait here."""
        if self.connection.is_delayed and not self.connection.is_closing:
            self._driver.handle(PeerDelayed(self.peer))
            self._loop.call_later(ALIVE_EVERY_S, self._mark_delayed)

    def _handle_link_frame(self, frame: bytes) -> None:
        content = link_handshake.decode(frame, self._limits)
        if isinstance(content, LinkTimes):
            self._times = content
        elif isinstance(content, LinkGoodbye):
            self.goodbye = content
            self.connection.close()
            self.lost()
        else:
            raise WireError(f"a {type(content).__name__} on a link that stands")

    def before_writing(self) -> None:
        if self.connection.unsent_bytes > MAX_UNSENT_BYTES:
            self._violations.count("link buffer", self.peer)
            self.connection.abort()

    def paused(self) -> None:
        """Does nothing: credit limits publications, and control frames are never held back."""

    def resumed(self) -> None:
        """Does nothing: a link holds nothing back."""

    def malformed(self, error: WireError) -> None:
        self._violations.count("malformed", self.peer, str(error))
        self.end(link_handshake.MALFORMED, str(error))

    def end(self, code: str, reason: str) -> None:
        self.connection.close(link_handshake.encode(LinkGoodbye(code, reason)))
        self.lost()

    def lost(self) -> None:
        if self._remove(self):
            has_left = self.goodbye is not None and self.goodbye.code == link_handshake.LEFT
            self._driver.handle(PeerLost(self.peer, has_left))
