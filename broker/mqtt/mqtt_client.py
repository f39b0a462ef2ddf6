"""The connection to an MQTT broker, as the gateway uses it.

There are two implementations. `fast_path.client.FastMqttClient` is the default. It replaces private members of aiomqtt
and paho. `plain_client.PlainMqttClient` (`fast_path = false`) uses only their public interface.
"""

from __future__ import annotations

import logging
import math
import ssl
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self, TypedDict

import aiomqtt
from paho.mqtt.client import MQTT_CLEAN_START_FIRST_ONLY, CleanStartOption
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

from broker.config.gateway_config import GatewayConfig, GatewayTable
from broker.config.tables import ConfigError
from broker.core.settings import SECOND

NO_RETAINED = 2
"""The MQTT 5 subscribe option that excludes retained messages."""
ANSWER_WITHIN_S = 5.0

# Errors are raised, and the gateway logs them.
quiet = logging.getLogger("mercast.mqtt")
quiet.setLevel(logging.CRITICAL)


class MqttClient(Protocol):
    """One connection, opened by `async with`. After a loss the gateway creates a new client with the same identifier.

    Implementations are created with three callbacks. `on_session` is called once, before any message, with whether the
    MQTT broker has kept the session. `on_messages` is called with received messages and must not raise. `on_refused` is
    called with the topic of a message that the MQTT broker refused, and the reason code.
    """

    refusals: int
    """The number of messages that the MQTT broker refused."""
    most_in_flight: int
    """The largest number of sent messages without an acknowledgement."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...

    async def wait_lost(self) -> None:
        """Raises `aiomqtt.MqttError` when the connection is lost."""

    @property
    def is_lost(self) -> bool: ...

    async def subscribe_to_devices(self, filters: Iterable[str], qos: int, *, is_version_5: bool) -> None: ...

    async def subscribe_to_requests(self, prefix: str) -> None: ...

    def send(self, topic: bytes, payload: bytes, qos: int, properties: bytes) -> None:
        """Sends a message. Topic and properties are encoded, and start with their lengths."""

    async def send_and_wait(self, topic: bytes, payload: bytes, properties: bytes) -> None:
        """Sends a message at QoS 1, and waits until the MQTT broker has acknowledged it."""

    @property
    def is_full(self) -> bool:
        """Whether the sender must wait before it sends more."""
        ...

    async def wait_unconfirmed(self, at_most: int) -> None:
        """Waits until all messages are written, and at most `at_most` are not acknowledged."""

    def acknowledge(self, ids: list[int]) -> None:
        """Acknowledges received messages of QoS 1."""


class ClientArguments(TypedDict):
    """Arguments of `aiomqtt.Client`."""

    hostname: str
    port: int
    username: str | None
    password: str | None
    identifier: str
    protocol: aiomqtt.ProtocolVersion
    clean_session: bool | None
    clean_start: CleanStartOption
    properties: Properties | None
    keepalive: int
    tls_context: ssl.SSLContext | None
    logger: logging.Logger
    timeout: float


def client_arguments(config: GatewayConfig) -> ClientArguments:
    table = config.table
    connecting = None
    if table.is_version_5:
        connecting = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        connecting.SessionExpiryInterval = min(table.session // SECOND, 0xFFFFFFFF)
        connecting.ReceiveMaximum = table.intake
    return ClientArguments(
        hostname=table.host,
        port=table.port,
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


async def subscribe_to_devices(client: aiomqtt.Client, filters: Iterable[str], qos: int, *, is_version_5: bool) -> None:
    """Subscribes to the topics of devices. With MQTT 5, own and retained messages are excluded."""
    for each in filters:
        if is_version_5:
            options = SubscribeOptions(qos, noLocal=True, retainHandling=NO_RETAINED)
            await client.subscribe(each, options=options, timeout=math.inf)
        else:
            await client.subscribe(each, qos, timeout=math.inf)


async def subscribe_to_requests(client: aiomqtt.Client, prefix: str) -> None:
    """Subscribes to the topics under which MQTT clients publish their expressions."""
    # No timeout: the MQTT broker sends all retained expressions before it answers. There may be thousands.
    await client.subscribe(f"{prefix}/#", 1, timeout=math.inf)


def check_files(table: GatewayTable) -> None:
    """Raises `ConfigError` if a file of the configuration cannot be read. Called before the gateway starts."""
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
