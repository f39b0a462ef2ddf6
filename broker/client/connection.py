"""One connection to a broker, and the time limit of a wait for the broker.

A connection splits received bytes into frames, and joins the frames of a loop turn into one write.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Callable
from types import TracebackType
from typing import Protocol

from broker.client.errors import ConnectError, TimeoutExpiredError, refused_error
from broker.config.address import Address
from broker.wire.client_codec import decode, encode
from broker.wire.client_frames import ClientFrame, FromBroker, Goodbye, Hello, Ping, Pong, Reason, Welcome
from broker.wire.framing import FrameSplitter
from broker.wire.limits import Limits, WireError

LIMITS = Limits(frame_bytes=1 << 26, header_bytes=1 << 20)
"""Limits of frames from a broker. They are wide: clients trust brokers more than brokers trust clients."""

TLS_HINT = "it speaks TLS: set MERCAST_CA to its authority's certificate, in Python pass tls=tls(…)"
PING_EVERY_S = 5.0
DEAD_AFTER_PINGS = 6


class Receiver(Protocol):
    """Receives the events of a connection after its handshake."""

    def connection_ready(self, connection: Connection, welcome: Welcome) -> None:
        """Called once, before any other frame of the connection."""

    def frames_received(self, frames: list[bytes]) -> None: ...

    def writing_resumed(self) -> None:
        """Called when the network accepts more bytes after a pause."""

    def connection_lost(self, connection: Connection, reason: str) -> None: ...


class Connection(asyncio.Protocol):
    def __init__(self, receiver: Receiver, hello: Hello, loop: asyncio.AbstractEventLoop) -> None:
        self.welcome: Welcome | None = None
        self.goodbye: Goodbye | None = None
        """The frame in which the broker gave its reason to close the connection."""
        self._receiver = receiver
        self._hello = hello
        self._loop = loop
        self._welcomed: asyncio.Future[Welcome] = loop.create_future()
        self._closed: asyncio.Future[None] = loop.create_future()
        self._splitter = FrameSplitter(LIMITS)
        self._transport: asyncio.Transport | None = None
        self._outgoing: list[bytes] = []
        self._is_flush_due = False
        self._has_room = True
        self._is_reading_paused = False
        self._received_at = loop.time()
        self._pinger: asyncio.TimerHandle | None = None
        self._reason = "the connection was closed"

    async def wait_for_welcome(self, within_s: float) -> Welcome:
        """Waits for the broker's answer to the hello, then starts to send pings."""
        try:
            async with asyncio.timeout(within_s):
                welcome = await self._welcomed
        except TimeoutError:
            raise ConnectError(f"no answer to the greeting within {within_s:g} s") from None
        self._ping(min(PING_EVERY_S, welcome.idle_ms / 3000) if welcome.idle_ms else PING_EVERY_S)
        return welcome

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(encode(self._hello))

    def data_received(self, data: bytes) -> None:
        self._received_at = self._loop.time()
        try:
            frames = self._splitter.feed(data)
            if self.welcome is None:
                frames = self._receive_welcome(frames)
            if frames:
                self._receiver.frames_received(frames)
        except WireError as error:
            self.abort(f"the broker sent something that is no frame: {error}")

    def _receive_welcome(self, frames: list[bytes]) -> list[bytes]:
        """Handles the first frame, which must be a welcome or a refusal. Returns the other frames."""
        if not frames:
            return []
        first = decode(frames[0], LIMITS)
        if isinstance(first, Goodbye):
            self._fail(refused_error("the connection", first.reason, first.text))
        elif not isinstance(first, Welcome):
            self._fail(ConnectError(f"the server's first word was {type(first).__name__}, not Welcome"))
        else:
            self.welcome = first
            if not self._welcomed.done():
                self._welcomed.set_result(first)
            self._receiver.connection_ready(self, first)
            return frames[1:]
        return []

    def _fail(self, error: Exception) -> None:
        if not self._welcomed.done():
            self._welcomed.set_exception(error)
        self.abort(str(error))

    def send(self, frame: bytes) -> None:
        """Queues a frame. All frames of one turn of the loop are written together."""
        self._outgoing.append(frame)
        if not self._is_flush_due:
            self._is_flush_due = True
            self._loop.call_soon(self.flush)

    def send_frame(self, frame: ClientFrame) -> None:
        self.send(encode(frame))

    def flush(self) -> None:
        self._is_flush_due = False
        if self._outgoing and self._transport is not None:
            self._transport.write(b"".join(self._outgoing))
            self._outgoing.clear()

    def has_room(self) -> bool:
        """Whether the network accepts more bytes."""
        return self._has_room

    def pause_writing(self) -> None:
        self._has_room = False

    def resume_writing(self) -> None:
        self._has_room = True
        self._receiver.writing_resumed()

    def pause_reading(self) -> None:
        if not self._is_reading_paused and self._transport is not None and not self._transport.is_closing():
            self._is_reading_paused = True
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if self._is_reading_paused and self._transport is not None and not self._transport.is_closing():
            self._is_reading_paused = False
            self._received_at = self._loop.time()
            self._transport.resume_reading()

    def answer_ping(self, ping: Ping) -> None:
        self.send_frame(Pong(ping.number))

    def _ping(self, interval_s: float) -> None:
        silent_s = self._loop.time() - self._received_at
        if silent_s > DEAD_AFTER_PINGS * interval_s and not self._is_reading_paused:
            self.abort(f"the broker was silent for {silent_s:.1f} s")
            return
        self.send_frame(Ping(0))
        self._pinger = self._loop.call_later(interval_s, self._ping, interval_s)

    def goodbye_received(self, goodbye: Goodbye) -> None:
        """Stores the broker's reason to close the connection, and closes it."""
        self.goodbye = goodbye
        self.abort(f"the broker closed it: {goodbye.text or goodbye.reason}")

    async def close(self, *, is_kept: bool, within_s: float) -> None:
        """Sends a goodbye and all queued frames, and waits until the connection is closed."""
        self.send_frame(Goodbye(Reason.DONE, is_kept=is_kept))
        self.flush()
        if self._transport is not None:
            self._transport.close()
        await asyncio.wait([self._closed], timeout=within_s)
        self.abort("the client closed it")

    def abort(self, reason: str) -> None:
        self._reason = reason
        if self._transport is not None:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._pinger is not None:
            self._pinger.cancel()
        reason = f"{self._reason}: {exc}" if exc is not None else self._reason
        if not self._welcomed.done():
            is_encrypted = self._transport is not None and self._transport.get_extra_info("ssl_object") is not None
            hint = "it does not take this certificate: its log says so" if is_encrypted else TLS_HINT
            self._welcomed.set_exception(
                ConnectError(f"the connection ended before the broker's answer ({reason}; perhaps {hint})")
            )
        if not self._closed.done():
            self._closed.set_result(None)
        if self.welcome is not None:
            self._receiver.connection_lost(self, reason)


