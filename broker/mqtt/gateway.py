"""A gateway: a client of the broker and a client of an MQTT broker, each of them connected again when it was lost."""

from __future__ import annotations

import asyncio
import math
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
from broker.config.gateway_config import GatewayConfig
from broker.config.topic_template import needed_filters
from broker.core.settings import SECOND
from broker.log import Log
from broker.mqtt.counters import GatewayCounters, GatewayStatus
from broker.mqtt.fast_path.packets import Message
from broker.mqtt.fast_path.properties import packed_text
from broker.mqtt.inbound import Inbound
from broker.mqtt.mqtt_client import MqttClient, check_files
from broker.mqtt.outbound import WINDOW, Outbound
from broker.mqtt.requested_subscriptions import RequestedSubscriptions

BROKER_AGAIN_S = 1.0
"""The wait before a broker that would not have the gateway is asked again."""
LOOK_EVERY_S = 2.0


class Gateway:
    """`run` until it is cancelled."""

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
        """`servers` is where the broker listens; with `is_durable` it keeps deliveries for a gateway that is away."""
        check_files(config.table)
        self._config = config
        self._servers = servers if isinstance(servers, str) else list(servers)
        self._is_durable = is_durable
        self._token = token
        self._tls = tls
        self._log = Log(config.broker)
        self._random = Random(secrets.randbits(64))
        self._counts = GatewayCounters(self._log)
        self._outflow = Outbound(config, self._counts)
        self._intake = Inbound(config, self._counts)
        self._asked = RequestedSubscriptions(config, longest_text, self._counts, self._outflow.tell_error)
        self._prefixes = config.table.prefixes
        self._mqtt: MqttClient | None = None

    def status(self) -> GatewayStatus:
        counts, table = self._counts, self._config.table
        return GatewayStatus(
            mqtt=f"{table.host}:{table.port}",
            is_connected=self._mqtt is not None,
            is_synchronised=self._mqtt is not None and self._asked.is_synchronised,
            connections=counts.connections,
            names=self._asked.names,
            changes_waiting=self._asked.changes_waiting,
            waiting=self._intake.waiting,
            unanswered=self._intake.unanswered,
            taken=counts.taken,
            delivered=counts.delivered,
            drops=dict(counts.drops),
            left_out=dict(self._intake.mapping.left_out),
            errors_told=counts.errors_told,
        )

    async def run(self) -> None:
        while True:
            try:
                await self._run_with_broker()
            except* ClientError as group:
                self._log.error("mqtt gateway lost its broker", error=str(group.exceptions[0]))
            self._outflow.forget()
            await asyncio.sleep(BROKER_AGAIN_S)

    async def _run_with_broker(self) -> None:
        client = connect(
            self._servers,
            name=f"mqtt-gateway-{self._config.broker}",
            token=self._token,
            tls=self._tls,
            durable=self._is_durable,
            window=WINDOW,
            timeout=None,
        )
        async with client, client.subscribe({}) as stream, asyncio.TaskGroup() as tasks:
            tasks.create_task(self._intake.publish_to(client, partial(self._outflow.is_lagging, stream)))
            tasks.create_task(self._asked.enter_into(stream))
            tasks.create_task(self._stay_connected(stream))
            tasks.create_task(self._end_what_nobody_asks_for(client))

    async def _end_what_nobody_asks_for(self, client: Client) -> None:
        """A durable broker knows subscriptions from before a restart; some may have been withdrawn meanwhile."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            if self._mqtt is not None and self._asked.is_synchronised:
                for name in client.unclaimed:
                    if name not in self._asked:
                        self._log.info("mqtt subscription ended", name=name, reason="withdrawn while away")
                        await client.unsubscribe(name)

    async def _stay_connected(self, stream: Subscription) -> None:
        """Dials the MQTT broker, and again with growing pauses when it is lost."""
        table = self._config.table
        pause = table.redial_first
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
        mqtt = MqttClient(
            self._config,
            lambda is_resumed: self._intake.connected(mqtt, is_resumed=is_resumed),
            lambda messages: self._arrived(mqtt, messages),
            self._refused,
        )
        async with mqtt, asyncio.TaskGroup() as tasks:
            tasks.create_task(mqtt.until_lost())
            marker = secrets.token_hex(8).encode()
            self._asked.expect(marker)
            filters = needed_filters(table.topics)
            await mqtt.subscribe_to_devices(filters, table.qos, is_version_5=table.is_version_5)
            # The MQTT broker tells all subscriptions before it answers, and there may be thousands.
            await mqtt.subscribe(f"{table.subscribe}/#", 1, timeout=math.inf)
            await mqtt.send_and_wait(packed_text(table.subscribe), marker, self._outflow.mark)
            self._mqtt = mqtt
            self._counts.connections += 1
            self._log.info("mqtt broker connected", mqtt=f"{table.host}:{table.port}", topics=filters)
            tasks.create_task(self._outflow.deliver(stream, mqtt))
            tasks.create_task(self._outflow.tell_errors(mqtt))

    def _arrived(self, mqtt: MqttClient, messages: list[Message]) -> None:
        subscribe = self._prefixes.subscribe
        for message in messages:
            # Most are devices', and one look shows it.
            name = self._prefixes.subscription_of(message.topic) if message.topic.startswith(subscribe) else None
            if name is None:
                self._intake.take(mqtt, message)
            else:
                self._asked.told(name, message.payload)
                self._intake.settle(mqtt, message)
        self._intake.taken()

    def _refused(self, topic: bytes, reason: int) -> None:
        detail = f"{topic[2:].decode()!r}: the MQTT broker does not take it, for reason {reason:#x}"
        self._counts.dropped("undeliverable", detail)


def _innermost(group: BaseExceptionGroup[BaseException]) -> str:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error.__cause__ or error)
