"""The asyncio client and the synchronous one, against a real broker process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from broker import Client, ConnectError, Publication, RefusedError, Subscription, connect, connect_sync
from broker.client.errors import (
    ClientError,
    InvalidError,
    NotAdvertisedError,
    ServerAddressError,
    TimeoutExpiredError,
    TooLargeError,
)
from broker.client.options import parse_servers
from matching import Expression, attr
from matching.errors import MatchingError
from tests.harness.client_processes import brokers
from tests.harness.conditions import until
from tests.harness.ports import free_ports

SOON_S = 30.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with brokers(tmp_path_factory.mktemp("broker"), ["b1"]) as running:
        yield running["b1"].url


@asynccontextmanager
async def clients(server: str, count: int = 1, **options: object) -> AsyncIterator[list[Client]]:
    made = [connect(server, timeout=SOON_S, **options) for _ in range(count)]  # type: ignore[arg-type]
    for client in made:
        await client.open()
    try:
        yield made
    finally:
        for client in made:
            await client.close()


async def received(subscription: Subscription, count: int) -> list[Publication]:
    return [await subscription.next(SOON_S) for _ in range(count)]


def test_a_subscriber_receives_matching_publications_unchanged(server: str) -> None:
    async def scenario() -> None:
        async with clients(server, 2) as (publisher, subscriber), subscriber.subscribe("price > 90") as prices:
            await publisher.publish({"price": 80, "n": 1})
            id = await publisher.publish({"price": 92.5, "symbol": "IBM", "hot": True}, b"\x00payload")
            (publication,) = await received(prices, 1)
            assert publication.attributes == {"price": 92.5, "symbol": "IBM", "hot": True}
            assert publication["symbol"] == "IBM"
            assert publication.payload == b"\x00payload"
            assert publication.id == id
            assert publication.id.broker == publisher.broker == "b1"
            assert len(prices) == 0

    asyncio.run(scenario())


def test_publications_of_a_pipeline_are_all_answered_and_arrive_in_order(server: str) -> None:
    async def scenario() -> None:
        async with clients(server, 2) as (publisher, subscriber), subscriber.subscribe("kind = 'pipeline'") as stream:
            answers = [await publisher.publish_soon({"kind": "pipeline", "n": n}) for n in range(3000)]
            ids = await asyncio.gather(*answers)
            assert len(set(ids)) == 3000
            assert [publication["n"] for publication in await received(stream, 3000)] == list(range(3000))

    asyncio.run(scenario())


def test_many_publish_calls_may_wait_at_once(server: str) -> None:
    async def scenario() -> None:
        async with clients(server) as (client,):
            ids = await asyncio.gather(*(client.publish({"n": n}) for n in range(3000)))
            assert len(set(ids)) == 3000

    asyncio.run(scenario())


def test_a_stream_of_several_expressions_has_a_publication_once_with_the_names_that_match(server: str) -> None:
    async def scenario() -> None:
        expressions: dict[str, str | Expression] = {"low": "several < 10", "odd": attr("several").is_in(1, 3, 5)}
        async with clients(server) as (client,), client.subscribe(expressions) as stream:
            for n in (3, 4, 11, 5):
                await client.publish({"several": n})
            got = [(each["several"], each.subscriptions) for each in await received(stream, 3)]
            assert got == [(3, ("low", "odd")), (4, ("low",)), (5, ("low", "odd"))]

    asyncio.run(scenario())


def test_two_subscriptions_of_a_client_each_get_a_publication_that_both_match(server: str) -> None:
    async def scenario() -> None:
        async with (
            clients(server) as (client,),
            client.subscribe("both > 1") as one,
            client.subscribe("both > 2") as other,
        ):
            for n in range(200):
                await client.publish({"both": n})
            assert [each["both"] for each in await received(one, 198)] == list(range(2, 200))
            assert [each["both"] for each in await received(other, 197)] == list(range(3, 200))

    asyncio.run(scenario())


def test_iterating_subscribes_and_closing_ends_the_iteration(server: str) -> None:
    async def scenario() -> list[object]:
        got: list[object] = []
        async with clients(server) as (client,):
            subscription = client.subscribe("iterating = TRUE")

            async def read() -> None:
                async for publication in subscription:
                    got.append(publication["n"])
                    if publication["n"] == 2:
                        break

            reading = asyncio.create_task(read())
            n = 0
            while not reading.done():
                # The task subscribes at an unknown time, and receives only later publications.
                await client.publish({"iterating": True, "n": 1 if n == 0 else 2})
                n += bool(got)
                # A pause between two publications.
                await asyncio.sleep(0.01)
            empty = client.subscribe("nothing = 1")
            left = asyncio.create_task(_all(empty))
            await until(lambda: empty._waiter is not None, what="the iteration waits for a publication")
        assert await left == []
        return got

    assert asyncio.run(scenario())[-1] == 2


async def _all(subscription: Subscription) -> list[Publication]:
    return [publication async for publication in subscription]


def test_a_subscription_that_was_left_gets_nothing_more(server: str) -> None:
    async def scenario() -> None:
        async with clients(server, 2) as (publisher, subscriber):
            async with subscriber.subscribe("left = TRUE", name="again") as first:
                await publisher.publish({"left": True, "n": 1})
                await received(first, 1)
            await publisher.publish({"left": True, "n": 2})
            async with subscriber.subscribe("left = TRUE", name="again") as second:
                await publisher.publish({"left": True, "n": 3})
                assert [each["n"] for each in await received(second, 1)] == [3]

    asyncio.run(scenario())


def test_a_name_can_be_used_once_at_a_time(server: str) -> None:
    async def scenario() -> None:
        async with clients(server) as (client,), client.subscribe("a = 1", name="twice"):
            with pytest.raises(ClientError, match="a subscription of this client is called 'twice' already"):
                async with client.subscribe("a = 2", name="twice"):
                    pass

    asyncio.run(scenario())


def test_an_expression_that_cannot_be_read_is_refused_and_its_companions_are_withdrawn(server: str) -> None:
    async def scenario() -> None:
        async with clients(server) as (client,):
            with pytest.raises(InvalidError, match="was refused"):
                async with client.subscribe({"good": "refused = 1", "bad": "refused >> 1"}):
                    pass
            await client.publish({"refused": 1})
            async with client.subscribe("refused = 1", name="good") as stream:
                await client.publish({"refused": 1, "n": 2})
                assert [each["n"] for each in await received(stream, 1)] == [2]

    asyncio.run(scenario())


def test_invalid_attributes_are_refused_before_they_are_sent(server: str) -> None:
    async def scenario() -> None:
        async with clients(server) as (client,):
            with pytest.raises(MatchingError, match="attribute 'when'"):
                await client.publish({"when": [1]})  # type: ignore[dict-item]
            with pytest.raises(TooLargeError, match="more than the 1048576 that the broker takes in a frame"):
                await client.publish({"a": 1}, bytes(1 << 20))
            with pytest.raises(TooLargeError, match="the limit is 524288"):
                await client.publish({"a": 1}, bytes(600_000))
            assert await client.publish({"a": 1}) is not None

    asyncio.run(scenario())


def test_a_subscriber_that_reads_nothing_queues_no_more_than_its_window_and_loses_nothing(server: str) -> None:
    async def scenario() -> None:
        async with (
            clients(server) as (publisher,),
            clients(server, window=50) as (slow,),
            slow.subscribe("slow = TRUE") as stream,
        ):
            answers = [await publisher.publish_soon({"slow": True, "n": n}) for n in range(1000)]
            await asyncio.gather(*answers)
            # Time for more deliveries than the window, which must not come.
            await asyncio.sleep(0.2)
            assert 0 < len(stream) <= 50
            assert [each["n"] for each in await received(stream, 1000)] == list(range(1000))

    asyncio.run(scenario())


def test_at_most_once_needs_no_answers(server: str) -> None:
    async def scenario() -> None:
        async with (
            clients(server, 2, mode="at-most-once") as (publisher, subscriber),
            subscriber.subscribe("once = TRUE") as stream,
        ):
            for n in range(3000):
                assert await publisher.publish({"once": True, "n": n}) is None
            assert [each["n"] for each in await received(stream, 3000)] == list(range(3000))

    asyncio.run(scenario())


def test_at_most_once_a_subscriber_that_reads_nothing_queues_little(server: str) -> None:
    async def scenario() -> None:
        async with (
            clients(server) as (publisher,),
            clients(server, mode="at-most-once", window=50) as (slow,),
            slow.subscribe("held = TRUE") as stream,
        ):
            for n in range(3000):
                await publisher.publish_soon({"held": True, "n": n}, bytes(1000))
            await publisher.flush()
            # Time for more deliveries, which must not come.
            await asyncio.sleep(0.2)
            # The window, and the deliveries of the read that filled it.
            assert 50 <= len(stream) < 50 + 300
            got = [each["n"] for each in await received(stream, 1000)]
            assert got == sorted(set(got))

    asyncio.run(scenario())


def test_an_expired_publication_is_not_delivered(server: str) -> None:
    async def scenario() -> None:
        async with (
            clients(server) as (publisher,),
            clients(server, window=1) as (slow,),
            slow.subscribe("expiring = TRUE") as stream,
        ):
            await publisher.publish({"expiring": True, "n": 1})
            await publisher.publish({"expiring": True, "n": 2}, expires=0.05)
            await publisher.publish({"expiring": True, "n": 3}, expires=60)
            # The lifetime of the second ends.
            await asyncio.sleep(0.3)
            assert [each["n"] for each in await received(stream, 2)] == [1, 3]

    asyncio.run(scenario())


def test_publishing_outside_the_advertisements_of_a_strict_overlay_is_refused_with_that_reason(tmp_path: Path) -> None:
    async def scenario(server: str) -> None:
        async with clients(server, 2) as (publisher, subscriber), subscriber.subscribe("price > 0") as stream:
            with pytest.raises(NotAdvertisedError, match="not advertised"):
                await publisher.publish({"price": 5})
            name = await publisher.advertise(attr("price") < 10)
            await publisher.publish({"price": 5})
            with pytest.raises(RefusedError) as refusal:
                await publisher.publish({"price": 50})
            assert refusal.value.reason == "not-advertised"
            assert publisher.refusals == {"not-advertised": 2}
            await publisher.unadvertise(name)
            with pytest.raises(NotAdvertisedError):
                await publisher.publish({"price": 5})
            assert [each["price"] for each in await received(stream, 1)] == [5]

    with brokers(tmp_path, ["b1"], settings='advertise = "strict"') as running:
        asyncio.run(scenario(running["b1"].url))


def test_the_error_without_a_broker_names_the_servers() -> None:
    port = free_ports(1)[0]

    async def scenario() -> None:
        async with connect(f"mercast://127.0.0.1:{port}"):
            pass

    with pytest.raises(ConnectError, match=rf"cannot connect to 127.0.0.1:{port} \(connection refused\)"):
        asyncio.run(scenario())


def test_the_client_connects_to_the_first_server_that_answers(server: str) -> None:
    async def scenario() -> str:
        async with connect([f"mercast://127.0.0.1:{free_ports(1)[0]}", server]) as client:
            return client.broker

    assert asyncio.run(scenario()) == "b1"


def test_a_durable_client_needs_a_broker_that_stores(server: str) -> None:
    async def scenario() -> None:
        async with connect(server, name="desk", durable=True):
            pass

    with pytest.raises(RefusedError) as refusal:
        asyncio.run(scenario())
    assert refusal.value.reason == "not-durable"


def test_two_clients_cannot_have_one_name(server: str) -> None:
    async def scenario() -> None:
        async with connect(server, name="desk"), connect(server, name="desk"):
            pass

    with pytest.raises(RefusedError, match="desk") as refusal:
        asyncio.run(scenario())
    assert refusal.value.reason == "name-in-use"


def test_waiting_for_a_publication_can_time_out(server: str) -> None:
    async def scenario() -> None:
        async with clients(server) as (client,), client.subscribe("never = 1") as stream:
            await stream.next(0.05)

    with pytest.raises(TimeoutExpiredError, match=r"a publication did not come within 0.05 s"):
        asyncio.run(scenario())


def test_the_synchronous_client_does_the_same(server: str) -> None:
    with connect_sync(server) as client, client.subscribe("sync > 1") as stream:
        client.publish({"sync": 1})
        client.publish({"sync": 2}, b"x")
        client.publish({"sync": 3})
        publication = stream.next(SOON_S)
        assert (publication["sync"], publication.payload) == (2, b"x")
        for publication in stream:
            assert publication["sync"] == 3
            break
        with pytest.raises(TimeoutExpiredError):
            stream.next(0.05)
    with pytest.raises(ConnectError), connect_sync(f"mercast://127.0.0.1:{free_ports(1)[0]}"):
        pass


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("http://127.0.0.1:7001", "http:// is not known; write mercast://host:port"),
        ("mercast://127.0.0.1", "is not an address; write host:port"),
        ("mercast://127.0.0.1:0", "port 0 is no port to connect to"),
        ("mercast://127.0.0.1:7001,", "is not an address"),
    ],
)
def test_an_address_that_cannot_be_read_is_refused(text: str, expected: str) -> None:
    with pytest.raises(ServerAddressError, match=expected):
        parse_servers(text)


def test_addresses_may_be_in_one_text_or_in_several() -> None:
    one = parse_servers("mercast://127.0.0.1:7001,[::1]:7002, mercast://example.org:7003/")
    assert [str(address) for address in one] == ["127.0.0.1:7001", "[::1]:7002", "example.org:7003"]
    assert parse_servers(["127.0.0.1:7001", "[::1]:7002", "example.org:7003"]) == one
