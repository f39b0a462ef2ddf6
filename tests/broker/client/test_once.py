"""A publication that several brokers accepted is received once: after a failover, and with an id of the application."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from broker import Client, Subscription, connect, connect_sync
from broker.client.connection import Connection
from broker.client.errors import InvalidError, TooLargeError
from broker.client.publish_queue import PublishQueue
from broker.wire.client_frames import ONCE, Welcome
from tests.harness.client_processes import brokers
from tests.harness.mercast_broker import BrokerProcess
from tests.harness.proxy import Proxy

SOON_S = 30.0


@pytest.fixture(scope="module")
def overlay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, BrokerProcess]]:
    with brokers(tmp_path_factory.mktemp("brokers"), ["b1", "b2", "b3"]) as running:
        yield running


async def numbers(subscription: Subscription, count: int) -> list[object]:
    return [(await subscription.next(SOON_S))["n"] for _ in range(count)]


async def until_known(publishers: list[Client], stream: Subscription, test: str) -> None:
    """Publishes at intervals until every publisher's broker knows the subscription."""
    for number, publisher in enumerate(publishers):
        while True:
            await publisher.publish({"test": test, "n": -1 - number})
            await asyncio.sleep(0.05)
            if len(stream) and (await stream.next(SOON_S))["n"] == -1 - number:
                break


async def numbers_until(stream: Subscription, last: int) -> list[object]:
    """The numbers that arrive up to `last`, without those of `until_known`."""
    got: list[object] = []
    while last not in got:
        (number,) = await numbers(stream, 1)
        if int(str(number)) >= 0:
            got.append(number)
    return got


def test_publications_whose_answers_were_lost_are_received_once_after_a_failover(
    overlay: dict[str, BrokerProcess],
) -> None:
    async def scenario() -> None:
        async with (
            Proxy(overlay["b1"].listen) as proxy,
            connect([proxy.url, overlay["b2"].url], timeout=SOON_S) as publisher,
            connect(overlay["b2"].url, timeout=SOON_S) as second,
            connect(overlay["b3"].url, timeout=SOON_S) as subscriber,
            subscriber.subscribe("test = 'failover'") as stream,
        ):
            await until_known([second, publisher], stream, "failover")
            proxy.loses_to_client = True
            answers = [await publisher.publish_soon({"test": "failover", "n": n}) for n in range(5)]
            assert await numbers_until(stream, 4) == [0, 1, 2, 3, 4]
            assert not any(answer.done() for answer in answers)
            proxy.refuses = True
            proxy.cut()
            async with asyncio.timeout(SOON_S):
                await asyncio.gather(*answers)
            assert publisher.broker == "b2"
            await publisher.publish({"test": "failover", "n": 5})
            assert await numbers_until(stream, 5) == [5], "b2 accepted the others too, and b3 delivered them before"
        status = overlay["b3"].status()
        assert status["drops"]["published before"] == 5
        assert status["once_ids"] >= 6

    asyncio.run(scenario())


def test_two_processes_of_a_client_publish_the_same_id_and_it_is_received_once(
    overlay: dict[str, BrokerProcess],
) -> None:
    async def scenario() -> None:
        async with (
            connect(overlay["b3"].url, timeout=SOON_S) as subscriber,
            subscriber.subscribe("test = 'id'") as stream,
            connect(overlay["b1"].url, name="shop", timeout=SOON_S) as first,
            connect(overlay["b2"].url, name="shop", timeout=SOON_S) as second,
            connect(overlay["b2"].url, name="market", timeout=SOON_S) as other,
        ):
            await until_known([first, second], stream, "id")
            await first.publish({"test": "id", "n": 1}, id="order-7")
            assert await numbers_until(stream, 1) == [1]
            await second.publish({"test": "id", "n": 2}, id="order-7")
            await second.publish({"test": "id", "n": 3}, b"payload", expires=60.0, id="order-8")
            await other.publish({"test": "id", "n": 4}, id="order-7")
            assert await numbers_until(stream, 4) == [3, 4]

    asyncio.run(scenario())


