"""Connections that have not authenticated have a deadline, small frames and a limited number, whatever they send."""

from __future__ import annotations

import asyncio
import tracemalloc
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import pytest

from broker import connect
from broker.runtime import listener
from broker.runtime.connection import TurnBudget
from broker.runtime.server import BrokerServer
from broker.wire import link_handshake
from broker.wire.client_codec import encode
from broker.wire.client_frames import Goodbye, Hello, Reason, RequestAccepted, Subscribe, Welcome
from broker.wire.framing import FrameSplitter
from broker.wire.limits import Limits, WireError
from broker.wire.link_handshake import LinkHello
from routing.messages import Heartbeat
from tests.harness.broker_processes import InLoop, OverlayFileMaker, run
from tests.harness.conditions import until
from tests.harness.raw_client import RawClient
from tests.harness.secured_overlay import with_certificates

MEBIBYTE = (1 << 20) - 4
HELLO_BYTES = 16 << 10


def one(tmp_path: Path, **limits: object) -> OverlayFileMaker:
    return OverlayFileMaker(tmp_path, ["b1"], tables={"limits": limits})


async def serves(file: OverlayFileMaker) -> None:
    async with connect(file.url("b1")) as client, client.subscribe("n = 1") as stream:
        await client.publish({"n": 1})
        assert (await stream.next(40.0))["n"] == 1


def held_bytes(server: BrokerServer) -> int:
    """The received bytes that the broker keeps for all pending connections."""
    return sum(len(each.connection._splitter._partial) for each in server.listener.pending)


def has_pending(server: BrokerServer, count: int) -> bool:
    return len(server.listener.pending) == count


async def is_closed(reader: asyncio.StreamReader) -> bool:
    """Waits for the next bytes. Returns whether the other end closed the connection instead."""
    try:
        return await reader.read() == b""
    except ConnectionError:
        return True


def test_a_connection_that_sends_single_bytes_is_refused_at_the_deadline(tmp_path: Path) -> None:
    file = one(tmp_path, hello="300ms")

    async def send_single_bytes(raw: RawClient) -> None:
        for byte in (10_000).to_bytes(4, "big") + bytes(10_000):
            await raw.send(bytes((byte,)))
            await asyncio.sleep(0.05)

    async def test() -> None:
        async with InLoop(file) as overlay, RawClient(file.ports["b1"]) as raw:
            sender = asyncio.create_task(send_single_bytes(raw))
            try:
                await until(lambda: overlay["b1"].violations.counts.total() == 1, within_s=10.0)
            finally:
                sender.cancel()
            assert overlay["b1"].violations.counts == {"hello": 1}
            await until(lambda: not overlay["b1"].listener.pending)
            await serves(file)

    run(test)


def test_the_deadline_includes_the_tls_handshake(tmp_path: Path) -> None:
    file = with_certificates(tmp_path, ["b1"], limits={"hello": "300ms"})

    async def test() -> None:
        async with InLoop(file) as overlay:
            reader, writer = await asyncio.open_connection("127.0.0.1", file.ports["b1"])
            # The start of a handshake record that never ends.
            writer.write(bytes((0x16, 3, 1, 0x40, 0)))

            async def send_single_bytes() -> None:
                while True:
                    writer.write(b"\0")
                    await asyncio.sleep(0.05)

            sender = asyncio.create_task(send_single_bytes())
            try:
                assert await is_closed(reader)
            finally:
                sender.cancel()
                writer.close()
            await until(lambda: not overlay["b1"].listener.pending)
            assert overlay["b1"].violations.counts == {"tls": 1}

    run(test)


def test_connections_that_announce_a_large_hello_are_refused_at_once(tmp_path: Path) -> None:
    # The deadline is so late that only the announced length can end the connections.
    file = one(tmp_path, hello="10m")

    async def attack() -> Goodbye:
        async with RawClient(file.ports["b1"]) as raw:
            await raw.send(MEBIBYTE.to_bytes(4, "big"))
            return await raw.goodbye()

    async def test() -> None:
        async with InLoop(file) as overlay:
            for _ in range(4):
                for goodbye in await asyncio.gather(*(attack() for _ in range(100))):
                    assert goodbye.reason == Reason.MALFORMED
                    assert f"hello_bytes is {HELLO_BYTES}" in goodbye.text
            assert overlay["b1"].violations.counts == {"malformed": 400}
            await serves(file)

    run(test, within_s=60.0)


