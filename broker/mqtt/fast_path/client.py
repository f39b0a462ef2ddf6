"""An MQTT client on private members of aiomqtt and paho: messages in blocks, acknowledgements sent by the gateway.

aiomqtt acknowledges a QoS 1 message when it arrives. A gateway acknowledges it only when its broker has answered: the
MQTT broker resends unacknowledged messages, also to a gateway that was killed.

aiomqtt connects, authenticates, subscribes, keeps the connection alive and detects its end. Messages and their
acknowledgements bypass it, in a socket between it and the system: see `packet_socket`. `private_members` lists the
private members that this needs.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Self

import aiomqtt
from aiomqtt.types import PahoSocket
from paho.mqtt import MQTTException
from paho.mqtt.client import Client, ConnectFlags
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode

from broker.config.gateway_config import IN_FLIGHT_MAX, GatewayConfig
from broker.mqtt.fast_path.packet_socket import PacketSocket
from broker.mqtt.fast_path.packets import (
    PUBACK,
    PUBLISH,
    REFUSED_FROM,
    Message,
    read_puback,
    read_publish,
    write_pubacks,
    write_publish,
)
from broker.mqtt.mqtt_client import client_arguments, subscribe_to_devices, subscribe_to_requests

FIRST_ID, LAST_ID = 0xFFFF - IN_FLIGHT_MAX, 0xFFFF
"""The ids of the gateway's messages. paho numbers its requests, which are few, from 1."""
UNWRITTEN_AT_MOST = 1 << 20
PROTOCOL_ERRORS = (OSError, ValueError, LookupError, struct.error, MQTTException)
"""Errors of paho for bytes that are not MQTT."""


