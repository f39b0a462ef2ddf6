"""A link to another broker after the handshake."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from broker.core.inputs import FrameReceived, PeerDelayed, PeerLost, PeerUp
from broker.core.settings import SECOND
from broker.runtime.client_registry import ClientRegistry
from broker.runtime.clock_comparison import ClockComparison
from broker.runtime.connection import Connection
from broker.runtime.core_driver import CoreDriver
from broker.runtime.expression_reader import ExpressionReader, long_changes
from broker.runtime.violations import Violations
from broker.wire import link_handshake
from broker.wire.broker_codec import decode
from broker.wire.limits import Limits, WireError
from broker.wire.link_handshake import LinkClock, LinkGoodbye, LinkHello, LinkTimes
from matching.expressions.intersection import Region
from routing.messages import LinkStates, Publish, Update, is_free

MAX_UNSENT_BYTES = 256 << 20
"""Control frames are never held back. With more unsent bytes than this, the link to the neighbour is aborted."""

ALIVE_EVERY_S = 0.25
"""How often the core learns that a neighbour is alive while its frames wait."""


@dataclass(frozen=True, slots=True)
class LinkContext:
    """The parts of the broker that its links use."""

    limits: Limits
    clock_skew: int
    driver: CoreDriver
    clients: ClientRegistry
    violations: Violations
    remove: Callable[[Link], bool]
    """Removes a link that is down. Returns False if it is not the current link to its peer."""
    reader: ExpressionReader
    learn_incarnation: Callable[[str, int], bool]
    """Handles that a neighbour knows a later incarnation of this broker."""


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
        self.clocks = ClockComparison()
        self._compares_clocks = link_handshake.CLOCKS_COMPARED in other.capabilities
        self._clock_skew = context.clock_skew
        self._is_clock_reported = False
        self.reads_once_ids = link_handshake.ONCE in other.capabilities
        self._times: LinkTimes | None = None
        self._limits = context.limits
        self._driver = context.driver
        self._clients = context.clients
        self._violations = context.violations
        self._remove = context.remove
        self._reader = context.reader
        self._learn_incarnation = context.learn_incarnation
        self._loop = asyncio.get_running_loop()

    def activate(self, cost: int) -> None:
        remembers = 0 < self.hello.remembered < self._driver.core.incarnation
        self._driver.handle(PeerUp(self.peer, self.hello.greeting, cost, remembers))
        self._clients.submit_waiting()
        self.send_clock()

    def send_clock(self) -> None:
        """Sends this broker's time, if the neighbour understands the frame."""
        if self._compares_clocks:
            self.connection.send(link_handshake.encode(self.clocks.frame(self._driver.now())))

    def _compare_clock(self, frame: LinkClock) -> None:
        """Updates the difference of the clocks. Reports it once for each link if it is too large."""
        self.clocks.receive(frame, self._driver.now())
        if self.clocks.exceeds(self._clock_skew) and not self._is_clock_reported:
            self._is_clock_reported = True
            offset, allowed = (self.clocks.offset or 0) / SECOND, self._clock_skew / SECOND
            detail = f"its clock differs by {offset:+.3f} s; [heartbeat] clock_skew is {allowed:g} s"
            self._violations.count("clock_skew", self.peer, detail)

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
            if type(message) is LinkStates:
                self._find_later_incarnation(message)
            elif type(message) is Update and (changes := long_changes(message.changes)):
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

    def _find_later_incarnation(self, message: LinkStates) -> None:
        """Finds a later incarnation of this broker that only distant brokers know."""
        core = self._driver.core
        latest = max((state.incarnation for state in message.states if state.broker == core.me), default=0)
        if latest > core.incarnation:
            self._learn_incarnation(self.peer, latest)

    def _finish_update(self, update: Update, sequence: int | None, _regions: Sequence[Region] | None) -> None:
        """Handles an update whose expressions were read meanwhile. The core shares those of `_regions`, and reads
        others itself."""
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
        elif isinstance(content, LinkClock):
            self._compare_clock(content)
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
