"""A socket for paho, the library within aiomqtt, that reads and writes in large pieces.

paho reads a packet's first byte, its length, and the rest, each with a call of the system, and writes every packet with
another; then it makes half a dozen objects and takes as many locks for each message. Here bytes are read as many as
there are and cut into packets. Messages and their acknowledgements are taken out; the other packets, of which there are
few, are what paho reads from this socket. What is written in one turn of the event loop goes out together.
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
    """What paho expects of a socket: `recv`, `send`, `close`, `fileno`, `setblocking`; the rest is for the gateway."""

    def __init__(self, sock: socket.socket, loop: asyncio.AbstractEventLoop, on_written: Callable[[], None]) -> None:
        """`on_written` is called when everything is written."""
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
        """Packets, as many as there are; see `PacketSplitter.feed`. Then paho must look, if `is_over`."""
        packets: list[tuple[int, bytes, int]] = []
        while True:
            try:
                data = self._socket.recv(READ_AT_ONCE)
            except (BlockingIOError, ssl.SSLWantReadError):
                break
            except ssl.SSLWantWriteError:
                # TLS has something of its own to say first.
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
            # TLS may hold decrypted bytes that the system does not know of.
            if not isinstance(self._socket, ssl.SSLSocket) or not self._socket.pending():
                break
        return packets

    @property
    def is_over(self) -> bool:
        """Did the other end close the connection, or was it lost?"""
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
        """Goes out at the end of this turn of the loop; never blocks, for who sends much asks for `unwritten`."""
        self._outgoing.append(bytes(data))
        self._waiting += len(data)
        if not self._is_flush_due and not self._is_blocked:
            self._is_flush_due = True
            self._loop.call_soon(self._flush)
        return len(data)

    @property
    def unwritten(self) -> int:
        """Bytes that wait for the system or the end of the turn."""
        return self._waiting

    def _flush(self) -> None:
        self._is_flush_due = False
        if not self._is_blocked and self._socket.fileno() >= 0 and self._write():
            self._on_written()

    def _write(self) -> bool:
        """Is everything written?"""
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
            # Who reads is told of it by the system as well; this is for errors that only writing shows.
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
            # The last word, if the system takes it.
            self._write_last()
        self._socket.close()

    def _write_last(self) -> None:
        # It may be lost already.
        with suppress(OSError):
            self._socket.send(b"".join((self._unwritten, *self._outgoing)))
        self._outgoing.clear()
        self._unwritten = b""
        self._waiting = 0

    def fileno(self) -> int:
        return self._socket.fileno()

    def setblocking(self, flag: bool) -> None:
        self._socket.setblocking(flag)
