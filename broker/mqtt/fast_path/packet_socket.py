"""A socket for paho, the library inside aiomqtt, that reads and writes large blocks.

paho reads a packet's first byte, its length and the rest with separate system calls, and writes each packet with
another. It also creates half a dozen objects and acquires as many locks for each message. This socket reads all
available bytes and splits them into packets. The gateway handles messages and their acknowledgements itself. paho reads
the other packets, which are few, from this socket. All bytes of one turn of the event loop are written together.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress

from broker.mqtt.fast_path.packets import PacketSplitter

READ_AT_ONCE = 256 << 10
WRITTEN_AT_ONCE = 256 << 10


class PacketSocket:
    """Has the methods that paho uses: `recv`, `send`, `close`, `fileno`, `setblocking`. The gateway uses the others."""

    def __init__(self, sock: socket.socket, loop: asyncio.AbstractEventLoop, on_written: Callable[[], None]) -> None:
        """`on_written` is called when all bytes are written."""
        self._socket = sock
        self._loop = loop
        self._on_written = on_written
        self._splitter = PacketSplitter()
        self._for_paho = b""
        self._error: OSError | None = None
        self._is_over = False
        self._outgoing: list[bytes] = []
        self._unwritten = b""
        self._waiting = 0
        self._is_flush_due = False
        self._is_blocked = False

    def read(self) -> list[tuple[int, bytes, int]]:
        """Reads all available packets, in the form of `PacketSplitter.feed`.

        If `is_over` is set afterwards, paho must read too.
        """
        packets: list[tuple[int, bytes, int]] = []
        while True:
            try:
                data = self._socket.recv(READ_AT_ONCE)
            except (BlockingIOError, ssl.SSLWantReadError):
                break
            except ssl.SSLWantWriteError:
                # TLS must write first.
                self._wait_for_writing()
                break
            except OSError as error:
                self._error = error
                self._is_over = True
                break
            if not data:
                self._is_over = True
                break
            packets += self._splitter.feed(data)
            # TLS may buffer decrypted bytes, which do not make the socket readable.
            if not isinstance(self._socket, ssl.SSLSocket) or not self._socket.pending():
                break
        return packets

    @property
    def is_over(self) -> bool:
        """Whether the other end closed the connection or the connection was lost."""
        return self._is_over

    def hand_to_paho(self, packet: bytes) -> None:
        self._for_paho += packet

    def recv(self, size: int) -> bytes:
        if self._for_paho:
            data, self._for_paho = self._for_paho[:size], self._for_paho[size:]
            return data
        if self._error is not None:
            raise self._error
        if self._is_over:
            return b""
        raise BlockingIOError

    def send(self, data: bytes | bytearray) -> int:
        """Queues bytes until the end of this turn of the loop. Never blocks; callers check `unwritten`."""
        self._outgoing.append(bytes(data))
        self._waiting += len(data)
        if not self._is_flush_due and not self._is_blocked:
            self._is_flush_due = True
            self._loop.call_soon(self._flush)
        return len(data)

    @property
    def unwritten(self) -> int:
        """The number of queued bytes."""
        return self._waiting

    def _flush(self) -> None:
        self._is_flush_due = False
        if not self._is_blocked and self._socket.fileno() >= 0 and self._write():
            self._on_written()

    def _write(self) -> bool:
        """Writes the queued bytes. Returns whether all are written."""
        data = b"".join((self._unwritten, *self._outgoing))
        self._outgoing.clear()
        view = memoryview(data)
        place = 0
        try:
            while place < len(data):
                place += self._socket.send(view[place : place + WRITTEN_AT_ONCE])
        except (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError):
            self._wait_for_writing()
        except OSError as error:
            # Reading reports most errors too. This handles errors that only writing reports.
            self._error = self._error or error
            self._is_over = True
        self._unwritten = data[place:]
        self._waiting = len(self._unwritten)
        return not self._unwritten

    def _wait_for_writing(self) -> None:
        if not self._is_blocked:
            self._is_blocked = True
            self._loop.add_writer(self._socket.fileno(), self._writable)

    def _writable(self) -> None:
        self._is_blocked = False
        self._loop.remove_writer(self._socket.fileno())
        self._flush()

    def close(self) -> None:
        if self._socket.fileno() >= 0:
            if self._is_blocked:
                self._loop.remove_writer(self._socket.fileno())
                self._is_blocked = False
            # Write the rest, if the system accepts it.
            self._write_last()
        self._socket.close()

    def _write_last(self) -> None:
        # The connection may be lost already.
        with suppress(OSError):
            self._socket.send(b"".join((self._unwritten, *self._outgoing)))
        self._outgoing.clear()
        self._unwritten = b""
        self._waiting = 0

    def fileno(self) -> int:
        return self._socket.fileno()

    def setblocking(self, flag: bool) -> None:
        self._socket.setblocking(flag)
