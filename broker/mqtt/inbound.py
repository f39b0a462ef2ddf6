"""From MQTT messages to publications, in order, bounded, acknowledged when the broker answers for them.

A QoS 1 message is acknowledged when the broker has accepted or refused it, in the order of arrival, as MQTT wants it.
The MQTT broker sends no more of them than may wait here. QoS 0 messages beyond that are dropped and counted.

When an MQTT connection was made again, the MQTT broker sends again, under the same numbers, what was not acknowledged.
What is here already, waiting or on its way to the broker, is recognised and not taken in a second time. What the MQTT
broker does not send again, because it has lost the session or a part of it, is published all the same. QoS 2 is never
asked for.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

import msgpack

from broker.client.client import Client
from broker.client.errors import ClosedError, RefusedError
from broker.config.gateway_config import GatewayConfig
from broker.mqtt.counters import GatewayCounters
from broker.mqtt.fast_path.packets import Message
from broker.mqtt.mapping import MessageMapping
from broker.mqtt.mqtt_client import MqttClient
from routing.messages import PublicationId

LOOK_AGAIN_S = 0.005
AT_ONCE = 64
"""Publications that are handed over before it is looked again whether deliveries lag."""


class Arrival:
    """A message that is not acknowledged yet, and hears what becomes of its publication."""

    __slots__ = ("_intake", "id", "is_done", "is_given_up", "is_waiting", "message", "mqtt")

    def __init__(self, intake: Inbound, mqtt: MqttClient, message: Message) -> None:
        self.mqtt = mqtt
        self.message = message
        self.id = message.id
        """0 when it is never acknowledged: at QoS 0, or because the MQTT broker has it no more."""
        self.is_waiting = False
        self.is_done = False
        self.is_given_up = False
        """Nobody is going to answer for its publication."""
        self._intake = intake

    def is_of(self, message: Message) -> bool:
        """Is this the same message, that comes again under its number?"""
        if self.message.topic != message.topic or self.message.payload != message.payload:
            return False
        # MQTT brokers mark what they repeat. The number of a message that waits here is in use, so that it is the same
        # without the mark too; that of one that was passed on may be another's by now.
        return self.is_waiting or (message.is_repeated and not self.is_given_up)

    def done(self) -> bool:
        return self.is_done

    def set_result(self, result: PublicationId | None, /) -> None:
        self._intake.accepted(self)

    def set_exception(self, exception: BaseException, /) -> None:
        self._intake.not_accepted(self, exception)


class Inbound:
    def __init__(self, config: GatewayConfig, counts: GatewayCounters) -> None:
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
        self._expected: dict[int, Arrival] = {}
        """What was not acknowledged when a connection broke, until the MQTT broker sends it again; by its number."""
        self._unanswered = 0
        self._arrived = asyncio.Event()
        self._mqtt: MqttClient | None = None

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def unanswered(self) -> int:
        return self._unanswered

    def connected(self, mqtt: MqttClient, *, is_resumed: bool = True) -> None:
        """A new connection. When the session is resumed, the MQTT broker sends again what was not acknowledged."""
        self._mqtt = mqtt
        if is_resumed:
            self._expected.update((each.id, each) for each in self._unacknowledged)
        else:
            self._expected.clear()
            for arrival, _, _ in self._waiting:
                arrival.id = 0
        self._unacknowledged.clear()
        self._drop_what_is_too_much()

    def _drop_what_is_too_much(self) -> None:
        """Of what the MQTT broker has lost: it may lose its session again and again while nothing is taken in here."""
        if len(self._waiting) <= self._most:
            return
        waiting, room = list(self._waiting), self._most
        self._waiting.clear()
        for each in waiting:
            arrival = each[0]
            if arrival.id or room:
                self._waiting.append(each)
                room -= not arrival.id
            else:
                detail = f"{arrival.message.topic!r}: {self._most} messages wait that the MQTT broker has no more"
                self._counts.dropped("intake-full", detail)

    def _comes_again(self, mqtt: MqttClient, message: Message) -> bool:
        """Is it here already? Then it is acknowledged on this connection."""
        arrival = self._expected.pop(message.id, None)
        if arrival is None:
            return False
        if not arrival.is_of(message):
            arrival.id = 0
            return False
        arrival.mqtt = mqtt
        self._unacknowledged.append(arrival)
        if arrival.is_done:
            self._finish(arrival)
        return True

    def take(self, mqtt: MqttClient, message: Message) -> None:
        if self._expected and message.qos and self._comes_again(mqtt, message):
            return
        arrival = self._arrival(mqtt, message)
        if message.is_retained:
            self._drop(arrival, "retained", f"{message.topic!r} is a state of the past, not an event")
            return
        if not message.qos and len(self._waiting) + self._unanswered >= self._most:
            self._drop(arrival, "intake-full", f"{self._most} messages wait for the broker; QoS 1 would hold them back")
            return
        taken = self.mapping.take(message.topic, message.payload, message.properties)
        if taken.attributes is None:
            self._drop(arrival, taken.reason, taken.detail)
            return
        arrival.is_waiting = True
        self._waiting.append((arrival, msgpack.packb(taken.attributes), message.payload))

    def taken(self) -> None:
        """All messages that arrived together were taken."""
        if self._waiting:
            self._arrived.set()

    def settle(self, mqtt: MqttClient, message: Message) -> None:
        """A message that is no publication: acknowledged in its turn."""
        self._finish(self._arrival(mqtt, message))

    def _arrival(self, mqtt: MqttClient, message: Message) -> Arrival:
        arrival = Arrival(self, mqtt, message)
        if message.qos:
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
                await client.wait_for_room()
                self._publish_some(client)
            self._arrived.clear()
            await self._arrived.wait()

    def _publish_some(self, client: Client) -> None:
        waiting = self._waiting
        for _ in range(min(len(waiting), AT_ONCE)):
            arrival, attributes, payload = waiting[0]
            try:
                if not client.publish_now(arrival, attributes, payload):
                    return
            except RefusedError as error:
                waiting.popleft()
                arrival.is_waiting = False
                self._drop(arrival, f"refused-{error.reason}", str(error))
                continue
            waiting.popleft()
            arrival.is_waiting = False
            self._unanswered += 1

    def accepted(self, arrival: Arrival) -> None:
        self._unanswered -= 1
        self._counts.taken += 1
        self._finish(arrival)

    def not_accepted(self, arrival: Arrival, error: BaseException) -> None:
        self._unanswered -= 1
        if isinstance(error, RefusedError):
            self._drop(arrival, f"refused-{error.reason}", str(error))
            return
        arrival.is_given_up = True
        if not isinstance(error, ClosedError):
            self._counts.dropped("no-answer", str(error))
        # When the client was closed it is not acknowledged: the MQTT broker keeps it for the next start.

    def _finish(self, arrival: Arrival) -> None:
        arrival.is_done = True
        unacknowledged = self._unacknowledged
        if not unacknowledged or not unacknowledged[0].is_done:
            return
        if self._mqtt is None or self._mqtt.is_lost:
            # They come again, and are acknowledged then.
            return
        ids: list[int] = []
        while unacknowledged and unacknowledged[0].is_done:
            first = unacknowledged.popleft()
            if first.mqtt is self._mqtt:
                ids.append(first.id)
        if ids:
            self._mqtt.acknowledge(ids)