class FastMqttClient(aiomqtt.Client):
    """An `MqttClient` that handles messages and acknowledgements itself, in blocks."""

    def __init__(
        self,
        config: GatewayConfig,
        on_session: Callable[[bool], None],
        on_messages: Callable[[list[Message]], None],
        on_refused: Callable[[bytes, int], None],
    ) -> None:
        """The callbacks are those of `MqttClient`."""
        table = config.table
        self._on_session = on_session
        self._on_messages = on_messages
        self._on_refused = on_refused
        self._is_version_5 = table.is_version_5
        self._socket: PacketSocket | None = None
        self._unconfirmed: dict[int, bytes] = {}
        self._last_id = LAST_ID
        self._room_below = 0
        self._has_room: asyncio.Future[None] | None = None
        self._answers: dict[int, asyncio.Future[None]] = {}
        self.refusals = 0
        self.most_in_flight = table.in_flight
        super().__init__(**client_arguments(config))

    async def __aenter__(self) -> Self:
        # aiomqtt ignores a loss that coincides with the CONNACK, and leaves a refused connection open.
        lost = self._disconnected
        try:
            await super().__aenter__()
            if lost.done():
                raise aiomqtt.MqttError("the connection was lost at once") from lost.exception()
        except BaseException:
            self._close()
            if lost.done():
                lost.exception()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            await super().__aexit__(kind, error, traceback)
        except aiomqtt.MqttError:
            # The error that ended the block is more informative, and a cancellation must not be replaced.
            if kind is None:
                raise

    def send(self, topic: bytes, payload: bytes, qos: int, properties: bytes) -> None:
        if self._socket is None or self._disconnected.done():
            raise aiomqtt.MqttError("the connection is lost")
        id = self._next_id() if qos else 0
        self._socket.send(write_publish(topic, payload, id, properties))
        if id:
            self._unconfirmed[id] = topic

    async def send_and_wait(self, topic: bytes, payload: bytes, properties: bytes) -> None:
        self.send(topic, payload, 1, properties)
        id = self._last_id
        answer = self._answers[id] = asyncio.get_running_loop().create_future()
        try:
            await answer
        finally:
            del self._answers[id]

    def _next_id(self) -> int:
        id = self._last_id
        while True:
            id = id + 1 if id < LAST_ID else FIRST_ID
            if id not in self._unconfirmed:
                self._last_id = id
                return id

    @property
    def is_full(self) -> bool:
        """Whether the MQTT broker's announced limit of unacknowledged messages, or the buffer's limit, is reached."""
        return len(self._unconfirmed) >= self.most_in_flight or (
            self._socket is not None and self._socket.unwritten > UNWRITTEN_AT_MOST
        )

    async def wait_unconfirmed(self, at_most: int) -> None:
        if not self._has_drained(at_most):
            self._room_below = at_most
            self._has_room = asyncio.get_running_loop().create_future()
            await self._has_room

    def _has_drained(self, at_most: int) -> bool:
        return len(self._unconfirmed) <= at_most and (self._socket is None or not self._socket.unwritten)

    def _check_room(self) -> None:
        if self._has_room is not None and not self._has_room.done() and self._has_drained(self._room_below):
            self._has_room.set_result(None)

    def acknowledge(self, ids: list[int]) -> None:
        if self._socket is not None and not self.is_lost:
            self._socket.send(write_pubacks(ids))

    @property
    def is_lost(self) -> bool:
        return self._socket is None or self._disconnected.done()

    def _on_connect(
        self,
        client: Client,
        userdata: object,
        flags: ConnectFlags,
        reason_code: ReasonCode,
        properties: Properties | None = None,
    ) -> None:
        announced: int = getattr(properties, "ReceiveMaximum", self.most_in_flight)
        self.most_in_flight = min(self.most_in_flight, announced)
        if not reason_code.is_failure:
            self._on_session(bool(flags.session_present))
        super()._on_connect(client, userdata, flags, reason_code, properties)

    def _on_socket_open(self, client: Client, userdata: object, sock: PahoSocket) -> None:
        """Replaces the socket. Called in the thread that connects, before the first write."""
        assert isinstance(sock, socket.socket)
        # Acknowledgements are small packets, and must not wait for more data.
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = client._sock = PacketSocket(sock, self._loop, self._check_room)
        super()._on_socket_open(client, userdata, self._socket)
        # Replaces aiomqtt's own reader.
        self._loop.call_soon_threadsafe(self._loop.add_reader, sock.fileno(), self._readable)

    def _on_socket_register_write(self, client: Client, userdata: object, sock: PahoSocket) -> None:
        """Writes at once: the socket buffers all bytes, and waits for the system itself."""
        self._loop.call_soon_threadsafe(self._write)

    def _on_socket_unregister_write(self, client: Client, userdata: object, sock: PahoSocket) -> None:
        pass

    def _write(self) -> None:
        try:
            self._client.loop_write()
        except PROTOCOL_ERRORS as error:
            self._fail(error)

    def _readable(self) -> None:
        assert self._socket is not None
        messages: list[Message] = []
        try:
            for first, packet, start in self._socket.read():
                kind = first & 0xF0
                if kind == PUBLISH:
                    messages.append(read_publish(packet, start, is_version_5=self._is_version_5))
                elif kind == PUBACK:
                    self._confirmed(*read_puback(packet, start))
                else:
                    self._socket.hand_to_paho(packet)
                    self._client.loop_read()
            if self._socket.is_over:
                self._client.loop_read()
        except PROTOCOL_ERRORS as error:
            self._fail(error)
        if messages:
            self._on_messages(messages)
        self._check_room()

    def _confirmed(self, id: int, reason: int) -> None:
        topic = self._unconfirmed.pop(id, None)
        if topic is not None and reason >= REFUSED_FROM:
            self.refusals += 1
            self._on_refused(topic, reason)
        answer = self._answers.get(id)
        if answer is not None and not answer.done():
            answer.set_result(None)

    def _fail(self, error: Exception) -> None:
        """Closes the connection after bytes that are not MQTT."""
        if not self._connected.done():
            self._connected.set_exception(aiomqtt.MqttError(str(error)))
        elif not self._disconnected.done():
            self._disconnected.set_exception(error)
        self._close()

    def _close(self) -> None:
        if self._socket is not None and self._socket.fileno() >= 0:
            self._on_socket_close(self._client, None, self._socket)
            self._socket.close()

    async def wait_lost(self) -> None:
        async for _ in self.messages:
            raise AssertionError("messages are passed to `on_messages` and never queued")

    async def subscribe_to_devices(self, filters: Iterable[str], qos: int, *, is_version_5: bool) -> None:
        await subscribe_to_devices(self, filters, qos, is_version_5=is_version_5)

    async def subscribe_to_requests(self, prefix: str) -> None:
        await subscribe_to_requests(self, prefix)
