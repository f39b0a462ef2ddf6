"""A TCP connection that carries frames: what arrives is cut into frames, what leaves goes in one write a loop turn.

All connections of a broker share one buffer to receive into, because what arrives is taken out of it at once. Its size
bounds what one connection can ask for before the others have their turn.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from broker.wire.framing import FrameSplitter
from broker.wire.limits import Limits, WireError

RECEIVE_BUFFER_BYTES = 64 << 10
FLUSH_AT_BYTES = 128 << 10
"""Beyond so many bytes a write does not wait for the end of the loop turn."""

LINGER_S = 2.0
"""How long a connection that was closed may take to write the rest."""


class Receiver(Protocol):
    """Whoever is at this end of a connection: first a newcomer, then a client's session or a link."""

    def received(self, frames: list[bytes]) -> None: ...

    def before_writing(self) -> None:
        """The last moment to send what was collected in this loop turn."""

    def paused(self) -> None:
        """The other end does not read fast enough."""

    def resumed(self) -> None: ...

    def malformed(self, error: WireError) -> None: ...

    def lost(self) -> None: ...


class FlushQueue:
    """The connections that have something to write at the end of this loop turn."""

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


class Connection(asyncio.BufferedProtocol):
    def __init__(self, flush_queue: FlushQueue, limits: Limits, write_buffer_bytes: int) -> None:
        """`buffered`: bytes that may wait for the other end before the receiver is told to pause."""
        self.receiver: Receiver | None = None
        self._loop = asyncio.get_running_loop()
        self.last_received_s = self._loop.time()
        """When something last arrived, by the loop's clock."""
        self.bytes_in = 0
        self.bytes_out = 0
        self.is_closing = False
        self._flush_queue = flush_queue
        self._splitter = FrameSplitter(limits)
        self._write_buffer_bytes = write_buffer_bytes
        self._transport: asyncio.Transport | None = None
        self._pieces: list[bytes] = []
        self._size = 0
        self._is_flush_scheduled = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(high=self._write_buffer_bytes)
        self.last_received_s = self._loop.time()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._flush_queue.buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._receive(bytes(self._flush_queue.buffer[:nbytes]))

    def receive_early(self, data: bytes) -> None:
        """What came before the connection was handed over."""
        if data:
            self._receive(data)

    def _receive(self, data: bytes) -> None:
        if self.is_closing or self.receiver is None:
            return
        self.last_received_s = self._loop.time()
        self.bytes_in += len(data)
        try:
            frames = self._splitter.feed(data)
            if frames:
                self.receiver.received(frames)
        except WireError as error:
            self.receiver.malformed(error)

    def send(self, frame: bytes) -> None:
        self._pieces.append(frame)
        self._size += len(frame)
        if not self._is_flush_scheduled:
            self.schedule_flush()
        elif self._size >= FLUSH_AT_BYTES:
            self._write()

    def schedule_flush(self) -> None:
        """Something is to be written at the end of this loop turn."""
        if not self._is_flush_scheduled:
            self._is_flush_scheduled = True
            self._flush_queue.add(self)

    def flush(self) -> None:
        self._is_flush_scheduled = False
        if self.receiver is not None:
            # May send more; that belongs to the same write.
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
        if self._transport is not None and self._transport.is_reading():
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if self._transport is not None and not self._transport.is_closing() and not self._transport.is_reading():
            self._transport.resume_reading()

    def close(self, last_frame: bytes = b"") -> None:
        """Says a last word and closes. Nothing that arrives from now on is looked at."""
        if self.is_closing:
            return
        if last_frame:
            self._pieces.append(last_frame)
        self._write()
        self.is_closing = True
        if self._transport is not None:
            self._transport.close()
            # The other end may never read what is still to be written.
            self._loop.call_later(LINGER_S, self._transport.abort)

    def abort(self) -> None:
        """Closes without waiting for the other end to take what was written."""
        self.is_closing = True
        if self._transport is not None:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_closing = True
        self._pieces.clear()
        if self.receiver is not None:
            self.receiver.lost()

    @property
    def is_established(self) -> bool:
        """Has the other end connected, a TLS handshake included?"""
        return self._transport is not None

    @property
    def unsent_bytes(self) -> int:
        """Written, and not taken by the other end."""
        return self._transport.get_write_buffer_size() if self._transport is not None else 0

    @property
    def remote_address(self) -> str:
        name = self._transport.get_extra_info("peername") if self._transport is not None else None
        return f"{name[0]}:{name[1]}" if name else "?"

    @property
    def certificate(self) -> object:
        """The other end's TLS certificate, where there is one."""
        return self._transport.get_extra_info("peercert") if self._transport is not None else None
