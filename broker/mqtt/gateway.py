"""A gateway: a client of the broker and a client of an MQTT broker. It reconnects each of them after a loss."""

from __future__ import annotations

import asyncio
import secrets
import ssl
from collections.abc import Iterable
from functools import partial
from random import Random

import aiomqtt

from broker.client.client import Client, connect
from broker.client.errors import ClientError
from broker.client.subscription import Subscription
from broker.client.validation import TEXT_BYTES
from broker.config.gateway_config import GatewayConfig, gateway_client
from broker.config.topic_template import minimal_filters
from broker.core.settings import SECOND
from broker.log import Log
from broker.mqtt.counters import GatewayCounters, GatewayStatus
from broker.mqtt.fast_path.client import FastMqttClient
from broker.mqtt.fast_path.packets import Message
from broker.mqtt.fast_path.private_members import check_private_members
from broker.mqtt.fast_path.properties import packed_text
from broker.mqtt.inbound import Inbound
from broker.mqtt.mqtt_client import MqttClient, check_files
from broker.mqtt.outbound import WINDOW, Outbound
from broker.mqtt.plain_client import PlainMqttClient
from broker.mqtt.requested_subscriptions import RequestedSubscriptions

BROKER_RETRY_S = 1.0
"""The pause before the gateway reconnects to a broker that refused it."""
CHECK_EVERY_S = 2.0


class Gateway:
    """One gateway. `run` runs it until it is cancelled."""

    def __init__(
        self,
        config: GatewayConfig,
        servers: str | Iterable[str],
        *,
        is_durable: bool = False,
        longest_text: int = TEXT_BYTES,
        token: str = "",
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """`servers` are the broker's addresses. `is_durable`: it keeps deliveries for a disconnected gateway."""
        check_files(config.table)
        if config.table.fast_path:
            check_private_members()
        self._config = config
        self._servers = servers if isinstance(servers, str) else list(servers)
        self._is_durable = is_durable
        self._token = token
        self._tls = tls
        self._log = Log(config.broker)
        self._random = Random(secrets.randbits(64))
        self._counts = GatewayCounters(self._log)
        self._outbound = Outbound(config, self._counts)
        self._inbound = Inbound(config, self._counts)
        self._requested = RequestedSubscriptions(config, longest_text, self._counts, self._outbound.queue_error)
        self._prefixes = config.table.prefixes
        self._mqtt: MqttClient | None = None

    def status(self) -> GatewayStatus:
        """The state of both connections, and the gateway's counters."""
        counts, table = self._counts, self._config.table
        return GatewayStatus(
            mqtt=f"{table.host}:{table.port}",
            is_connected=self._mqtt is not None,
            is_synchronised=self._mqtt is not None and self._requested.is_synchronised,
            connections=counts.connections,
            names=self._requested.names,
            changes_waiting=self._requested.changes_waiting,
            waiting=self._inbound.waiting,
            unanswered=self._inbound.unanswered,
            taken=counts.accepted,
            delivered=counts.delivered,
            drops=dict(counts.drops),
            left_out=dict(self._inbound.mapping.left_out),
            errors_told=counts.errors_published,
        )

    async def run(self) -> None:
        """Runs the gateway until it is cancelled. Connects again after its broker is lost."""
        while True:
            try:
                await self._run_with_broker()
            except* ClientError as group:
                self._log.error("mqtt gateway lost its broker", error=str(group.exceptions[0]))
            self._outbound.clear()
            await asyncio.sleep(BROKER_RETRY_S)

    async def _run_with_broker(self) -> None:
        client = connect(
            self._servers,
            name=gateway_client(self._config.broker),
            token=self._token,
            tls=self._tls,
            durable=self._is_durable,
            window=WINDOW,
            timeout=None,
        )
        async with client, client.subscribe({}) as stream, asyncio.TaskGroup() as tasks:
            tasks.create_task(self._inbound.publish_to(client, partial(self._outbound.is_lagging, stream)))
            tasks.create_task(self._requested.apply_to(stream))
            tasks.create_task(self._stay_connected(stream))
            tasks.create_task(self._unsubscribe_unrequested(client))

    async def _unsubscribe_unrequested(self, client: Client) -> None:
        """Removes a durable broker's subscriptions that MQTT clients withdrew while the gateway was disconnected."""
        while True:
            await asyncio.sleep(CHECK_EVERY_S)
            if self._mqtt is not None and self._requested.is_synchronised:
                for name in client.unclaimed:
                    if name not in self._requested:
                        self._log.info("mqtt subscription ended", name=name, reason="withdrawn while away")
                        await client.unsubscribe(name)

    async def _stay_connected(self, stream: Subscription) -> None:
        """Connects to the MQTT broker, and reconnects with growing pauses."""
        table = self._config.table
        pause: int = table.redial_first
        while True:
            connections = self._counts.connections
            try:
                await self._run_with_mqtt(stream)
            except* aiomqtt.MqttError as group:
                self._log.warning("mqtt broker lost", mqtt=f"{table.host}:{table.port}", error=_innermost(group))
            self._mqtt = None
            if self._counts.connections > connections:
                pause = table.redial_first
            await asyncio.sleep(pause / SECOND * self._random.uniform(0.5, 1.5))
            pause = min(2 * pause, table.redial_at_most)

    async def _run_with_mqtt(self, stream: Subscription) -> None:
        table = self._config.table
        mqtt: MqttClient = (FastMqttClient if table.fast_path else PlainMqttClient)(
            self._config,
            lambda is_resumed: self._inbound.connected(mqtt, is_resumed=is_resumed),
            lambda messages: self._messages_received(mqtt, messages),
            self._message_refused,
        )
        async with mqtt, asyncio.TaskGroup() as tasks:
            tasks.create_task(mqtt.wait_lost())
            marker = secrets.token_hex(8).encode()
            self._requested.begin_sync(marker)
            filters = minimal_filters(table.topics)
            await mqtt.subscribe_to_devices(filters, table.qos, is_version_5=table.is_version_5)
            await mqtt.subscribe_to_requests(table.subscribe)
            await mqtt.send_and_wait(packed_text(table.subscribe), marker, self._outbound.mark)
            self._mqtt = mqtt
            self._counts.connections += 1
            self._log.info("mqtt broker connected", mqtt=f"{table.host}:{table.port}", topics=filters)
            tasks.create_task(self._outbound.deliver(stream, mqtt))
            tasks.create_task(self._outbound.publish_errors(mqtt))

    def _messages_received(self, mqtt: MqttClient, messages: list[Message]) -> None:
        subscribe = self._prefixes.subscribe
        for message in messages:
            # Most messages are from devices. The prefix check recognises them fast.
            name = self._prefixes.subscription_name(message.topic) if message.topic.startswith(subscribe) else None
            if name is None:
                self._inbound.receive(mqtt, message)
            else:
                self._requested.receive_request(name, message.payload)
                self._inbound.acknowledge(mqtt, message)
        self._inbound.wake_publisher()

    def _message_refused(self, topic: bytes, reason: int) -> None:
        detail = f"{topic[2:].decode()!r}: the MQTT broker does not take it, for reason {reason:#x}"
        self._counts.dropped("undeliverable", detail)


def _innermost(group: BaseExceptionGroup[BaseException]) -> str:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error.__cause__ or error)