async def open_connection(
    address: Address, receiver: Receiver, hello: Hello, within_s: float, tls: ssl.SSLContext | None = None
) -> Connection:
    """Connects, and waits until the broker has accepted the hello."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(within_s):
            _, connection = await loop.create_connection(
                lambda: Connection(receiver, hello, loop), address.host, address.port, ssl=tls
            )
    except TimeoutError:
        raise ConnectError(f"no connection within {within_s:g} s") from None
    except ssl.SSLError as error:
        raise ConnectError(f"TLS: {error.reason or error}") from None
    except OSError as error:
        # A TLS handshake that the other end broke off has neither an error number nor a text.
        words = os.strerror(error.errno).lower() if error.errno else str(error)
        raise ConnectError(words or ("TLS: no handshake" if tls else "the connection broke off")) from None
    try:
        await connection.wait_for_welcome(within_s)
    except BaseException:
        connection.abort("the greeting failed")
        raise
    return connection


def decode_from_broker(frame: bytes) -> FromBroker:
    """Decodes a frame. Raises `WireError` if brokers do not send frames of its kind."""
    content = decode(frame, LIMITS)
    if not isinstance(content, FromBroker):
        raise WireError(f"{type(content).__name__} is said by clients, not by brokers")
    return content


class Deadline:
    """`asyncio.timeout` that raises `TimeoutExpiredError`. `what` names the awaited thing."""

    def __init__(self, what: str, timeout_s: float | None, is_connected: Callable[[], bool] = lambda: True) -> None:
        self._what = what
        self._timeout_s = timeout_s
        self._is_connected = is_connected
        self._timeout = asyncio.timeout(timeout_s)

    async def __aenter__(self) -> None:
        await self._timeout.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            await self._timeout.__aexit__(kind, error, traceback)
        except TimeoutError:
            state = "" if self._is_connected() else "; there is no connection at the moment"
            raise TimeoutExpiredError(f"{self._what} did not come within {self._timeout_s:g} s{state}") from None