def test_pending_connections_hold_no_more_than_their_hello(tmp_path: Path) -> None:
    file, incomplete = one(tmp_path, hello="10m"), (HELLO_BYTES - 4).to_bytes(4, "big") + bytes(HELLO_BYTES - 5)

    async def test() -> None:
        async with InLoop(file) as overlay, AsyncExitStack() as stack:
            server = overlay["b1"]
            for _ in range(200):
                raw = await stack.enter_async_context(RawClient(file.ports["b1"]))
                await raw.send(incomplete)
            await until(lambda: held_bytes(server) == 200 * (HELLO_BYTES - 1))
            await serves(file)
            assert not server.violations.counts

    run(test)


def test_the_oldest_pending_connection_gives_way_to_a_new_one(tmp_path: Path) -> None:
    file = one(tmp_path, hello="10m", pending_connections=3)

    async def test() -> None:
        async with InLoop(file) as overlay, AsyncExitStack() as stack:
            server, silent = overlay["b1"], list[RawClient]()
            for number in range(5):
                silent.append(await stack.enter_async_context(RawClient(file.ports["b1"])))
                await until(partial(has_pending, server, min(number + 1, 3)))
            for raw in silent[:2]:
                goodbye = await raw.goodbye()
                assert goodbye.reason == Reason.LIMIT
                assert "the limit pending_connections is 3" in goodbye.text
            assert server.violations.counts == {"pending_connections": 2}
            # The connection of an honest client takes the place of another silent one.
            await serves(file)
            assert server.violations.counts == {"pending_connections": 3}
            await silent[4].greet("late")

    run(test)


def test_a_pending_connection_gives_way_also_during_its_tls_handshake(tmp_path: Path) -> None:
    file = with_certificates(tmp_path, ["b1"], limits={"hello": "10m", "pending_connections": 2})

    async def test() -> None:
        async with InLoop(file) as overlay:
            server, silent = overlay["b1"], list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]()
            for number in range(3):
                silent.append(await asyncio.open_connection("127.0.0.1", file.ports["b1"]))
                await until(partial(has_pending, server, min(number + 1, 2)))
            assert await is_closed(silent[0][0])
            assert server.violations.counts == {"pending_connections": 1}
            await until(lambda: len(server.listener._tls_handshakes) == 2)
            for _, writer in silent:
                writer.close()
            await until(lambda: not server.listener.pending)

    run(test)


def test_a_flood_of_connections_does_not_keep_clients_out(tmp_path: Path) -> None:
    file = one(tmp_path, hello="10m", pending_connections=20)

    async def test() -> None:
        async with InLoop(file) as overlay, AsyncExitStack() as stack:
            for _ in range(100):
                raw = await stack.enter_async_context(RawClient(file.ports["b1"]))
                await raw.send(b"\0")
            await serves(file)
            assert len(overlay["b1"].listener.pending) <= 20
            assert overlay["b1"].violations.counts["pending_connections"] >= 80

    run(test)


def test_a_hello_that_waits_for_its_turn_is_neither_late_nor_evicted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = one(tmp_path, pending_connections=1)

    async def test() -> None:
        async with InLoop(file) as overlay, RawClient(file.ports["b1"]) as first:
            server = overlay["b1"]
            with monkeypatch.context() as patch:
                patch.setattr(TurnBudget, "begin_share", lambda _: False)
                await first.send(Hello("first", "session"))
                await until(lambda: any(each.connection.is_delayed for each in server.listener.pending))
                (pending,) = server.listener.pending
                pending.expire()
            welcome = await first.frame()
            assert isinstance(welcome, Welcome)
            assert not server.violations.counts

    run(test)


