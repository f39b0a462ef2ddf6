"""Messages of devices over broken MQTT connections: what the MQTT broker sends again is published once, what it has
lost is published from the gateway, and no more waits than may."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from broker.client.client import Client
from broker.client.errors import ClosedError
from broker.client.options import ClientOptions
from broker.client.publish_queue import Answer
from broker.client.servers import parse_servers
from broker.config.gateway_config import GatewayConfig, read_gateways
from broker.log import Log
from broker.mqtt.counters import GatewayCounters
from broker.mqtt.fast_path.packets import Message
from broker.mqtt.inbound import Inbound
from broker.mqtt.mqtt_client import MqttClient
from routing.messages import PublicationId

MOST = 10


def _ignore(*_: object) -> None:
    """Nothing comes from a connection that is not made."""


class Connection(MqttClient):
    """One that is not made, and remembers what it would acknowledge."""

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


class Taker(Client):
    """A client whose broker takes as many publications as there is room, and answers when it is told to."""

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

    def take_all(self) -> None:
        self.room = 1_000_000
        self.has_room.set()

    def answer_all(self) -> None:
        for number, answer in enumerate(self.unanswered, start=1):
            answer.set_result(PublicationId("b1", 1, number))
        self.unanswered.clear()


class World:
    def __init__(self) -> None:
        self.config = read_gateways({"topics": ["devices/{room}"], "intake": MOST}, {"b1": "127.0.0.1:1883"}, "o")["b1"]
        self.counts = GatewayCounters(Log("b1"))
        self.intake = Inbound(self.config, self.counts)
        self.taker = Taker()
        self.mqtt: Connection | None = None

    def connect(self, *, is_resumed: bool = True) -> Connection:
        if self.mqtt is not None:
            self.mqtt.is_cut = True
        self.mqtt = Connection(self.config)
        self.intake.connected(self.mqtt, is_resumed=is_resumed)
        return self.mqtt

    def arrive(self, *ids: int, is_repeated: bool = False, qos: int = 1, text: str = "") -> None:
        assert self.mqtt is not None
        for id in ids:
            payload = f"{text}{id}".encode()
            self.intake.take(self.mqtt, Message("devices/lab", payload, qos, False, id * qos, [], is_repeated))
        self.intake.taken()

    async def settle(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)


def payloads(*ids: int) -> list[bytes]:
    return [str(id).encode() for id in ids]


def run(scenario: Callable[[World], object]) -> None:
    async def publishing() -> None:
        world = World()
        task = asyncio.create_task(world.intake.publish_to(world.taker, lambda: False))
        result = scenario(world)
        assert asyncio.iscoroutine(result)
        await result
        task.cancel()

    asyncio.run(publishing())


@pytest.mark.parametrize("is_repeated", [True, False])
def test_what_waits_and_comes_again_waits_once(is_repeated: bool) -> None:
    async def scenario(world: World) -> None:
        world.connect()
        world.arrive(*range(1, MOST + 1))
        for _ in range(5):
            world.connect()
            world.arrive(*range(1, MOST + 1), is_repeated=is_repeated)
            assert world.intake.waiting == MOST
        world.taker.take_all()
        await world.settle()
        assert world.taker.payloads == payloads(*range(1, MOST + 1))
        world.taker.answer_all()
        assert world.mqtt is not None
        assert world.mqtt.acknowledged == list(range(1, MOST + 1))
        assert world.counts.drops == {}

    run(scenario)


def test_what_was_being_published_and_comes_again_is_published_once_and_acknowledged_in_order() -> None:
    async def scenario(world: World) -> None:
        world.connect()
        world.taker.room = 2
        world.arrive(1, 2, 3)
        await world.settle()
        assert (world.intake.waiting, world.intake.unanswered) == (1, 2)
        second = world.connect()
        world.arrive(1, 2, 3, is_repeated=True)
        world.taker.take_all()
        await world.settle()
        world.taker.answer_all()
        assert world.taker.payloads == payloads(1, 2, 3)
        assert second.acknowledged == [1, 2, 3]
        assert (world.intake.waiting, world.intake.unanswered) == (0, 0)

    run(scenario)


def test_what_was_answered_for_while_there_was_no_connection_is_acknowledged_when_it_comes_again() -> None:
    async def scenario(world: World) -> None:
        first = world.connect()
        world.taker.take_all()
        world.arrive(1, 2)
        await world.settle()
        first.is_cut = True
        world.taker.answer_all()
        second = world.connect()
        world.arrive(1, 2, is_repeated=True)
        world.arrive(3)
        await world.settle()
        world.taker.answer_all()
        assert world.taker.payloads == payloads(1, 2, 3)
        assert second.acknowledged == [1, 2, 3]
        assert world.counts.taken == 3

    run(scenario)


def test_a_message_under_the_number_of_another_one_is_another_message() -> None:
    async def scenario(world: World) -> None:
        world.connect()
        world.taker.room = 1
        world.arrive(1, 2)
        await world.settle()
        second = world.connect()
        # The MQTT broker has lost both: it sends others under their numbers, one of them of the same content.
        world.arrive(1)
        world.arrive(2, text="other ")
        world.taker.take_all()
        await world.settle()
        world.taker.answer_all()
        assert sorted(world.taker.payloads) == [b"1", b"1", b"2", b"other 2"]
        assert second.acknowledged == [1, 2]

    run(scenario)


@pytest.mark.parametrize("is_resumed", [True, False])
def test_what_the_mqtt_broker_has_lost_is_published_from_here(is_resumed: bool) -> None:
    async def scenario(world: World) -> None:
        world.connect()
        world.arrive(1, 2, 3)
        world.connect(is_resumed=is_resumed)
        if is_resumed:
            world.arrive(2, is_repeated=True)
        # Over further connections too: nobody else has them.
        last = world.connect()
        if is_resumed:
            world.arrive(2, is_repeated=True)
        world.taker.take_all()
        await world.settle()
        world.taker.answer_all()
        assert sorted(world.taker.payloads) == payloads(1, 2, 3)
        assert last.acknowledged == ([2] if is_resumed else [])

    run(scenario)


def test_messages_of_qos_0_wait_over_connections() -> None:
    async def scenario(world: World) -> None:
        world.connect()
        world.arrive(1, 2, qos=0)
        world.arrive(3)
        world.connect()
        world.arrive(3, is_repeated=True)
        world.connect(is_resumed=False)
        world.taker.take_all()
        await world.settle()
        assert sorted(world.taker.payloads) == payloads(1, 2, 3)

    run(scenario)


def test_an_mqtt_broker_that_loses_its_session_again_and_again_does_not_fill_the_gateway() -> None:
    async def scenario(world: World) -> None:
        for turn in range(5):
            world.connect(is_resumed=False)
            world.arrive(*range(1, MOST + 1), text=f"{turn} ")
            assert world.intake.waiting <= 2 * MOST
        world.connect(is_resumed=False)
        assert world.intake.waiting == MOST
        assert world.counts.drops == {"intake-full": 4 * MOST}

    run(scenario)


def test_an_mqtt_broker_that_loses_a_part_of_its_session_again_and_again_does_not_fill_the_gateway() -> None:
    async def scenario(world: World) -> None:
        for turn in range(5):
            world.connect()
            world.arrive(*range(1, MOST + 1), text=f"{turn} ")
            assert world.intake.waiting <= 3 * MOST
        world.connect()
        assert world.intake.waiting == 2 * MOST
        assert world.counts.drops == {"intake-full": 3 * MOST}

    run(scenario)


def test_what_a_closed_client_did_not_get_answered_is_published_again() -> None:
    async def scenario(world: World) -> None:
        world.connect()
        world.taker.take_all()
        world.arrive(1)
        await world.settle()
        (answer,) = world.taker.unanswered
        answer.set_exception(ClosedError("the client is closed"))
        world.taker.unanswered.clear()
        second = world.connect()
        world.arrive(1, is_repeated=True)
        await world.settle()
        world.taker.answer_all()
        assert world.taker.payloads == payloads(1, 1)
        assert second.acknowledged == [1]

    run(scenario)
