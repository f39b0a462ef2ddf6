"""Publishes MQTT messages in order, with a bounded queue, and acknowledges them when the broker has answered.

A QoS 1 message is acknowledged when the broker has accepted or refused it, in the order of arrival, as MQTT requires.
The MQTT broker sends at most as many unacknowledged messages as the queue has room for. QoS 0 messages beyond that are
dropped and counted.

After a reconnect the MQTT broker resends unacknowledged messages under the same ids. A message that is still queued or
in flight to the broker is recognised, and not published twice. If the MQTT broker does not resend a message, because it
lost the session or part of it, the gateway still publishes the message. The gateway never subscribes with QoS 2.
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

CHECK_AGAIN_S = 0.005
BATCH = 64
"""The number of publications between two checks whether deliveries lag."""


class Arrival:
    """A message without an acknowledgement. Receives the broker's answer to its publication."""

    __slots__ = ("_inbound", "id", "is_abandoned", "is_done", "is_waiting", "message", "mqtt")

    def __init__(self, inbound: Inbound, mqtt: MqttClient, message: Message) -> None:
        self.mqtt = mqtt
        self.message = message
        self.id = message.id
        """0 if it is never acknowledged: at QoS 0, or because the MQTT broker has lost it."""
        self.is_waiting = False
        self.is_done = False
        self.is_abandoned = False
        """Its publication will not be answered."""
        self._inbound = inbound

    def is_same_message(self, message: Message) -> bool:
        """Whether `message` is this message, sent again under its id."""
        if self.message.topic != message.topic or self.message.payload != message.payload:
            return False
        # MQTT brokers mark repeated messages. The id of a queued message is in use, so the message is the same even
        # without the mark. The id of a message that was sent to the broker may belong to another message by now.
        return self.is_waiting or (message.is_repeated and not self.is_abandoned)

    def done(self) -> bool:
        return self.is_done

    def set_result(self, result: PublicationId | None, /) -> None:
        self._inbound.accepted(self)

    def set_exception(self, exception: BaseException, /) -> None:
        self._inbound.not_accepted(self, exception)


