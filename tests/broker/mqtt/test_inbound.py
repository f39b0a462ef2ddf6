"""Messages of devices over broken MQTT connections. Repeated messages are published once. Messages that the MQTT broker
has lost are published from the gateway's queue. The queue stays within its limit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from broker.client.client import Client
from broker.client.errors import ClosedError
from broker.client.options import ClientOptions, parse_servers
from broker.client.publish_queue import Answer
from broker.config.gateway_config import GATEWAY_PARSERS, GatewayConfig, read_gateways
from broker.config.tables import ConfigError
from broker.log import Log
from broker.mqtt.counters import GatewayCounters
from broker.mqtt.fast_path.client import FastMqttClient
from broker.mqtt.fast_path.packets import Message
from broker.mqtt.inbound import Inbound
from routing.messages import PublicationId
from topologies.files.typed_tables import TableReader

MOST = 10


def _ignore(*_: object) -> None:
    """Ignores events of a connection that is never opened."""


class Connection(FastMqttClient):
    """A connection that is never opened, and records acknowledgements."""

    def __init__(self, config: GatewayConfig) -> None:
        super().__init__(config, _ignore, _ignore, _ignore)
        self.acknowledged: list[int] = []
        self.is_cut = False

    @property
    def is_lost(self) -> bool:
        return self.is_cut

    def acknowledge(self, ids: list[int]) -> None:
        assert not self.is_cut
        self.acknowledged += ids


class FakeClient(Client):
    """A client whose broker accepts `room` publications, and answers when the test calls `answer_all`."""

    def __init__(self) -> None:
        super().__init__(parse_servers("mercast://127.0.0.1:1"), ClientOptions())
        self.room = 0
        self.payloads: list[bytes] = []
        self.unanswered: list[Answer] = []
        self.has_room = asyncio.Event()

    async def wait_for_room(self) -> None:
        while not self.room:
            self.has_room.clear()
            await self.has_room.wait()

    def publish_now(self, answer: Answer, attributes: bytes, payload: bytes) -> bool:
        if not self.room:
            return False
        self.room -= 1
        self.payloads.append(payload)
        self.unanswered.append(answer)
        return True

    def accept_all(self) -> None:
        self.room = 1_000_000
        self.has_room.set()

    def answer_all(self) -> None:
        for number, answer in enumerate(self.unanswered, start=1):
            answer.set_result(PublicationId("b1", 1, number))
        self.unanswered.clear()


class World:
    def __init__(self) -> None:
        reader = TableReader("here", ConfigError, GATEWAY_PARSERS)
        shared = {"topics": ["devices/{room}"], "intake": MOST}
        self.config = read_gateways(reader, shared, {"b1": "127.0.0.1:1883"}, "o")["b1"]
        self.counts = GatewayCounters(Log("b1"))
        self.inbound = Inbound(self.config, self.counts)
        self.client = FakeClient()
        self.mqtt: Connection | None = None

    def connect(self, *, is_resumed: bool = True) -> Connection:
        if self.mqtt is not None:
            self.mqtt.is_cut = True
        self.mqtt = Connection(self.config)
        self.inbound.connected(self.mqtt, is_resumed=is_resumed)
        return self.mqtt

    def arrive(self, *ids: int, is_repeated: bool = False, qos: int = 1, text: str = "") -> None:
        assert self.mqtt is not None
        for id in ids:
            payload = f"{text}{id}".encode()
            self.inbound.receive(self.mqtt, Message("devices/lab", payload, qos, False, id * qos, [], is_repeated))
        self.inbound.wake_publisher()

    async def settle(self) -> None:
        """Gives the tasks some turns of the loop."""
        for _ in range(5):
            await asyncio.sleep(0)


def payloads(*ids: int) -> list[bytes]:
    return [str(id).encode() for id in ids]


def run(scenario: Callable[[World], object]) -> None:
    async def publishing() -> None:
        world = World()
        task = asyncio.create_task(world.inbound.publish_to(world.client, lambda: False))
        result = scenario(world)
        assert asyncio.iscoroutine(result)
        await result
        task.cancel()

    asyncio.run(publishing())


@pytest.mark.parametrize("is_repeated", [True, False])
def test_a_repeated_message_is_queued_once(is_repeated: bool) -> None:
    async def scenario(world: World) -> None:
        world.connect()
        world.arrive(*range(1, MOST + 1))
        for _ in range(5):
            world.connect()
            world.arrive(*range(1, MOST + 1), is_repeated=is_repeated)
            assert world.inbound.waiting == MOST
        world.client.accept_all()
        await world.settle()
        assert world.client.payloads == payloads(*range(1, MOST + 1))
        world.client.answer_all()
        assert world.mqtt is not None
        assert world.mqtt.acknowledged == list(range(1, MOST + 1))
        assert world.counts.drops == {}

    run(scenario)


def test_a_message_repeated_while_in_flight_is_published_once_and_acknowledged_in_order() -> None:
    async def scenario(world: World) -> None:
        world.connect()
        world.client.room = 2
        world.arrive(1, 2, 3)
        await world.settle()
        assert (world.inbound.waiting, world.inbound.unanswered) == (1, 2)
        second = world.connect()
        world.arrive(1, 2, 3, is_repeated=True)
        world.client.accept_all()
        await world.settle()
        world.client.answer_all()
        assert world.client.payloads == payloads(1, 2, 3)
        assert second.acknowledged == [1, 2, 3]
        assert (world.inbound.waiting, world.inbound.unanswered) == (0, 0)

    run(scenario)


def test_a_message_answered_without_a_connection_is_acknowledged_when_it_is_repeated() -> None:
    async def scenario(world: World) -> None:
        first = world.connect()
        world.client.accept_all()
        world.arrive(1, 2)
        await world.settle()
        first.is_cut = True
        world.client.answer_all()
        second = world.connect()
        world.arrive(1, 2, is_repeated=True)
        world.arrive(3)
        await world.settle()
        world.client.answer_all()
        assert world.client.payloads == payloads(1, 2, 3)
        assert second.acknowledged == [1, 2, 3]
        assert world.counts.accepted == 3

    run(scenario)


def test_another_message_under_the_id_of_a_lost_one_is_published() -> None:
    async def scenario(world: World) -> None:
        world.connect()
        world.client.room = 1
        world.arrive(1, 2)
        await world.settle()
        second = world.connect()
        # The MQTT broker has lost both. It sends others under their ids, one of them with the same content.
        world.arrive(1)
        world.arrive(2, text="other ")
        world.client.accept_all()
        await world.settle()
        world.client.answer_all()
        assert sorted(world.client.payloads) == [b"1", b"1", b"2", b"other 2"]
        assert second.acknowledged == [1, 2]

    run(scenario)


@pytest.mark.parametrize("is_resumed", [True, False])
def test_messages_that_the_mqtt_broker_has_lost_are_published(is_resumed: bool) -> None:
    async def scenario(world: World) -> None:
        world.connect()
        world.arrive(1, 2, 3)
        world.connect(is_resumed=is_resumed)
        if is_resumed:
            world.arrive(2, is_repeated=True)
        # Over further connections too: only the gateway has them.
        last = world.connect()
        if is_resumed:
            world.arrive(2, is_repeated=True)
        world.client.accept_all()
        await world.settle()
        world.client.answer_all()
        assert sorted(world.client.payloads) == payloads(1, 2, 3)
        assert last.acknowledged == ([2] if is_resumed else [])

    run(scenario)


def test_queued_messages_of_qos_0_survive_a_reconnect() -> None:
    async def scenario(world: World) -> None:
        world.connect()
        world.arrive(1, 2, qos=0)
        world.arrive(3)
        world.connect()
        world.arrive(3, is_repeated=True)
        world.connect(is_resumed=False)
        world.client.accept_all()
        await world.settle()
        assert sorted(world.client.payloads) == payloads(1, 2, 3)

    run(scenario)


def test_an_mqtt_broker_that_loses_its_session_again_and_again_does_not_fill_the_gateway() -> None:
    async def scenario(world: World) -> None:
        for turn in range(5):
            world.connect(is_resumed=False)
            world.arrive(*range(1, MOST + 1), text=f"{turn} ")
            assert world.inbound.waiting <= 2 * MOST
        world.connect(is_resumed=False)
        assert world.inbound.waiting == MOST
        assert world.counts.drops == {"intake-full": 4 * MOST}

    run(scenario)


def test_an_mqtt_broker_that_loses_a_part_of_its_session_again_and_again_does_not_fill_the_gateway() -> None:
    async def scenario(world: World) -> None:
        for turn in range(5):
            world.connect()
            world.arrive(*range(1, MOST + 1), text=f"{turn} ")
            assert world.inbound.waiting <= 3 * MOST
        world.connect()
        assert world.inbound.waiting == 2 * MOST
        assert world.counts.drops == {"intake-full": 3 * MOST}

    run(scenario)


def test_a_message_without_an_answer_from_a_closed_client_is_published_again() -> None:
    async def scenario(world: World) -> None:
        world.connect()
        world.client.accept_all()
        world.arrive(1)
        await world.settle()
        (answer,) = world.client.unanswered
        answer.set_exception(ClosedError("the client is closed"))
        world.client.unanswered.clear()
        second = world.connect()
        world.arrive(1, is_repeated=True)
        await world.settle()
        world.client.answer_all()
        assert world.client.payloads == payloads(1, 1)
        assert second.acknowledged == [1]

    run(scenario)
