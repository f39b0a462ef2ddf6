"""An MQTT client on the public interface of aiomqtt, for `fast_path = false`.

aiomqtt acknowledges a QoS 1 message when it arrives, before the broker has accepted it. So a message is lost if the
gateway is killed in between. Messages beyond `intake` are dropped and counted instead of held back. aiomqtt reports
neither the MQTT broker's limit of messages in flight nor refused messages.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Self

import aiomqtt
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from broker.config.gateway_config import GatewayConfig
from broker.mqtt.fast_path.packets import Message
from broker.mqtt.mqtt_client import client_arguments, subscribe_to_devices, subscribe_to_requests

IN_FLIGHT = 20
"""The largest number of unacknowledged messages. mosquitto's default limit, which aiomqtt does not report."""


class PlainMqttClient:
    """An `MqttClient` on the public interface of aiomqtt."""

    def __init__(
        self,
        config: GatewayConfig,
        on_session: Callable[[bool], None],
        on_messages: Callable[[list[Message]], None],
        on_refused: Callable[[bytes, int], None],
    ) -> None:
        """The callbacks are those of `MqttClient`. aiomqtt does not report refusals, so `on_refused` is not called."""
        self.refusals = 0
        self.most_in_flight = min(config.table.in_flight, IN_FLIGHT)
        self._on_session = on_session
        self._on_messages = on_messages
        self._client = aiomqtt.Client(**client_arguments(config), max_inflight_messages=self.most_in_flight)
        self._client.pending_calls_threshold = self.most_in_flight
        self._is_lost = True
        self._unconfirmed: set[asyncio.Task[None]] = set()
        self._error: BaseException | None = None
        self._has_progress = asyncio.Event()

    async def __aenter__(self) -> Self:
        await self._client.__aenter__()
        self._is_lost = False
        # aiomqtt does not report whether the session was kept. No message is unacknowledged, so it does not matter.
        self._on_session(False)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._is_lost = True
        for task in self._unconfirmed:
            task.cancel()
        try:
            await self._client.__aexit__(kind, error, traceback)
        except aiomqtt.MqttError:
            # The error that ended the block is more informative, and a cancellation must not be replaced.
            if kind is None:
                raise

    async def wait_lost(self) -> None:
        """Passes on messages until the connection is lost."""
        try:
            # aiomqtt's queue stays short: the loop never waits for anything else.
            async for message in self._client.messages:
                self._on_messages([_received(message)])
        finally:
            self._is_lost = True

    @property
    def is_lost(self) -> bool:
        return self._is_lost

    async def subscribe_to_devices(self, filters: Iterable[str], qos: int, *, is_version_5: bool) -> None:
        await subscribe_to_devices(self._client, filters, qos, is_version_5=is_version_5)

    async def subscribe_to_requests(self, prefix: str) -> None:
        await subscribe_to_requests(self._client, prefix)

    def send(self, topic: bytes, payload: bytes, qos: int, properties: bytes) -> None:
        if self._is_lost:
            raise aiomqtt.MqttError("the connection is lost")
        # Tasks start in the order of their creation, so messages keep their order.
        task = asyncio.create_task(self._publish(topic, payload, qos, properties))
        self._unconfirmed.add(task)
        task.add_done_callback(self._finished)

    async def send_and_wait(self, topic: bytes, payload: bytes, properties: bytes) -> None:
        await self._publish(topic, payload, 1, properties)

    async def _publish(self, topic: bytes, payload: bytes, qos: int, properties: bytes) -> None:
        text = topic[2:].decode()
        try:
            await self._client.publish(text, payload, qos, properties=_unpacked(properties), timeout=math.inf)
        except ValueError as error:
            # paho refuses the message. The gateway drops a delivery that fails repeatedly.
            raise aiomqtt.MqttError(f"cannot publish to {text!r}: {error}") from error

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._unconfirmed.discard(task)
        if not task.cancelled():
            self._error = self._error or task.exception()
        self._has_progress.set()

    @property
    def is_full(self) -> bool:
        return len(self._unconfirmed) >= self.most_in_flight

    async def wait_unconfirmed(self, at_most: int) -> None:
        while self._error is None and len(self._unconfirmed) > at_most:
            self._has_progress.clear()
            await self._has_progress.wait()
        if self._error is not None:
            raise self._error

    def acknowledge(self, ids: list[int]) -> None:
        """Never called: aiomqtt has acknowledged all messages, so they are passed on as messages of QoS 0."""
        raise AssertionError(f"messages {ids} are acknowledged already")


def _received(message: aiomqtt.Message) -> Message:
    """Converts a message. Its QoS is 0, because the gateway cannot acknowledge it any more."""
    payload = message.payload
    assert isinstance(payload, bytes)
    pairs: list[tuple[str, str]] = getattr(message.properties, "UserProperty", [])
    return Message(str(message.topic), payload, 0, message.retain, 0, pairs)


def _unpacked(properties: bytes) -> Properties | None:
    if not properties:
        return None
    unpacked = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
    unpacked.unpack(properties)  # type: ignore[no-untyped-call]
    return unpacked
