"""The connection to an MQTT broker: aiomqtt's client, with messages handed over at once and acknowledged by hand.

aiomqtt acknowledges a QoS 1 message when it arrives. A gateway answers for a message only when its broker does, so it
acknowledges later: what was not acknowledged the MQTT broker sends again, also to a gateway that was killed.
"""

from __future__ import annotations

import asyncio
import logging
import math
import socket
import ssl
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType

import aiomqtt
from aiomqtt.types import PahoSocket
from paho.mqtt.client import MQTT_CLEAN_START_FIRST_ONLY, Client, ConnectFlags
from paho.mqtt.enums import MQTTErrorCode
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode
from paho.mqtt.subscribeoptions import SubscribeOptions

from broker.config_tables import ConfigError
from broker.gateway.config import GatewayConfig, GatewayTable
from broker.settings import SECOND

NO_RETAINED = 2
"""The MQTT 5 way to say that retained messages are not wanted."""
ANSWER_WITHIN_S = 5.0
MORE_THAN_EVER_PENDING = 1 << 20


# What goes wrong is raised, and told by who runs the connection.
quiet = logging.getLogger("mercast.mqtt")
quiet.setLevel(logging.CRITICAL)


def _queue_that_calls(take: Callable[[aiomqtt.Message], None]) -> type[asyncio.Queue[aiomqtt.Message]]:
    """aiomqtt puts messages into a queue of this kind; there is none behind it, so nothing waits twice."""

    class HandingOver(asyncio.Queue[aiomqtt.Message]):
        def put_nowait(self, item: aiomqtt.Message) -> None:
            take(item)

    return HandingOver


class MqttClient(aiomqtt.Client):
    """One connection; a broken one is replaced by a new client under the same identifier."""

    def __init__(self, config: GatewayConfig, take: Callable[[aiomqtt.Message], None]) -> None:
        """`take` is called with each message and must not raise."""
        table = config.table
        self._thread = threading.get_ident()
        self._unconfirmed: set[int] = set()
        self._enough = 0
        self._has_room: asyncio.Future[None] | None = None
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
            # Bounded by who sends; paho looks through all messages in flight at each acknowledgement otherwise.
            max_inflight_messages=0,
            queue_type=_queue_that_calls(take),
            tls_context=_tls(table),
            logger=quiet,
            # Acknowledgements are small, and must not wait for more to send.
            socket_options=[(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)],
            timeout=ANSWER_WITHIN_S,
        )
        self.pending_calls_threshold = MORE_THAN_EVER_PENDING
        # The one thing that aiomqtt does not pass on to the paho client that it wraps.
        self._client.manual_ack_set(True)
        # Several lines for each message would be made up, only to be thrown away.
        self._client.disable_logger()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            await super().__aexit__(kind, error, traceback)
        except aiomqtt.MqttError:
            # What ended the block says more, and a cancellation must not get lost.
            if kind is None:
                raise

    def send(self, topic: str, payload: bytes, qos: int, properties: Properties | None) -> None:
        """As `publish`, without waiting: thousands a second, and a task for each would cost as much as sending it."""
        info = self._client.publish(topic, payload, qos, False, properties)
        if info.rc != MQTTErrorCode.MQTT_ERR_SUCCESS:
            raise aiomqtt.MqttCodeError(info.rc, "the message could not be sent")
        if not info.is_published():
            self._unconfirmed.add(info.mid)

    @property
    def is_full(self) -> bool:
        """Has the MQTT broker as many to acknowledge as it said it would take, or as may be?"""
        return len(self._unconfirmed) >= self.most_in_flight

    async def until_unconfirmed(self, at_most: int) -> None:
        """No more than so many that were sent are not acknowledged, or at QoS 0 not written."""
        if len(self._unconfirmed) > at_most:
            self._enough = at_most
            self._has_room = asyncio.get_running_loop().create_future()
            await self._has_room

    def _on_connect(
        self,
        client: Client,
        userdata: object,
        flags: ConnectFlags,
        reason_code: ReasonCode,
        properties: Properties | None = None,
    ) -> None:
        told: int = getattr(properties, "ReceiveMaximum", self.most_in_flight)
        self.most_in_flight = min(self.most_in_flight, told)
        super()._on_connect(client, userdata, flags, reason_code, properties)

    def _on_publish(
        self, client: Client, userdata: object, mid: int, reason_code: ReasonCode, properties: Properties
    ) -> None:
        if mid not in self._unconfirmed:
            super()._on_publish(client, userdata, mid, reason_code, properties)
            return
        self._unconfirmed.remove(mid)
        if len(self._unconfirmed) <= self._enough and self._has_room is not None and not self._has_room.done():
            self._has_room.set_result(None)

    def _on_socket_register_write(self, client: Client, userdata: object, sock: PahoSocket) -> None:
        """aiomqtt leaves it to a later turn of the loop, when the socket may be closed or be another one's."""
        if threading.get_ident() != self._thread:
            super()._on_socket_register_write(client, userdata, sock)
        elif sock.fileno() >= 0:
            self._loop.add_writer(sock.fileno(), self._write)

    def _write(self) -> None:
        try:
            self._client.loop_write()
        except OSError as error:
            if not self._disconnected.done():
                self._disconnected.set_exception(error)

    def acknowledge(self, message_id: int, qos: int) -> None:
        self._client.ack(message_id, qos)

    async def until_lost(self) -> None:
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


def properties_of(message: aiomqtt.Message) -> list[tuple[str, str]]:
    if message.properties is None:
        return []
    pairs: list[tuple[str, str]] = getattr(message.properties, "UserProperty", [])
    return pairs


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