def test_errors_of_pending_connections_share_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "TurnBudget", partial(TurnBudget, 0, 0))
    file, turns = one(tmp_path), list[int]()

    async def test() -> None:
        turn, is_counting = 0, True

        def count() -> None:
            nonlocal turn
            turn += 1
            if is_counting:
                asyncio.get_running_loop().call_soon(count)

        async with InLoop(file) as overlay:
            violations = overlay["b1"].violations
            counted = violations.count

            def recorded(limit: str, who: str, detail: str = "") -> None:
                turns.append(turn)
                counted(limit, who, detail)

            monkeypatch.setattr(violations, "count", recorded)
            count()
            async with AsyncExitStack() as stack:
                clients = [await stack.enter_async_context(RawClient(file.ports["b1"])) for _ in range(20)]
                await until(partial(has_pending, overlay["b1"], 20))
                # All of them in one turn of the loop, without a wait between two.
                for raw in clients:
                    raw._writer.write(b"\xff" * 8)
                await until(lambda: len(turns) == 20)
            is_counting = False
            assert violations.counts == {"malformed": 20}

    run(test)
    assert len(set(turns)) == 20


def test_after_its_hello_a_client_has_the_configured_limits(tmp_path: Path) -> None:
    """Also if a large request follows the hello at once."""
    file = one(tmp_path, hello_bytes=1_024)
    text = " OR ".join(f"n = {number}" for number in range(1_000))

    async def test() -> None:
        async with InLoop(file) as overlay, RawClient(file.ports["b1"]) as raw:
            await raw.send(encode(Hello("raw", "session")) + encode(Subscribe(1, "a", text)))
            assert isinstance(await raw.frame(), Welcome)
            assert await raw.frame() == RequestAccepted(1)
            await raw.send(Subscribe(2, "b", text))
            assert await raw.frame() == RequestAccepted(2)
            assert not overlay["b1"].violations.counts

    run(test)


def test_the_largest_usual_hellos_fit_the_limit() -> None:
    name = "n" * 255
    clusters = tuple(f"cluster-{number:03}" for number in range(200))
    greeting = Heartbeat(1 << 62, clusters, tuple((cluster, bytes(8)) for cluster in clusters))
    hellos = (
        encode(Hello(name, name, "t" * 8192, is_durable=True, window=1 << 62, capabilities=(name,) * 8)),
        link_handshake.encode(
            LinkHello(name, 1 << 62, name, "d-dbr", clusters, f"{name}:65535", greeting, "t" * 1024, name, 1 << 62)
        ),
    )
    for hello in hellos:
        assert FrameSplitter(Limits(), HELLO_BYTES).feed(hello) == [hello]


def test_a_frame_in_small_pieces_takes_no_more_memory_than_its_bytes() -> None:
    splitter = FrameSplitter(Limits(), HELLO_BYTES)
    frame = (HELLO_BYTES - 4).to_bytes(4, "big") + bytes(range(256)) * (HELLO_BYTES // 256)
    pieces = [frame[start : start + 2] for start in range(0, HELLO_BYTES - 2, 2)]
    tracemalloc.start()
    try:
        for piece in pieces:
            # A copy, as each piece that a socket gives is new.
            assert splitter.feed(bytes(bytearray(piece))) == []
        assert tracemalloc.get_traced_memory()[0] < 2 * HELLO_BYTES
    finally:
        tracemalloc.stop()
    assert len(splitter._partial) == HELLO_BYTES - 2
    assert splitter.feed(frame[HELLO_BYTES - 2 : HELLO_BYTES]) == [frame[:HELLO_BYTES]]
    assert len(splitter._partial) == 0


def test_only_the_first_frame_has_the_limit_of_the_hello() -> None:
    frame, large = bytes((0, 0, 0, 1, 7)), (96).to_bytes(4, "big") + bytes(96)
    splitter = FrameSplitter(Limits(frame_bytes=100), 50)
    assert splitter.feed(frame + large[:10]) == [frame]
    assert splitter.feed(large[10:]) == [large]
    with pytest.raises(WireError, match="frame: 101 bytes are announced; the limit frame_bytes is 100"):
        splitter.feed((97).to_bytes(4, "big"))
    with pytest.raises(WireError, match="frame: 100 bytes are announced; the limit hello_bytes is 50"):
        FrameSplitter(Limits(frame_bytes=100), 50).feed(large)
