"""For any bytes that a connection sends, the broker names the error, counts it, and continues to serve others."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from pathlib import Path

import msgpack
import pytest

from broker import connect
from broker.wire import broker_codec, link_handshake
from broker.wire.client_codec import encode, encode_publish
from broker.wire.client_frames import Acknowledge, Hello, Ping, PublishRequest, Reason, Subscribe
from broker.wire.limits import Limits
from broker.wire.link_handshake import LinkGoodbye, LinkHello
from routing.messages import Heartbeat
from tests.harness.broker_processes import InLoop, OverlayFileMaker, run
from tests.harness.conditions import until
from tests.harness.raw_client import RawClient

Case = tuple[bytes, str]

MALFORMED: dict[str, Case] = {
    "garbage": (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "announced"),
    "oversized": ((1 << 30).to_bytes(4, "big") + b"x", "hello_bytes"),
    "empty": (bytes(4), "shorter than any header"),
    "no hello": (encode(Ping(1)), "starts with Hello"),
    "unknown kind": (bytes((0, 0, 0, 9, 0x94, 1, 200, 0xCE, 0, 0, 0, 9, 0x90)), "no frame of a client"),
    "a broker's frame": (broker_codec.encode(Heartbeat(1, ())), "starts with LinkHello"),
    "wrong shape": (encode(Hello("a", "b"))[:-3] + b"\xc1\xc1\xc1", "Hello"),
}


def one(tmp_path: Path, **limits: object) -> OverlayFileMaker:
    return OverlayFileMaker(tmp_path, ["b1"], tables={"limits": limits})


async def still_serves(file: OverlayFileMaker) -> None:
    async with connect(file.url("b1")) as client, client.subscribe("n = 1") as stream:
        await client.publish({"n": 1})
        assert (await stream.next(40.0))["n"] == 1


@pytest.mark.parametrize("what", MALFORMED)
def test_a_malformed_first_frame_is_refused_by_name(tmp_path: Path, what: str) -> None:
    data, reason = MALFORMED[what]
    file = one(tmp_path)

    async def test() -> None:
        async with InLoop(file) as overlay, RawClient(file.ports["b1"]) as raw:
            await raw.send(data)
            if what == "a broker's frame":
                goodbye = link_handshake.decode(await raw.raw_frame(), Limits())
                assert isinstance(goodbye, LinkGoodbye)
                assert reason in goodbye.reason
            else:
                answer = await raw.goodbye()
                assert answer.reason == Reason.MALFORMED
                assert reason in answer.text
            assert overlay["b1"].violations.counts == {"malformed": 1}
            await still_serves(file)

    run(test)


def test_a_client_of_another_version_is_refused_with_both_versions(tmp_path: Path) -> None:
    file = one(tmp_path)

    async def test() -> None:
        async with InLoop(file) as overlay, RawClient(file.ports["b1"]) as raw:
            frame = bytearray(encode(Hello("a", "b")))
            frame[5] = 9
            await raw.send(bytes(frame))
            answer = await raw.goodbye()
            assert answer.reason == Reason.VERSION
            assert "version 9" in answer.text
            assert overlay["b1"].violations.counts == {"version": 1}
            await still_serves(file)

    run(test)


def test_a_broker_of_another_version_is_refused(tmp_path: Path) -> None:
    file = one(tmp_path)

    async def test() -> None:
        async with InLoop(file), RawClient(file.ports["b1"]) as raw:
            await raw.send(link_handshake.encode(link_hello(), version=7))
            goodbye = link_handshake.decode(await raw.raw_frame(), Limits())
            assert isinstance(goodbye, LinkGoodbye)
            assert goodbye.code == link_handshake.VERSION_UNKNOWN
            await still_serves(file)

    run(test)


def link_hello(**changes: object) -> LinkHello:
    fields: dict[str, object] = {
        "broker": "b9",
        "incarnation": 1,
        "overlay": "test",
        "protocol": "d-dbr",
        "clusters": (),
        "address": "127.0.0.1:1",
        "greeting": Heartbeat(1, ("",)),
    }
    return LinkHello(**{**fields, **changes})  # type: ignore[arg-type]


REFUSED_LINKS: dict[str, tuple[dict[str, object], str]] = {
    "another overlay": ({"overlay": "other"}, "this is overlay 'test'"),
    "another protocol": ({"protocol": "fbr"}, "routes by d-dbr"),
    "the same id": ({"broker": "b1"}, "is in use"),
    "no credit": ({"capabilities": ("link-state",)}, "lacks credit"),
}


@pytest.mark.parametrize("what", REFUSED_LINKS)
def test_a_broker_that_does_not_belong_here_is_refused(tmp_path: Path, what: str) -> None:
    changes, reason = REFUSED_LINKS[what]
    file = one(tmp_path)

    async def test() -> None:
        async with InLoop(file) as overlay, RawClient(file.ports["b1"]) as raw:
            await raw.send(link_handshake.encode(link_hello(**changes)))
            goodbye = link_handshake.decode(await raw.raw_frame(), Limits())
            assert isinstance(goodbye, LinkGoodbye)
            assert reason in goodbye.reason
            assert not overlay["b1"].neighbours.links

    run(test)


def test_brokers_without_a_common_cluster_are_not_linked(tmp_path: Path) -> None:
    file = OverlayFileMaker(tmp_path, ["b1"], clusters={"b1": ("x",)}, overlay={"protocol": "merc"})

    async def test() -> None:
        async with InLoop(file), RawClient(file.ports["b1"]) as raw:
            await raw.send(link_handshake.encode(link_hello(protocol="merc", clusters=("y",))))
            goodbye = link_handshake.decode(await raw.raw_frame(), Limits())
            assert isinstance(goodbye, LinkGoodbye)
            assert "shares nothing with" in goodbye.reason

    run(test)


LATER: Mapping[str, tuple[tuple[object, ...], str]] = {
    "an acknowledgement of nothing": ((Acknowledge(7),), "never sent"),
    "an oversized frame": (((1 << 20).to_bytes(4, "big"),), "the limit frame_bytes is 1048576"),
    "a second hello": ((Hello("x", "y"),), "does not send Hello"),
    "a truncated expression": ((encode(Subscribe(1, "a", "n = 1"))[:-2] + b"\xc1\xc1",), "Subscribe"),
}


@pytest.mark.parametrize("what", LATER)
def test_a_client_that_misbehaves_later_is_disconnected_by_name(tmp_path: Path, what: str) -> None:
    frames, reason = LATER[what]
    file = one(tmp_path)

    async def test() -> None:
        async with InLoop(file) as overlay, RawClient(file.ports["b1"]) as raw:
            await raw.greet()
            await raw.send(*frames)  # type: ignore[arg-type]
            answer = await raw.goodbye()
            assert answer.reason == Reason.MALFORMED
            assert reason in answer.text
            assert overlay["b1"].violations.counts["malformed"] == 1
            await still_serves(file)

    run(test)


def test_random_bytes_and_cut_frames_leave_the_broker_serving(tmp_path: Path) -> None:
    file = OverlayFileMaker(tmp_path, ["b1", "b2"], [("b1", "b2")])
    generator = random.Random(5)
    good = [
        encode(Hello("fuzz", "s")),
        encode(Subscribe(1, "a", "n = 1")),
        encode_publish(1, msgpack.packb({"n": 1}), b"payload"),
        link_handshake.encode(link_hello()),
        broker_codec.encode(Heartbeat(1, ("",))),
    ]

    async def attack(port: int) -> None:
        async with RawClient(port) as raw:
            stream = bytearray(b"".join(generator.choices(good, k=4)))
            if generator.random() < 0.7:
                stream[:0] = good[generator.choice((0, 3))]
            for _ in range(generator.randrange(4)):
                stream[generator.randrange(len(stream))] = generator.randrange(256)
            if generator.random() < 0.3:
                stream = bytearray(generator.randbytes(200))
            await raw.send(bytes(stream[: generator.randrange(len(stream))]))
            if generator.random() < 0.5:
                try:
                    async with asyncio.timeout(0.02):
                        await raw.raw_frame()
                except TimeoutError:
                    pass

    async def test() -> None:
        async with InLoop(file) as overlay:
            for _ in range(200):
                await attack(file.ports["b1"])
            assert overlay["b1"].violations.counts["malformed"] > 20
            await overlay.quiet()
            assert "b2" in overlay["b1"].neighbours.links
            await still_serves(file)

    run(test)


def test_silent_connections_are_closed(tmp_path: Path) -> None:
    file = one(tmp_path, hello="200ms", idle="400ms")

    async def test() -> None:
        async with InLoop(file) as overlay, RawClient(file.ports["b1"]) as mute, RawClient(file.ports["b1"]) as idle:
            await idle.greet()
            assert (await mute.goodbye()).reason == Reason.IDLE
            assert (await idle.goodbye()).reason == Reason.IDLE
            assert overlay["b1"].violations.counts == {"hello": 1, "idle": 1}

    run(test)


def test_limits_of_a_client_are_named_and_counted(tmp_path: Path) -> None:
    file = one(tmp_path, connections=1, subscriptions=2, attributes=3, publication_bytes=1000)

    async def test() -> None:
        async with InLoop(file) as overlay, connect(file.url("b1")) as client:
            server = overlay["b1"]
            async with RawClient(file.ports["b1"]) as second:
                await second.send(Hello("second", "s"))
                answer = await second.goodbye()
                assert answer.reason == Reason.LIMIT
            async with client.subscribe({"1": "n = 1", "2": "n = 2"}):
                for text in ("n = 3", "this is no expression"):
                    with pytest.raises(Exception, match="refused"):
                        await client.subscribe(text).__aenter__()
            with pytest.raises(Exception, match="4 attributes are too many; the limit is 3"):
                await client.publish({"a": 1, "b": 2, "c": 3, "d": 4})
            with pytest.raises(Exception, match="too much; the limit is 1000"):
                await client.publish({"a": 1}, bytes(2000))
            assert server.violations.counts == {"connections": 1, "attributes": 1}
            assert server.driver.core.drops == {"refused: limit of subscriptions": 1, "refused: too-large": 1}

    run(test)


def test_sessions_are_bounded_also_those_of_clients_that_are_away(tmp_path: Path) -> None:
    file = OverlayFileMaker(
        tmp_path,
        ["b1"],
        tables={"store": {"data_dir": "data", "fsync": "never"}, "limits": {"connections": 2, "sessions": 3}},
    )

    async def connect_and_disconnect(name: str) -> None:
        async with RawClient(file.ports["b1"]) as raw:
            await raw.greet(name, is_durable=True)

    async def refused(name: str) -> str:
        async with RawClient(file.ports["b1"]) as raw:
            await raw.send(Hello(name, "session"))
            answer = await raw.goodbye()
            assert answer.reason == Reason.LIMIT
            return answer.text

    async def test() -> None:
        async with InLoop(file) as overlay:
            for n in range(3):
                await connect_and_disconnect(f"sensor-{n}")
            await until(lambda: not overlay["b1"].clients.sessions)
            assert await refused("sensor-3") == "3 sessions are kept, of clients here or away, and no more may be"
            assert overlay["b1"].violations.counts == {"sessions": 1}
            assert len(overlay["b1"].driver.core.clients) == 3
            await overlay.stop("b1")
            await overlay.start("b1")
            assert "3 sessions are kept" in await refused("sensor-4"), "the limit applies after a restart"
            await connect_and_disconnect("sensor-1")
            async with connect(file.url("b1"), name="sensor-2"):
                pass
            await until(lambda: len(overlay["b1"].driver.core.clients) == 2)
            await connect_and_disconnect("sensor-3")

    run(test)


def test_more_publications_than_the_window_end_the_connection(tmp_path: Path) -> None:
    file = OverlayFileMaker(
        tmp_path,
        ["b1", "b2"],
        [("b1", "b2")],
        tables={"limits": {"publish_window": 10, "window": 4, "credit": 1, "link_queue": 1}},
    )

    async def test() -> None:
        async with (
            InLoop(file) as overlay,
            connect(file.url("b2")) as reader,
            reader.subscribe("TRUE"),
            RawClient(file.ports["b1"]) as raw,
        ):
            await overlay.quiet()
            await raw.greet()
            attributes = msgpack.packb({"n": 1})
            await raw.send(*(PublishRequest(n + 1, attributes) for n in range(100)))
            answer = await raw.goodbye()
            assert answer.reason == Reason.LIMIT
            assert overlay["b1"].violations.counts["publish_window"] == 1
            await until(lambda: overlay["b1"].drain.is_settled)

    run(test)
