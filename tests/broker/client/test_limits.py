"""Requests beyond the broker's limits: the client refuses them before it sends them, finds the one that still ends a
connection, and reconnects with growing pauses."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from broker import Client, RefusedError, connect
from broker.client import reconnect, validation
from broker.client.errors import ClientError, ClosedError, InvalidError, TooLargeError
from broker.wire.client_codec import encode
from broker.wire.client_frames import Goodbye, Reason, Welcome
from broker.wire.limits import LONGEST_NAME, Limits
from routing.messages import LARGEST_NUMBER, PublicationId
from tests.harness.client_processes import brokers
from tests.harness.conditions import until
from tests.harness.mercast_broker import BrokerProcess
from tests.harness.proxy import Proxy

SOON_S = 30.0
TEXT_BYTES = Limits().text_bytes


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with brokers(tmp_path_factory.mktemp("broker"), ["b1"]) as running:
        yield running["b1"]


def expression_of(size: int) -> str:
    return f"a = '{'x' * (size - 6)}'"


async def subscribed(client: Client, name: str, expression: str = "a = 1") -> None:
    await client.subscribe({name: expression}).__aenter__()


TOO_LARGE: dict[str, Callable[[Client], Awaitable[object]]] = {
    "subscription": lambda client: subscribed(client, "n" * 256),
    "subscription in letters of two bytes": lambda client: subscribed(client, "ä" * 128),
    "expression": lambda client: subscribed(client, "n", expression_of(TEXT_BYTES + 1)),
    "advertisement": lambda client: client.advertise("a = 1", name="n" * 256),
    "advertised": lambda client: client.advertise(expression_of(TEXT_BYTES + 1), name="n"),
    "unsubscribe": lambda client: client.unsubscribe("n" * 256),
    "unadvertise": lambda client: client.unadvertise("n" * 256),
    "trace": lambda client: client.trace_steps(PublicationId("b" * (TEXT_BYTES + 1), 1, 1)),
}
INVALID: dict[str, Callable[[Client], Awaitable[object]]] = {
    "empty name": lambda client: subscribed(client, ""),
    "name of another type": lambda client: subscribed(client, 7),  # type: ignore[arg-type]
    "surrogate in a name": lambda client: subscribed(client, "\ud800"),
    "surrogate in an expression": lambda client: subscribed(client, "n", "a = '\ud800'"),
    "unsubscribe of nothing": lambda client: client.unsubscribe(""),
    "trace of nothing": lambda client: client.trace_steps(PublicationId("b1", 1, LARGEST_NUMBER + 1)),
    "lifetime": lambda client: client.publish({"a": 1}, expires=1e30),
    "lifetime that brokers cannot pass on": lambda client: client.publish({"a": 1}, expires=1e10),
    "infinite lifetime": lambda client: client.publish({"a": 1}, expires=float("inf")),
    "lifetime as a text": lambda client: client.publish({"a": 1}, expires="10s"),  # type: ignore[arg-type]
    "payload as a text": lambda client: client.publish({"a": 1}, "text"),  # type: ignore[arg-type]
    "payload of another type": lambda client: client.publish({"a": 1}, 7),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("what", [*TOO_LARGE, *INVALID])
def test_requests_that_do_not_fit_the_wire_format_are_refused_before_they_are_sent(
    broker: BrokerProcess, what: str
) -> None:
    async def scenario() -> None:
        async with connect(broker.url, timeout=SOON_S) as client:
            if what in TOO_LARGE:
                with pytest.raises(TooLargeError, match=r"has \d+ bytes; the limit is (255|65536)$"):
                    await TOO_LARGE[what](client)
            else:
                with pytest.raises(InvalidError):
                    await INVALID[what](client)
            assert await client.publish({"a": 1}) is not None
            assert client.reconnects == 0

    asyncio.run(scenario())


def test_the_error_names_the_value_its_size_and_the_limit(broker: BrokerProcess) -> None:
    async def scenario() -> None:
        async with connect(broker.url, timeout=SOON_S) as client:
            with pytest.raises(
                TooLargeError, match=r"subscription 'n+'… was refused: its name has 300 bytes; the limit"
            ):
                await subscribed(client, "n" * 300)
            with pytest.raises(
                TooLargeError, match=r"subscription 'long' was refused: its expression .a = 'x+.… has 70000 bytes"
            ):
                await subscribed(client, "long", expression_of(70_000))
            with pytest.raises(InvalidError, match=r"its payload 'text' is of type str, and must be bytes; a text is"):
                await client.publish({"a": 1}, "text")  # type: ignore[arg-type]
            with pytest.raises(InvalidError, match=r"expires is '10s', of type str, and must be a number of seconds"):
                await client.publish({"a": 1}, expires="10s")  # type: ignore[arg-type]

    asyncio.run(scenario())


def test_requests_of_the_largest_allowed_size_are_accepted(broker: BrokerProcess) -> None:
    async def scenario() -> None:
        async with connect(broker.url, name="c" * LONGEST_NAME, timeout=SOON_S) as client:
            value = "x" * (TEXT_BYTES - 6)
            async with client.subscribe(f"a = '{value}'", name="n" * LONGEST_NAME) as stream:
                await client.publish({"a": value})
                assert (await stream.next(SOON_S)).subscriptions == ("n" * LONGEST_NAME,)
            assert client.reconnects == 0

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("payload", "sent"),
    [
        (bytearray(b"abc"), b"abc"),
        (memoryview(b"abcdef")[::2], b"ace"),
        (memoryview(array("i", [1, 2, 3])), array("i", [1, 2, 3]).tobytes()),
    ],
    ids=["bytearray", "every other byte", "integers"],
)
def test_a_buffer_is_sent_as_its_bytes(broker: BrokerProcess, payload: bytes, sent: bytes) -> None:
    async def scenario() -> None:
        async with connect(broker.url, timeout=SOON_S) as client, client.subscribe("buffered = 1") as stream:
            await asyncio.wait_for(client.publish({"buffered": 1}, payload), SOON_S)
            assert (await stream.next(SOON_S)).payload == sent
            assert client.reconnects == 0

    asyncio.run(scenario())


def test_an_expression_that_is_too_long_replaces_none(broker: BrokerProcess) -> None:
    async def scenario() -> None:
        async with connect(broker.url, timeout=SOON_S) as client:
            stream = await client.subscribe({"one": "replaced = 1", "two": "replaced = 2"}).__aenter__()
            with pytest.raises(TooLargeError):
                await stream.add("one", expression_of(TEXT_BYTES + 1))
            assert set(stream.expressions) == {"two"}
            for n in (1, 2):
                await client.publish({"replaced": n})
            assert (await stream.next(SOON_S)).attributes == {"replaced": 2}

    asyncio.run(scenario())


@pytest.mark.parametrize("name", ["c" * 256, "\ud800"])
def test_a_client_whose_name_cannot_be_sent_is_not_created(name: str) -> None:
    async def scenario() -> None:
        with pytest.raises(RefusedError, match="client"):
            connect("mercast://127.0.0.1:1", name=name)
        with pytest.raises(ClientError, match="cannot be sent"):
            connect("mercast://127.0.0.1:1", token="\ud800")

    asyncio.run(scenario())


def test_the_limit_that_the_broker_announces_applies(tmp_path: Path) -> None:
    async def scenario(broker: BrokerProcess) -> None:
        async with connect(broker.url, timeout=SOON_S) as client:
            with pytest.raises(TooLargeError, match=r"its expression .* has 101 bytes; the limit is 100"):
                await subscribed(client, "n", expression_of(101))
            with pytest.raises(TooLargeError, match="its name has 101 bytes; the limit is 100"):
                await subscribed(client, "n" * 101)
            await subscribed(client, "n" * 100, expression_of(100))
            assert client.reconnects == 0

    with brokers(tmp_path, ["b1"], tables="[limits]\ntext_bytes = 100\n") as running:
        asyncio.run(scenario(running["b1"]))


def test_a_header_that_is_smaller_than_a_text_is_the_limit_of_texts(tmp_path: Path) -> None:
    async def scenario(broker: BrokerProcess) -> None:
        async with connect(broker.url, timeout=SOON_S) as client:
            with pytest.raises(TooLargeError, match="has 513 bytes; the limit is 512"):
                await subscribed(client, "n" * LONGEST_NAME, expression_of(513))
            await subscribed(client, "n" * LONGEST_NAME, expression_of(512))
            assert client.reconnects == 0

    with brokers(tmp_path, ["b1"], tables="[limits]\nheader_bytes = 1024\n") as running:
        asyncio.run(scenario(running["b1"]))


def test_requests_beyond_the_limits_of_another_broker_fail_when_the_client_moves_there(
    broker: BrokerProcess, tmp_path: Path
) -> None:
    small = "[limits]\ntext_bytes = 100\npublication_bytes = 500\nframe_bytes = 1024\n"

    async def scenario(other: BrokerProcess) -> None:
        async with (
            Proxy(broker.listen) as proxy,
            connect([proxy.url, other.url], timeout=SOON_S) as client,
        ):
            long = await client.subscribe(f"moves = 1 AND {expression_of(200)}", name="long").__aenter__()
            short = await client.subscribe("moves = 1", name="short").__aenter__()
            proxy.loses_to_client = True
            answer = await client.publish_soon({"moves": 1}, bytes(2000))
            proxy.refuses = True
            proxy.cut()
            with pytest.raises(TooLargeError, match="the limit is 100"):
                await long.next(SOON_S)
            with pytest.raises(TooLargeError, match="more than the 1024 that the broker takes"):
                await asyncio.wait_for(answer, SOON_S)
            await client.publish({"moves": 1, "n": 2})
            assert (await short.next(SOON_S))["n"] == 2
            assert client.reconnects == 1

    with brokers(tmp_path, ["b2"], tables=small) as running:
        asyncio.run(scenario(running["b2"]))


def test_of_many_requests_the_one_that_ends_the_connection_fails_and_the_others_do_not(
    broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(validation, "LONGEST_NAME", 1024)

    async def scenario() -> None:
        # Without a timeout, as in a gateway.
        async with connect(broker.url, timeout=None) as client, asyncio.timeout(SOON_S):
            active = await client.subscribe("suspect = 0", name="active").__aenter__()
            names = [f"s{n}" if n % 7 else f"{n}-" + "n" * 300 for n in range(20)]
            requested = [client.subscribe("suspect = 1", name=name) for name in names]
            published = asyncio.create_task(client.publish({"suspect": 0}))
            outcomes = await asyncio.gather(*(each.__aenter__() for each in requested), return_exceptions=True)
            for name, outcome in zip(names, outcomes, strict=True):
                if len(name) > LONGEST_NAME:
                    assert isinstance(outcome, RefusedError)
                    assert outcome.reason == Reason.MALFORMED
                    assert "name has 30" in str(outcome)
                else:
                    assert not isinstance(outcome, BaseException), outcome
            await published
            assert (await active.next()).attributes == {"suspect": 0}
            await client.publish({"suspect": 1})
            for each, outcome in zip(requested, outcomes, strict=True):
                if not isinstance(outcome, BaseException):
                    assert (await each.next()).attributes == {"suspect": 1}
            # One loss of the connection without a known cause, then one for each of the three requests.
            assert client.reconnects == 4

    asyncio.run(scenario())


class Breaker:
    """Sends a welcome as a broker does, then ends the connection, with a goodbye or without."""

    def __init__(self, goodbye: Goodbye | None) -> None:
        self.connections = 0
        self._goodbye = goodbye

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            await reader.read(1 << 16)
            writer.write(encode(Welcome("b1", 1, False, 0, 1 << 20, TEXT_BYTES, 16, 0, 16)))
            if self._goodbye is not None:
                writer.write(encode(self._goodbye))
            await writer.drain()
        finally:
            # The test may end at any point.
            writer.close()


@asynccontextmanager
async def breaking(goodbye: Goodbye | None) -> AsyncIterator[tuple[Breaker, str]]:
    breaker = Breaker(goodbye)
    server = await asyncio.start_server(breaker.accept, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    try:
        yield breaker, f"mercast://{host}:{port}"
    finally:
        server.close()


def test_pauses_grow_while_connections_break_right_after_the_welcome() -> None:
    async def scenario() -> None:
        async with breaking(None) as (breaker, url), connect(url) as client:
            # The time in which connections are counted.
            await asyncio.sleep(1.5)
            # Without jitter at 0, 0.05, 0.15, 0.35, 0.75 and 1.55 s. Jitter is up to half of each pause.
            assert 3 <= breaker.connections <= 7
            assert client.reconnects >= 2

    asyncio.run(scenario())


def test_a_connection_that_lasted_is_made_again_at_once(broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconnect, "PROVEN_AFTER_S", 0.2)
    monkeypatch.setattr(reconnect, "SHORTEST_PAUSE_S", 1000.0)
    monkeypatch.setattr(reconnect, "LONGEST_PAUSE_S", 1000.0)

    async def scenario() -> None:
        async with Proxy(broker.listen) as proxy, connect(proxy.url) as client:
            # Longer than PROVEN_AFTER_S.
            await asyncio.sleep(0.3)
            proxy.cut()
            await until(lambda: client.reconnects > 0, SOON_S)
            proxy.cut()
            # Time for a connection that must not be made.
            await asyncio.sleep(0.3)
            assert client.reconnects == 1
            assert not client.is_connected

    asyncio.run(scenario())


def test_a_client_gives_up_a_broker_that_ends_every_connection_as_malformed() -> None:
    async def scenario() -> None:
        words = Goodbye(Reason.MALFORMED, "no such frame")
        async with breaking(words) as (breaker, url), connect(url, timeout=None) as client:
            with pytest.raises(ClosedError, match=r"broker b1 ended 3 connections in a row: .*no such frame"):
                await asyncio.wait_for(client.publish({"a": 1}), SOON_S)
            assert breaker.connections == 3

    asyncio.run(scenario())