class Inbound:
    def __init__(self, config: GatewayConfig, counts: GatewayCounters) -> None:
        table = config.table
        self.mapping = MessageMapping(
            table.topics,
            topic_attribute=table.topic_attribute,
            properties=table.user_properties,
            excluded=config.excluded,
        )
        self._counts = counts
        self._limit = table.intake
        self._waiting: deque[tuple[Arrival, bytes, bytes]] = deque()
        self._unacknowledged: deque[Arrival] = deque()
        self._expected: dict[int, Arrival] = {}
        """Unacknowledged messages of a broken connection that the MQTT broker has not resent yet, by id."""
        self._unanswered = 0
        self._has_messages = asyncio.Event()
        self._mqtt: MqttClient | None = None

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def unanswered(self) -> int:
        return self._unanswered

    def connected(self, mqtt: MqttClient, *, is_resumed: bool = True) -> None:
        """Starts a new connection. If the session is resumed, the MQTT broker resends unacknowledged messages."""
        self._mqtt = mqtt
        if is_resumed:
            self._expected.update((each.id, each) for each in self._unacknowledged)
        else:
            self._expected.clear()
            for arrival, _, _ in self._waiting:
                arrival.id = 0
        self._unacknowledged.clear()
        self._drop_excess()

    def _drop_excess(self) -> None:
        """Drops queued messages beyond the limit.

        They accumulate if the MQTT broker loses its session repeatedly while the broker accepts none.
        """
        if len(self._waiting) <= self._limit:
            return
        waiting, room = list(self._waiting), self._limit
        self._waiting.clear()
        for each in waiting:
            arrival = each[0]
            if arrival.id or room:
                self._waiting.append(each)
                room -= not arrival.id
            else:
                detail = f"{arrival.message.topic!r}: {self._limit} messages wait that the MQTT broker has no more"
                self._counts.dropped("intake-full", detail)

    def _skip_duplicate(self, mqtt: MqttClient, message: Message) -> bool:
        """Acknowledges a duplicate on this connection. Returns whether the message is one."""
        arrival = self._expected.pop(message.id, None)
        if arrival is None:
            return False
        if not arrival.is_same_message(message):
            arrival.id = 0
            return False
        arrival.mqtt = mqtt
        self._unacknowledged.append(arrival)
        if arrival.is_done:
            self._finish(arrival)
        return True

    def receive(self, mqtt: MqttClient, message: Message) -> None:
        if self._expected and message.qos and self._skip_duplicate(mqtt, message):
            return
        arrival = self._add_arrival(mqtt, message)
        if message.is_retained:
            self._drop(arrival, "retained", f"{message.topic!r} is a state of the past, not an event")
            return
        if not message.qos and len(self._waiting) + self._unanswered >= self._limit:
            detail = f"{self._limit} messages wait for the broker; QoS 1 would hold them back"
            self._drop(arrival, "intake-full", detail)
            return
        mapped = self.mapping.map(message.topic, message.payload, message.properties)
        if mapped.attributes is None:
            self._drop(arrival, mapped.reason, mapped.detail)
            return
        arrival.is_waiting = True
        self._waiting.append((arrival, msgpack.packb(mapped.attributes), message.payload))

    def wake_publisher(self) -> None:
        """Wakes `publish_to`. Called once for all messages that arrive together."""
        if self._waiting:
            self._has_messages.set()

    def acknowledge(self, mqtt: MqttClient, message: Message) -> None:
        """Acknowledges a message that is not published, in the order of arrival."""
        self._finish(self._add_arrival(mqtt, message))

    def _add_arrival(self, mqtt: MqttClient, message: Message) -> Arrival:
        arrival = Arrival(self, mqtt, message)
        if message.qos:
            self._unacknowledged.append(arrival)
        return arrival

    def _drop(self, arrival: Arrival, reason: str, detail: str) -> None:
        self._counts.dropped(reason, detail)
        self._finish(arrival)

    async def publish_to(self, client: Client, is_lagging: Callable[[], bool]) -> None:
        """Publishes all messages. Many are in flight at once.

        Publishing pauses while deliveries lag: the broker would have to drop deliveries, but the MQTT broker can hold
        back messages.
        """
        waiting = self._waiting
        while True:
            while waiting:
                while is_lagging():
                    await asyncio.sleep(CHECK_AGAIN_S)
                await client.wait_for_room()
                self._publish_some(client)
            self._has_messages.clear()
            await self._has_messages.wait()

    def _publish_some(self, client: Client) -> None:
        waiting = self._waiting
        for _ in range(min(len(waiting), BATCH)):
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
        self._counts.accepted += 1
        self._finish(arrival)

    def not_accepted(self, arrival: Arrival, error: BaseException) -> None:
        self._unanswered -= 1
        if isinstance(error, RefusedError):
            self._drop(arrival, f"refused-{error.reason}", str(error))
            return
        arrival.is_abandoned = True
        if not isinstance(error, ClosedError):
            self._counts.dropped("no-answer", str(error))
        # After a ClosedError the message is not acknowledged: the MQTT broker keeps it for the next start.

    def _finish(self, arrival: Arrival) -> None:
        arrival.is_done = True
        unacknowledged = self._unacknowledged
        if not unacknowledged or not unacknowledged[0].is_done:
            return
        if self._mqtt is None or self._mqtt.is_lost:
            # The MQTT broker resends them, and they are acknowledged then.
            return
        ids: list[int] = []
        while unacknowledged and unacknowledged[0].is_done:
            first = unacknowledged.popleft()
            if first.mqtt is self._mqtt:
                ids.append(first.id)
        if ids:
            self._mqtt.acknowledge(ids)
