"""A TCP connection that carries frames.

A connection splits received bytes into frames, and writes all frames of one turn of the event loop at once.

All connections of a broker share one receive buffer, because each connection copies received bytes out of it at once.
The buffer's size limits the bytes that one connection can receive before other connections have their turn.

A receiver that has used up its share of the loop's turn postpones the remaining frames. A receiver that waits for
something else holds them. The connection reads no more bytes until these frames are handled.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import Protocol

from broker.core.settings import MILLISECOND
from broker.wire.framing import FrameSplitter
from broker.wire.limits import Limits, WireError

RECEIVE_BUFFER_BYTES = 64 << 10
FLUSH_AT_BYTES = 128 << 10
"""With this many bytes to write, a connection does not wait for the end of the loop turn."""

LINGER_S = 2.0
"""Time that a closed connection has to write its remaining bytes."""

TURN_NS = 5 * MILLISECOND
"""The time of all connections of a budget in one turn of the event loop."""
SHARE_NS = 2 * MILLISECOND
"""The time of one connection in one turn."""


class Receiver(Protocol):
    """Handles the frames and events of a connection: first a PendingConnection, then a ClientSession or a Link."""

    def received(self, frames: list[bytes]) -> None:
        """Handles frames until its share of the turn is over. Postpones the rest."""

    def before_writing(self) -> None:
        """Sends the frames that the receiver collected in this loop turn."""

    def paused(self) -> None:
        """Called when the write buffer is full: the other end does not read fast enough."""

    def resumed(self) -> None:
        """Called when the write buffer has room again."""

    def malformed(self, error: WireError) -> None:
        """Called for bytes that are not a valid frame."""

    def lost(self) -> None:
        """Called when the connection is gone."""


class FlushQueue:
    """The connections with frames to write at the end of this loop turn, and the shared receive buffer."""

    def __init__(self) -> None:
        self._connections: list[Connection] = []
        self._loop = asyncio.get_running_loop()
        self.buffer = memoryview(bytearray(RECEIVE_BUFFER_BYTES))

    def add(self, connection: Connection) -> None:
        if not self._connections:
            self._loop.call_soon(self.flush)
        self._connections.append(connection)

    def flush(self) -> None:
        connections, self._connections = self._connections, []
        for connection in connections:
            connection.flush()


class TurnBudget:
    """Divides the time of the event loop among connections.

    Heartbeats, timers and admin pages wait until the current turn of the loop ends. So the connections that share a
    budget have a few milliseconds in each turn, and each connection a share of them. A connection with more frames than
    fit into its share handles the rest in a later turn, after the other connections.
    """

    def __init__(self, turn_ns: int = TURN_NS, share_ns: int = SHARE_NS) -> None:
        """`turn_ns`: the time of all connections in one turn of the loop. `share_ns`: the time of one connection."""
        self._loop = asyncio.get_running_loop()
        self._turn_ns = turn_ns
        self._share_ns = share_ns
        self._postponed: deque[Connection] = deque()
        self._is_turn_running = False
        self._turn_ends = 0
        self._share_ends = 0

    def begin_share(self) -> bool:
        """Begins the share of one connection. Returns False if the time of this turn is over. The first share of a turn
        begins the turn."""
        now = time.monotonic_ns()
        if not self._is_turn_running:
            self._begin_turn(now)
        elif now >= self._turn_ends:
            return False
        self._share_ends = min(now + self._share_ns, self._turn_ends)
        return True

    def _begin_turn(self, now: int) -> None:
        self._is_turn_running = True
        self._turn_ends = now + self._turn_ns
        # The loop calls this at the start of its next turn.
        self._loop.call_soon(self._begin_next_turn)

    @property
    def is_share_over(self) -> bool:
        return time.monotonic_ns() >= self._share_ends

    def postpone(self, connection: Connection) -> None:
        """Lets the connection continue in a later turn. Connections continue in the order of these calls."""
        self._postponed.append(connection)
        if not self._is_turn_running:
            self._begin_turn(time.monotonic_ns())

    def _begin_next_turn(self) -> None:
        self._is_turn_running = False
        for _ in range(len(self._postponed)):
            self._postponed.popleft().handle_postponed()
            if self._is_turn_running and time.monotonic_ns() >= self._turn_ends:
                break
        if self._postponed and not self._is_turn_running:
            self._begin_turn(time.monotonic_ns())


class Connection(asyncio.BufferedProtocol):
    def __init__(
        self,
        flush_queue: FlushQueue,
        budget: TurnBudget,
        limits: Limits,
        write_buffer_bytes: int,
        hello_bytes: int | None = None,
    ) -> None:
        """`budget`: the time of this and other connections in a turn of the loop. `write_buffer_bytes`: unsent bytes
        above which the connection pauses its receiver. `hello_bytes`: a smaller limit for the first received frame."""
        self.receiver: Receiver | None = None
        self.budget = budget
        self._loop = asyncio.get_running_loop()
        self.last_received_s = self._loop.time()
        """Time of the last received bytes, by the loop's clock."""
        self.bytes_in = 0
        self.bytes_out = 0
        self.is_closing = False
        self._flush_queue = flush_queue
        self._splitter = FrameSplitter(limits, hello_bytes)
        self._buffer = flush_queue.buffer[:hello_bytes]
        """The part of the receive buffer that one read may fill."""
        self._write_buffer_bytes = write_buffer_bytes
        self._transport: asyncio.Transport | None = None
        self._pieces: list[bytes] = []
        self._size = 0
        self._is_flush_scheduled = False
        self._postponed: list[bytes] = []
        """Received frames that are not handled yet."""
        self._is_held = False
        """Whether postponed frames wait for `release`."""
        self._is_reading_paused = False
        """Whether the receiver wants no more frames."""
        self._error: WireError | None = None
        """The error in the bytes after the postponed frames."""
        self._linger: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(high=self._write_buffer_bytes)
        self.last_received_s = self._loop.time()
        if self.is_closing:
            # A pending connection may have to give way before it has a transport.
            transport.abort()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._receive(bytes(self._buffer[:nbytes]))

    def receive_early(self, data: bytes) -> None:
        """Receives bytes that arrived before this object became the transport's protocol."""
        if data:
            self._receive(data)

    def _receive(self, data: bytes) -> None:
        if self.is_closing or self.receiver is None:
            return
        self.last_received_s = self._loop.time()
        self.bytes_in += len(data)
        try:
            frames = self._splitter.feed(data)
        except WireError as error:
            if self.is_delayed:
                self._error = error
            else:
                self._report(error)
            return
        if frames:
            self._buffer = self._flush_queue.buffer
        if self.is_delayed:
            self._postponed += frames
        elif frames:
            self._handle(frames)

    def _report(self, error: WireError) -> None:
        """Reports an error to the receiver, in a later turn if the time of this turn is over."""
        assert self.receiver is not None
        if self.budget.begin_share():
            self.receiver.malformed(error)
            return
        self._error = error
        self._update_reading()
        self.budget.postpone(self)

    def _handle(self, frames: list[bytes]) -> None:
        assert self.receiver is not None
        if not self.budget.begin_share():
            self.postpone(frames)
            return
        try:
            self.receiver.received(frames)
        except WireError as error:
            self.receiver.malformed(error)

    @property
    def is_delayed(self) -> bool:
        """Whether received frames wait to be handled."""
        return self._is_held or bool(self._postponed)

    def postpone(self, frames: list[bytes]) -> None:
        """Handles these frames in a later turn of the loop, before any that arrive later."""
        self._postponed = frames
        self._update_reading()
        self.budget.postpone(self)

    def hold(self, frames: list[bytes]) -> None:
        """Handles these frames, and any that arrive later, after `release`."""
        self._is_held = True
        self._postponed = frames
        self._update_reading()

    def release(self) -> None:
        """Lets a connection that was held handle frames again."""
        self._is_held = False
        self.budget.postpone(self)

    def handle_postponed(self) -> None:
        if self.is_closing or self.receiver is None or self._is_held:
            return
        frames, self._postponed = self._postponed, []
        if frames:
            self._handle(frames)
        if self.is_delayed or self.is_closing:
            return
        error, self._error = self._error, None
        if error is not None:
            self._report(error)
        else:
            self._update_reading()

    def send(self, frame: bytes) -> None:
        self._pieces.append(frame)
        self._size += len(frame)
        if not self._is_flush_scheduled:
            self.schedule_flush()
        elif self._size >= FLUSH_AT_BYTES:
            self._write()

    def schedule_flush(self) -> None:
        """Requests a flush at the end of this loop turn."""
        if not self._is_flush_scheduled:
            self._is_flush_scheduled = True
            self._flush_queue.add(self)

    def flush(self) -> None:
        self._is_flush_scheduled = False
        if self.receiver is not None:
            # The receiver may send more frames, which belong to the same write.
            self._is_flush_scheduled = True
            self.receiver.before_writing()
            self._is_flush_scheduled = False
        self._write()

    def _write(self) -> None:
        if self._pieces and self._transport is not None and not self._transport.is_closing():
            self.bytes_out += self._size
            self._transport.write(b"".join(self._pieces))
        self._pieces.clear()
        self._size = 0

    def pause_writing(self) -> None:
        if self.receiver is not None and not self.is_closing:
            self.receiver.paused()

    def resume_writing(self) -> None:
        if self.receiver is not None and not self.is_closing:
            self.receiver.resumed()

    def pause_reading(self) -> None:
        self._is_reading_paused = True
        self._update_reading()

    def resume_reading(self) -> None:
        self._is_reading_paused = False
        self._update_reading()

    def _update_reading(self) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        wants_bytes = not self._is_reading_paused and not self.is_delayed and self._error is None
        if transport.is_reading() and not wants_bytes:
            transport.pause_reading()
        elif wants_bytes and not transport.is_reading():
            transport.resume_reading()

    def close(self, last_frame: bytes = b"") -> None:
        """Sends `last_frame` and closes. The connection ignores everything that arrives later."""
        if self.is_closing:
            return
        if last_frame:
            self._pieces.append(last_frame)
        self._write()
        self.is_closing = True
        if self._transport is not None:
            self._transport.close()
            # The other end may never read the remaining bytes.
            self._linger = self._loop.call_later(LINGER_S, self._transport.abort)

    def abort(self) -> None:
        """Closes at once and discards unsent bytes."""
        self.is_closing = True
        if self._transport is not None:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_closing = True
        self._pieces.clear()
        if self._linger is not None:
            # The timer refers to the transport, and a TLS transport has large buffers.
            self._linger.cancel()
        if self.receiver is not None:
            self.receiver.lost()
            # The receiver refers to this object too, and brokers collect no old cycles.
            self.receiver = None

    @property
    def unsent_bytes(self) -> int:
        """Bytes in the transport's write buffer."""
        return self._transport.get_write_buffer_size() if self._transport is not None else 0

    @property
    def remote_address(self) -> str:
        return remote_address(self._transport) if self._transport is not None else "?"

    @property
    def certificate(self) -> object:
        """The other end's TLS certificate, or None."""
        return self._transport.get_extra_info("peercert") if self._transport is not None else None


def remote_address(transport: asyncio.BaseTransport) -> str:
    """Host and port of the other end."""
    name = transport.get_extra_info("peername")
    return f"{name[0]}:{name[1]}" if name else "?"
