"""Sends deliveries and errors as MQTT messages.

After a reconnect the gateway first resends the deliveries that the MQTT broker had not acknowledged. Only then does it
receive more from the broker. Meanwhile publications wait at the broker, within its limits.
"""

from __future__ import annotations

import asyncio

import msgpack

from broker.client.subscription import Publication, Subscription
from broker.config.gateway_config import GatewayConfig
from broker.mqtt.counters import GatewayCounters
from broker.mqtt.fast_path.properties import PropertyPacker, packed_text
from broker.mqtt.mapping import as_json
from broker.mqtt.mqtt_client import MqttClient
from matching.expressions.values import Value

WINDOW = 2_048
"""The number of deliveries that the broker sends without an acknowledgement."""
FAILURES_BEFORE_ONE_BY_ONE = 2
FAILURES_BEFORE_DROP = 5


class Outbound:
    def __init__(self, config: GatewayConfig, counts: GatewayCounters) -> None:
        self._table = config.table
        self._prefixes = config.table.prefixes
        self._packer = PropertyPacker(config.identifier)
        self.mark = self._packer.mark() if config.table.is_version_5 else b""
        """User properties of messages that are not deliveries."""
        self._topics: dict[str, bytes] = {}
        self._counts = counts
        self._undelivered: list[tuple[str, Publication]] = []
        self._in_flight = 0
        self._failures = 0
        self._one_by_one = 0
        self._errors: dict[str, str] = {}
        self._has_errors = asyncio.Event()

    def queue_error(self, name: str, text: str) -> None:
        if name not in self._errors and len(self._errors) >= self._table.names:
            self._counts.dropped("errors-full", f"{name!r}: {text}")
            return
        self._errors[name] = text
        self._has_errors.set()

    def is_lagging(self, stream: Subscription) -> bool:
        """Whether the window to the gateway is almost full, so that deliveries wait at the broker."""
        return self._in_flight + len(stream) > WINDOW * 3 // 4

    def clear(self) -> None:
        """Drops unsent deliveries, after the client that received them was closed."""
        self._undelivered.clear()
        self._in_flight = self._failures = self._one_by_one = 0

    async def deliver(self, stream: Subscription, mqtt: MqttClient) -> None:
        """Sends deliveries until the connection is lost."""
        self._count_failure()
        while True:
            if not self._undelivered:
                self._in_flight = 0
                publications = await stream.receive_batch()
                self._in_flight = len(publications)
                if not publications:
                    return
                # Withdrawn subscriptions may have matched too, while the gateway was disconnected.
                names = stream.expressions
                self._undelivered = [
                    (name, each) for each in publications for name in each.subscriptions if name in names
                ]
            size = 1 if self._one_by_one else self._table.in_flight
            refusals = mqtt.refusals
            batch, rest = self._undelivered[:size], self._undelivered[size:]
            for name, each in batch:
                if mqtt.is_full:
                    await mqtt.wait_unconfirmed(mqtt.most_in_flight // 2)
                self._send(mqtt, name, each)
            await mqtt.wait_unconfirmed(0)
            self._counts.delivered += len(batch) - (mqtt.refusals - refusals)
            self._undelivered = rest
            self._failures = 0
            self._one_by_one = max(0, self._one_by_one - 1)

    def _count_failure(self) -> None:
        """Drops a delivery over which the MQTT broker ends every connection, for example one that is too large."""
        if not self._undelivered:
            return
        self._failures += 1
        if self._failures >= FAILURES_BEFORE_ONE_BY_ONE:
            self._one_by_one = len(self._undelivered)
        if self._failures >= FAILURES_BEFORE_DROP:
            name, publication = self._undelivered.pop(0)
            detail = f"{name!r}: {FAILURES_BEFORE_DROP} connections were lost over publication {publication.id}"
            self._counts.dropped("undeliverable", detail)
            self._failures = 0

    def _send(self, mqtt: MqttClient, name: str, publication: Publication) -> None:
        payload = publication.payload
        properties = self.mark
        if not payload or (self._table.is_version_5 and self._table.deliver_attributes):
            # No check is needed: the broker has checked them.
            attributes: dict[str, Value] = msgpack.unpackb(publication.packed_attributes)
            if not payload and self._table.topic_attribute not in attributes:
                payload = as_json(attributes)
            if self._table.is_version_5 and self._table.deliver_attributes:
                properties = self._packer.pack(attributes)
        topic = self._topics.get(name)
        if topic is None:
            if len(self._topics) >= self._table.names:
                self._topics.clear()
            topic = self._topics[name] = packed_text(self._prefixes.delivery_topic(name))
        mqtt.send(topic, payload, self._table.deliver_qos, properties)

    async def publish_errors(self, mqtt: MqttClient) -> None:
        while True:
            while self._errors:
                name, text = next(iter(self._errors.items()))
                await mqtt.send_and_wait(packed_text(self._prefixes.error_topic(name)), text.encode(), self.mark)
                if self._errors.get(name) == text:
                    del self._errors[name]
                self._counts.errors_published += 1
            self._has_errors.clear()
            await self._has_errors.wait()
