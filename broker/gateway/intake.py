"""From MQTT messages to publications, in order, bounded, acknowledged when the broker answers for them.

A QoS 1 message is acknowledged when the broker has accepted or refused it, in the order of arrival, as MQTT wants it.
The MQTT broker sends no more of them than may wait here. QoS 0 messages beyond that are dropped and counted.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial

import aiomqtt
import msgpack

from broker.client.client import Client
from broker.client.errors import ClosedError, RefusedError
from broker.gateway.config import GatewayConfig
from broker.gateway.counts import Counts
from broker.gateway.mapping import MessageMapping
from broker.gateway.mqtt_client import MqttClient, properties_of
from routing.messages import PublicationId

LOOK_AGAIN_S = 0.005


class Arrival:
    """A message that is not acknowledged yet; a QoS 0 message never is."""

    __slots__ = ("id", "is_done", "mqtt", "qos")

    def __init__(self, mqtt: MqttClient, message: aiomqtt.Message) -> None:
        self.mqtt = mqtt
        self.id = message.mid
        self.qos = message.qos
        self.is_done = False


class Intake:
    def __init__(self, config: GatewayConfig, counts: Counts) -> None:
        table = config.table
        self.mapping = MessageMapping(
            table.topics,
            topic_attribute=table.topic_attribute,
            properties=table.user_properties,
            excluded=config.never,
        )
        self._counts = counts
        self._most = table.intake
        self._waiting: deque[tuple[Arrival, bytes, bytes]] = deque()
        self._unacknowledged: deque[Arrival] = deque()
        self._unanswered = 0
        self._arrived = asyncio.Event()
        self._mqtt: MqttClient | None = None

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def unanswered(self) -> int:
        return self._unanswered

    def connected(self, mqtt: MqttClient) -> None:
        """A new connection: the MQTT broker sends again what was not acknowledged on the one before."""
        self._mqtt = mqtt
        self._unacknowledged.clear()

    def take(self, mqtt: MqttClient, message: aiomqtt.Message) -> None:
        arrival = self._arrival(mqtt, message)
        if message.retain:
            self._drop(arrival, "retained", f"{message.topic.value!r} is a state of the past, not an event")
            return
        if not arrival.qos and len(self._waiting) + self._unanswered >= self._most:
            self._drop(arrival, "intake-full", f"{self._most} messages wait for the broker; QoS 1 would hold them back")
            return
        taken = self.mapping.take(message.topic.value, message.payload, properties_of(message))
        if taken.attributes is None:
            self._drop(arrival, taken.reason, taken.detail)
            return
        self._waiting.append((arrival, msgpack.packb(taken.attributes), message.payload))
        self._arrived.set()

    def settle(self, mqtt: MqttClient, message: aiomqtt.Message) -> None:
        """A message that is no publication: acknowledged in its turn."""
        self._finish(self._arrival(mqtt, message))

    def _arrival(self, mqtt: MqttClient, message: aiomqtt.Message) -> Arrival:
        arrival = Arrival(mqtt, message)
        if arrival.qos:
            self._unacknowledged.append(arrival)
        return arrival

    def _drop(self, arrival: Arrival, reason: str, detail: str) -> None:
        self._counts.dropped(reason, detail)
        self._finish(arrival)

    async def publish_to(self, client: Client, is_lagging: Callable[[], bool]) -> None:
        """Hands everything that arrives to the broker; many are on their way at once.

        While deliveries lag, nothing more is handed over: the broker would have to drop what it cannot deliver, and
        the MQTT broker can hold back what is not acknowledged.
        """
        waiting = self._waiting
        while True:
            while waiting:
                while is_lagging():
                    await asyncio.sleep(LOOK_AGAIN_S)
                arrival, attributes, payload = waiting[0]
                try:
                    answer = await client.publish_packed(attributes, payload)
                except RefusedError as error:
                    waiting.popleft()
                    self._drop(arrival, f"refused-{error.reason}", str(error))
                    continue
                waiting.popleft()
                self._unanswered += 1
                answer.add_done_callback(partial(self._answered, arrival))
            self._arrived.clear()
            await self._arrived.wait()

    def _answered(self, arrival: Arrival, answer: asyncio.Future[PublicationId | None]) -> None:
        self._unanswered -= 1
        if answer.cancelled():
            return
        match answer.exception():
            case None:
                self._counts.taken += 1
                self._finish(arrival)
            case RefusedError() as error:
                self._drop(arrival, f"refused-{error.reason}", str(error))
            case ClosedError():
                # Not acknowledged: the MQTT broker keeps it for the next start.
                pass
            case error:
                self._counts.dropped("no-answer", str(error))

    def _finish(self, arrival: Arrival) -> None:
        arrival.is_done = True
        unacknowledged = self._unacknowledged
        while unacknowledged and unacknowledged[0].is_done:
            first = unacknowledged.popleft()
            if first.mqtt is self._mqtt:
                first.mqtt.acknowledge(first.id, first.qos)
