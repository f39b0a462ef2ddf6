"""A client reconnects after cut connections, killed brokers and its own restarts, and receives publications once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker import Client, Subscription, TimeoutExpiredError, connect
from broker.client.errors import ClosedError, ConnectError
from tests.harness.client_processes import brokers
from tests.harness.conditions import until
from tests.harness.mercast_broker import BrokerProcess
from tests.harness.proxy import Proxy

SOON_S = 30.0


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with brokers(tmp_path_factory.mktemp("broker"), ["b1"]) as running:
        yield running["b1"]


async def numbers(subscription: Subscription, count: int) -> list[object]:
    return [(await subscription.next(SOON_S))["n"] for _ in range(count)]


async def until_reconnected(client: Client, times: int = 1) -> None:
    await until(lambda: client.reconnects >= times and client.is_connected, SOON_S)


def test_a_cut_connection_is_made_again_and_its_subscriptions_continue(broker: BrokerProcess) -> None:
    async def scenario() -> None:
        async with (
            Proxy(broker.listen) as proxy,
            connect(broker.url) as publisher,
            connect(proxy.url) as subscriber,
            subscriber.subscribe("cut = TRUE") as stream,
        ):
            await publisher.publish({"cut": True, "n": 1})
            assert await numbers(stream, 1) == [1]
            for n in (2, 3, 4):
                proxy.cut()
                await until_reconnected(subscriber, n - 1)
                await publisher.publish({"cut": True, "n": n})
                assert await numbers(stream, 1) == [n]
            assert subscriber.reconnects == 3

    asyncio.run(scenario())


def test_deliveries_whose_acknowledgements_were_lost_are_repeated_and_received_once(broker: BrokerProcess) -> None:
    async def scenario() -> None:
        async with (
            Proxy(broker.listen) as proxy,
            connect(broker.url) as publisher,
            connect(proxy.url) as subscriber,
            subscriber.subscribe("unheard = TRUE") as stream,
        ):
            proxy.loses_to_broker = True
            for n in range(20):
                await publisher.publish({"unheard": True, "n": n})
            # Ten are received, the rest is queued in the client. The broker has no acknowledgement for any.
            assert await numbers(stream, 10) == list(range(10))
            proxy.cut()
            await until_reconnected(subscriber)
            await publisher.publish({"unheard": True, "n": 20})
            assert await numbers(stream, 11) == list(range(10, 21))
            # At least those received before the cut. Some of the rest may not have been in flight yet.
            assert 10 <= subscriber.repeated <= 20
            with pytest.raises(TimeoutExpiredError):
                await stream.next(0.2)

    asyncio.run(scenario())


def test_a_delivery_repeated_while_it_is_queued_is_acknowledged_after_it_is_received(broker: BrokerProcess) -> None:
    async def scenario() -> None:
        async with (
            Proxy(broker.listen) as proxy,
            connect(broker.url) as publisher,
            connect(proxy.url, window=8) as subscriber,
            subscriber.subscribe("windowed = TRUE") as stream,
        ):
            for n in range(40):
                await publisher.publish({"windowed": True, "n": n})
            assert await numbers(stream, 3) == [0, 1, 2]
            proxy.cut()
            await until_reconnected(subscriber)
            # The window of eight is full. The rest arrives only if these are acknowledged in turn.
            assert await numbers(stream, 37) == list(range(3, 40))

    asyncio.run(scenario())


def test_a_publication_whose_answer_was_lost_is_not_published_twice(broker: BrokerProcess) -> None:
    async def scenario() -> None:
        async with (
            Proxy(broker.listen) as proxy,
            connect(proxy.url) as publisher,
            connect(broker.url) as subscriber,
            subscriber.subscribe("answered = TRUE") as stream,
        ):
            proxy.loses_to_client = True
            answers = [await publisher.publish_soon({"answered": True, "n": n}) for n in range(5)]
            assert await numbers(stream, 5) == list(range(5))
            assert not any(answer.done() for answer in answers)
            proxy.cut()
            async with asyncio.timeout(SOON_S):
                await asyncio.gather(*answers)
            await publisher.publish({"answered": True, "n": 5})
            assert await numbers(stream, 1) == [5]

    asyncio.run(scenario())


def test_a_client_reconnects_to_a_killed_broker_and_enters_its_entries_again(tmp_path: Path) -> None:
    async def scenario(broker: BrokerProcess) -> None:
        async with (
            connect(broker.url, timeout=SOON_S) as publisher,
            connect(broker.url, timeout=SOON_S) as subscriber,
            subscriber.subscribe({"a": "killed = TRUE", "b": "killed = FALSE"}) as stream,
        ):
            await publisher.advertise("EXISTS killed")
            await publisher.publish({"killed": True, "n": 1})
            assert await numbers(stream, 1) == [1]
            await asyncio.to_thread(broker.kill)
            waiting = asyncio.create_task(publisher.publish({"killed": False, "n": 2}))
            # Time for an answer that must not come.
            await asyncio.sleep(0.1)
            assert not waiting.done()
            await asyncio.to_thread(broker.start)
            await until_reconnected(subscriber)
            await waiting
            # It is published once, perhaps before the subscriber has reconnected.
            await publisher.publish({"killed": False, "n": 3})
            assert (await numbers(stream, 1))[0] in (2, 3)

    with brokers(tmp_path, ["b1"], settings='advertise = "strict"') as running:
        asyncio.run(scenario(running["b1"]))


def test_a_client_moves_to_another_broker_when_its_own_is_killed(tmp_path: Path) -> None:
    async def scenario(running: dict[str, BrokerProcess]) -> None:
        both = f"{running['b1'].url},{running['b2'].url}"
        async with (
            connect(running["b2"].url, timeout=SOON_S) as publisher,
            connect(both, timeout=SOON_S) as subscriber,
            subscriber.subscribe("moving = TRUE") as stream,
        ):
            assert subscriber.broker == "b1"
            n = 0
            while not len(stream):
                # Publish at intervals until the subscription has reached the other broker.
                n += 1
                await publisher.publish({"moving": True, "n": n})
                await asyncio.sleep(0.05)
            await asyncio.to_thread(running["b1"].kill)
            await until_reconnected(subscriber)
            assert subscriber.broker == "b2"
            await publisher.publish({"moving": True, "n": -1})
            got: list[object] = []
            while -1 not in got:
                got += await numbers(stream, 1)
            assert len(got) == len(set(got))

    with brokers(tmp_path, ["b1", "b2"]) as running:
        asyncio.run(scenario(running))


def test_a_client_that_returns_to_a_broker_updates_its_entries_there(tmp_path: Path) -> None:
    async def scenario(running: dict[str, BrokerProcess]) -> None:
        async with (
            Proxy(running["b1"].listen) as first,
            Proxy(running["b2"].listen) as second,
            connect([first.url, second.url], timeout=SOON_S) as client,
            connect(running["b1"].url, timeout=SOON_S) as publisher,
        ):
            left = await client.subscribe("n > 0", name="left").__aenter__()
            kept = await client.subscribe("n > 100", name="kept").__aenter__()
            first.refuses = True
            first.cut()
            await until_reconnected(client)
            assert client.broker == "b2"
            await left.unsubscribe()
            entered = await client.subscribe("n < 0", name="entered").__aenter__()
            first.refuses, second.refuses = False, True
            second.cut()
            await until_reconnected(client, 2)
            assert client.broker == "b1"
            # The answer to this request follows the answers to the requests sent on connecting.
            await client.advertise("EXISTS n")
            for n in (5, -5, 500):
                await publisher.publish({"n": n})
            assert await numbers(entered, 1) == [-5]
            assert await numbers(kept, 1) == [500]
            assert not len(left)
            with pytest.raises(TimeoutExpiredError):
                await kept.next(0.1)

    with brokers(tmp_path, ["b1", "b2"]) as running:
        asyncio.run(scenario(running))


STORE = '[store]\ndata_dir = "data"\n'


def test_a_durable_subscription_keeps_publications_while_its_client_is_away_and_its_broker_killed(
    tmp_path: Path,
) -> None:
    async def first_process(broker: BrokerProcess) -> None:
        async with (
            connect(broker.url, name="desk-1", durable=True) as desk,
            desk.subscribe("price > 90", name="alerts") as alerts,
            connect(broker.url) as publisher,
        ):
            await publisher.publish({"price": 91, "n": 1})
            assert await numbers(alerts, 1) == [1]

    async def away(broker: BrokerProcess) -> None:
        async with connect(broker.url) as publisher:
            for n in (2, 3, 4):
                await publisher.publish({"price": 92, "n": n})
            await publisher.publish({"price": 12, "n": 5})

    async def second_process(broker: BrokerProcess) -> None:
        async with connect(broker.url, name="desk-1", durable=True) as desk:
            # Deliveries may arrive before the application subscribes under the name.
            await until(lambda: desk.unclaimed == ("alerts",), SOON_S)
            async with desk.subscribe("price > 90", name="alerts") as alerts:
                assert await numbers(alerts, 3) == [2, 3, 4]
                await desk.publish({"price": 99, "n": 6})
                assert await numbers(alerts, 1) == [6]
                await alerts.unsubscribe()

    async def third_process(broker: BrokerProcess) -> None:
        async with (
            connect(broker.url, name="desk-1", durable=True) as desk,
            desk.subscribe("price > 90", name="alerts") as alerts,
        ):
            await desk.publish({"price": 99, "n": 8})
            assert await numbers(alerts, 1) == [8]

    with brokers(tmp_path, ["b1"], tables=STORE) as running:
        broker = running["b1"]
        asyncio.run(first_process(broker))
        asyncio.run(away(broker))
        broker.kill()
        broker.start()
        asyncio.run(second_process(broker))
        asyncio.run(away(broker))
        asyncio.run(third_process(broker))


@pytest.mark.parametrize("is_durable", [False, True])
def test_withdrawals_that_are_lost_with_a_connection_are_repeated(tmp_path: Path, is_durable: bool) -> None:
    async def scenario(broker: BrokerProcess) -> None:
        async with (
            Proxy(broker.listen) as proxy,
            connect(proxy.url, name="desk-1", durable=is_durable, timeout=SOON_S) as client,
        ):
            ended = await client.subscribe("n > 0", name="ended").__aenter__()
            await client.subscribe("n > 1", name="kept").__aenter__()
            await client.advertise("n > 2", name="offered")
            proxy.loses_to_broker = True
            withdrawals = [asyncio.create_task(each) for each in (ended.unsubscribe(), client.unadvertise("offered"))]
            # The tasks send their requests, which are lost, and then the callers give up.
            await asyncio.sleep(0.1)
            for withdrawal in withdrawals:
                withdrawal.cancel()
            await asyncio.wait(withdrawals)
            proxy.cut()
            await until_reconnected(client)
            # The answer to this request follows the answers to the requests sent on connecting.
            await client.advertise("EXISTS n")
            (shown,) = broker.status()["clients"]
            assert (shown["name"], shown["subscriptions"], shown["advertisements"]) == ("desk-1", 1, 1)

    with brokers(tmp_path, ["b1"], tables=STORE) as running:
        asyncio.run(scenario(running["b1"]))


@pytest.mark.slow
def test_a_kill_under_load_loses_nothing_and_repeats_nothing_for_a_durable_client(tmp_path: Path) -> None:
    async def scenario(broker: BrokerProcess) -> None:
        async with (
            connect(broker.url, timeout=SOON_S) as publisher,
            connect(broker.url, name="desk-1", durable=True, timeout=SOON_S) as desk,
            desk.subscribe("load = TRUE", name="load") as stream,
        ):
            publishing = asyncio.create_task(_publish_all(publisher, 2000))
            got = await numbers(stream, 200)
            await asyncio.to_thread(broker.kill)
            await asyncio.to_thread(broker.start)
            await publishing
            got += await numbers(stream, 1800)
            assert sorted(map(int, map(str, got))) == list(range(2000))
            with pytest.raises(TimeoutExpiredError):
                await stream.next(0.3)

    with brokers(tmp_path, ["b1"], tables=STORE) as running:
        asyncio.run(scenario(running["b1"]))


async def _publish_all(publisher: Client, count: int) -> None:
    answers = []
    for n in range(count):
        answers.append(await publisher.publish_soon({"load": True, "n": n}))
        if n % 50 == 0:
            # The client sends and receives in between.
            await asyncio.sleep(0)
    await asyncio.gather(*answers)


def test_unnamed_subscriptions_of_an_earlier_process_of_a_durable_client_are_withdrawn(tmp_path: Path) -> None:
    async def scenario(broker: BrokerProcess) -> None:
        async with Proxy(broker.listen) as proxy, connect(broker.url) as publisher:
            first = connect(proxy.url, name="desk-1", durable=True, reconnect_within=0.0)
            await first.open()
            await first.subscribe("lives = TRUE").__aenter__()
            # As if the process were killed: no goodbye is sent.
            await proxy.stop()
            await publisher.publish({"lives": True, "n": 1})
            async with (
                connect(broker.url, name="desk-1", durable=True, window=1) as second,
                second.subscribe("lives = TRUE") as stream,
            ):
                # The window is one. It would stay full if the delivery to the earlier process kept its place.
                await publisher.publish({"lives": True, "n": 2})
                assert await numbers(stream, 1) == [2]
            await first.close()

    with brokers(tmp_path, ["b1"], tables=STORE) as running:
        asyncio.run(scenario(running["b1"]))


def test_all_waiting_calls_fail_when_the_client_stops_to_reconnect(tmp_path: Path) -> None:
    async def scenario(broker: BrokerProcess) -> None:
        async with connect(broker.url, reconnect_within=0.3) as client:
            stream = client.subscribe("given = 1")
            waiting = asyncio.create_task(stream.next())
            await until(lambda: stream._waiter is not None, SOON_S, "the subscription waits for a publication")
            await asyncio.to_thread(broker.kill)
            with pytest.raises(ConnectError, match="cannot connect"):
                await waiting
            with pytest.raises(ConnectError, match="cannot connect"):
                await client.publish({"given": 1})

    with brokers(tmp_path, ["b1"]) as running:
        asyncio.run(scenario(running["b1"]))


def test_calls_of_a_closed_client_fail(broker: BrokerProcess) -> None:
    async def scenario() -> None:
        async with connect(broker.url) as client:
            pass
        with pytest.raises(ClosedError, match="the client is closed"):
            await client.publish({"a": 1})

    asyncio.run(scenario())