def test_a_durable_client_receives_an_id_once_although_its_broker_is_killed_in_between(tmp_path: Path) -> None:
    async def scenario(broker: BrokerProcess) -> None:
        async with (
            connect(broker.url, name="desk-1", durable=True, timeout=SOON_S) as desk,
            desk.subscribe("n > 0", name="alerts") as stream,
            connect(broker.url, name="shop", timeout=SOON_S) as publisher,
        ):
            await publisher.publish({"n": 1}, id="order-7")
            assert await numbers(stream, 1) == [1]
            await asyncio.to_thread(broker.kill)
            await asyncio.to_thread(broker.start)
            await publisher.publish({"n": 2}, id="order-7")
            await publisher.publish({"n": 3}, id="order-8")
            assert await numbers(stream, 1) == [3]
            assert broker.status()["drops"]["published before"] == 1

    with brokers(tmp_path, ["b1"], tables='[store]\ndata_dir = "data"\n') as running:
        asyncio.run(scenario(running["b1"]))


def test_the_synchronous_client_takes_an_id_too(overlay: dict[str, BrokerProcess]) -> None:
    with (
        connect_sync(overlay["b1"].url, timeout=SOON_S) as client,
        client.subscribe("test = 'sync'") as stream,
    ):
        for n in (1, 2):
            client.publish({"test": "sync", "n": n}, id="one")
        client.publish({"test": "sync", "n": 3})
        assert [stream.next(SOON_S)["n"] for _ in range(2)] == [1, 3]


def test_an_id_that_no_broker_could_read_is_refused_by_the_client(overlay: dict[str, BrokerProcess]) -> None:
    async def scenario() -> None:
        async with connect(overlay["b1"].url) as client:
            with pytest.raises(InvalidError, match="its id is empty"):
                await client.publish({"a": 1}, id="")
            with pytest.raises(TooLargeError, match="256 bytes; the limit is 255"):
                await client.publish({"a": 1}, id="x" * 256)
            with pytest.raises(InvalidError, match="its id is int, not a text"):
                await client.publish({"a": 1}, id=7)  # type: ignore[arg-type]
            await client.publish({"a": 1}, id="x" * 255)

    asyncio.run(scenario())


class Wire:
    """A connection that counts frames and sends none."""

    def __init__(self) -> None:
        self.sent = 0

    def send(self, frame: bytes) -> None:
        self.sent += 1

    def has_room(self) -> bool:
        return True


def test_a_broker_that_knows_no_ids_is_sent_none() -> None:
    async def scenario() -> None:
        queue = PublishQueue(asyncio.get_running_loop(), is_answered=True)

        def connected(*capabilities: str) -> Wire:
            wire = Wire()
            welcome = Welcome("b1", 1, False, 0, 1 << 20, 1 << 16, 16, 0, 16, capabilities)
            queue.connected(cast("Connection", wire), welcome)
            return wire

        first = connected(ONCE)
        named, plain = queue.put(b"\x80", b"", 0, False, "x"), queue.put(b"\x80", b"", 0, False)
        assert first.sent == 2
        queue.disconnected()
        assert connected().sent == 1
        with pytest.raises(InvalidError, match="b1 is of a version that knows no ids"):
            await named
        with pytest.raises(InvalidError, match="publish without an id"):
            queue.put(b"\x80", b"", 0, False, "y")
        assert not plain.done()

    asyncio.run(scenario())


def test_only_clients_with_several_servers_request_ids_for_all_publications() -> None:
    async def capabilities(servers: str, mode: str) -> tuple[str, ...]:
        return connect(servers, mode=mode)._hello.capabilities

    several = "mercast://127.0.0.1:1,127.0.0.1:2"
    assert asyncio.run(capabilities(several, "at-least-once")) == (ONCE,)
    assert asyncio.run(capabilities(several, "at-most-once")) == ()
    assert asyncio.run(capabilities("mercast://127.0.0.1:1", "at-least-once")) == ()
