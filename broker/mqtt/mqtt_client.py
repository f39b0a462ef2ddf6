"""The connection to an MQTT broker: aiomqtt's client, with messages handed over at once and acknowledged by hand.

aiomqtt acknowledges a QoS 1 message when it arrives. A gateway answers for a message only when its broker does, so it
acknowledges later: what was not acknowledged the MQTT broker sends again, also to a gateway that was killed.

aiomqtt connects, authenticates, subscribes, keeps the connection alive and notices its end. Messages and their
acknowledgements pass it by, in a socket that is put between it and the system: see `packet_socket`. For this, members
are used that are not meant for others. Of aiomqtt's client: `_on_connect`, `_on_socket_open`, `_on_socket_close`,
`_on_socket_register_write`, `_on_socket_unregister_write` and `_loop`, to have the socket and its events;
`_connected` and `_disconnected`, to say that the connection is lost, and `_client`, which is paho's. Of paho's client:
`_sock`, to replace it. Its other members that are used are public.
"""

from __future__ import annotations

import asyncio
import logging
import math
import socket
import ssl
import struct
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

import aiomqtt
from aiomqtt.types import PahoSocket
from paho.mqtt import MQTTException
from paho.mqtt.client import MQTT_CLEAN_START_FIRST_ONLY, Client, ConnectFlags
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode
from paho.mqtt.subscribeoptions import SubscribeOptions

from broker.config.gateway_config import IN_FLIGHT_MAX, GatewayConfig, GatewayTable
from broker.config.tables import ConfigError
from broker.core.settings import SECOND
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

NO_RETAINED = 2
"""The MQTT 5 way to say that retained messages are not wanted."""
ANSWER_WITHIN_S = 5.0
FIRST_ID, LAST_ID = 0xFFFF - IN_FLIGHT_MAX, 0xFFFF
"""Numbers of messages that the gateway sends. paho numbers its requests, which are few, from 1 on."""
UNWRITTEN_AT_MOST = 1 << 20
NOT_WHAT_PAHO_EXPECTS = (OSError, ValueError, LookupError, struct.error, MQTTException)


# What goes wrong is raised, and told by who runs the connection.
quiet = logging.getLogger("mercast.mqtt")
quiet.setLevel(logging.CRITICAL)


class MqttClient(aiomqtt.Client):
    """One connection; a broken one is replaced by a new client under the same identifier."""

    def __init__(
        self,
        config: GatewayConfig,
        on_session: Callable[[bool], None],
        on_messages: Callable[[list[Message]], None],
        on_refused: Callable[[bytes, int], None],
    ) -> None:
        """`connected` is called once, before any message, and told whether the MQTT broker has kept the session;
        `take` is called with messages and must not raise; `refused` with the topic of a message that the MQTT broker
        did not want, and its reason."""
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
        connecting = None
        if table.is_version_5:
            connecting = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
            connecting.SessionExpiryInterval = min(table.session // SECOND, 0xFFFFFFFF)
            connecting.ReceiveMaximum = table.intake
        super().__init__(
            table.host,
            table.port,
            username=table.username or None,
            password=_password(table),
            identifier=config.identifier,
            protocol=aiomqtt.ProtocolVersion.V5 if table.is_version_5 else aiomqtt.ProtocolVersion.V311,
            clean_session=None if table.is_version_5 else False,
            clean_start=False if table.is_version_5 else MQTT_CLEAN_START_FIRST_ONLY,
            properties=connecting,
            keepalive=max(1, table.keep_alive // SECOND),
            tls_context=_tls(table),
            logger=quiet,
            timeout=ANSWER_WITHIN_S,
        )

    async def __aenter__(self) -> Self:
        # aiomqtt forgets a loss that comes with the first answer, and leaves a connection open that it refuses.
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
            # What ended the block says more, and a cancellation must not get lost.
            if kind is None:
                raise

    def send(self, topic: bytes, payload: bytes, qos: int, properties: bytes) -> int:
        """A message's number, 0 at QoS 0. Topic and properties are packed, and have their lengths before them."""
        if self._socket is None or self._disconnected.done():
            raise aiomqtt.MqttError("the connection is lost")
        id = self._next_id() if qos else 0
        self._socket.send(write_publish(topic, payload, id, properties))
        if id:
            self._unconfirmed[id] = topic
        return id

    async def send_and_wait(self, topic: bytes, payload: bytes, properties: bytes) -> None:
        """At QoS 1, until the MQTT broker has acknowledged it."""
        id = self.send(topic, payload, 1, properties)
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
        """Has the MQTT broker as many to acknowledge as it said it would take, or the network as much as may be?"""
        return len(self._unconfirmed) >= self.most_in_flight or (
            self._socket is not None and self._socket.unwritten > UNWRITTEN_AT_MOST
        )

    async def wait_unconfirmed(self, at_most: int) -> None:
        """All that was sent is written, and no more than so many are not acknowledged."""
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
        """Messages that arrived, at QoS 1."""
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
        """In the thread that connects, before anything is written."""
        assert isinstance(sock, socket.socket)
        # Acknowledgements are small, and must not wait for more to send.
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = client._sock = PacketSocket(sock, self._loop, self._check_room)
        super()._on_socket_open(client, userdata, self._socket)
        # In the place of aiomqtt's own reader.
        self._loop.call_soon_threadsafe(self._loop.add_reader, sock.fileno(), self._readable)

    def _on_socket_register_write(self, client: Client, userdata: object, sock: PahoSocket) -> None:
        """The socket takes everything at once, and waits for the system itself."""
        self._loop.call_soon_threadsafe(self._write)

    def _on_socket_unregister_write(self, client: Client, userdata: object, sock: PahoSocket) -> None:
        pass

    def _write(self) -> None:
        try:
            self._client.loop_write()
        except NOT_WHAT_PAHO_EXPECTS as error:
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
        except NOT_WHAT_PAHO_EXPECTS as error:
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
        """The other end does not speak MQTT."""
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
        """Raises when the connection is lost."""
        async for _ in self.messages:
            raise AssertionError("messages are handed over and never queued")

    async def subscribe_to_devices(self, filters: Iterable[str], qos: int, *, is_version_5: bool) -> None:
        for each in filters:
            if is_version_5:
                options = SubscribeOptions(qos, noLocal=True, retainHandling=NO_RETAINED)
                await self.subscribe(each, options=options, timeout=math.inf)
            else:
                await self.subscribe(each, qos, timeout=math.inf)


def check_files(table: GatewayTable) -> None:
    """Refuses what cannot be read, before anything starts."""
    _password(table)
    _tls(table)


def _password(table: GatewayTable) -> str | None:
    if not table.password_file:
        return None
    try:
        return Path(table.password_file).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ConfigError(f"[mqtt] password_file {table.password_file}: {error.strerror}") from error


def _tls(table: GatewayTable) -> ssl.SSLContext | None:
    if not table.ca_file:
        return None
    try:
        return ssl.create_default_context(cafile=table.ca_file)
    except OSError as error:
        raise ConfigError(f"[mqtt] ca_file {table.ca_file}: {error}") from error
