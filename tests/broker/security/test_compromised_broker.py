"""A compromised broker whose certificate an attacker controls: attacks that fail, and attacks that succeed."""

from __future__ import annotations

import asyncio
import hashlib
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

from broker import RefusedError, connect
from broker.core.effects import Effect, Send
from broker.runtime.server import BrokerServer
from broker.security.authentication import AllowAllAuthenticator, Security
from broker.security.security_config import load_security
from broker.wire import broker_codec, link_handshake
from broker.wire.client_frames import Reason
from broker.wire.limits import Limits
from broker.wire.link_handshake import LinkGoodbye, LinkHello, LinkWelcome
from routing.messages import (
    LARGEST_NUMBER,
    EntryId,
    Heartbeat,
    LinkState,
    LinkStates,
    Message,
    Publish,
    Turn,
    Unsubscribe,
    Update,
)
from tests.harness.broker_processes import InLoop, OverlayFileMaker, run
from tests.harness.conditions import until
from tests.harness.false_messages import Liar
from tests.harness.secured_overlay import TLS, rule, shown, with_certificates

SECRET = "a word that nobody guesses"
RULES = rule("desk", certificate="desk", publish="room = 'lab'", subscribe="TRUE") + rule(
    "hand", SECRET, publish="TRUE"
)


class CompromisedBroker:
    """A connection of the compromised broker b3, with its certificate and arbitrary frames."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, *frames: Message | bytes) -> None:
        for frame in frames:
            sequence = 1 if isinstance(frame, Publish) else None
            self._writer.write(frame if isinstance(frame, bytes) else broker_codec.encode(frame, sequence))
        await self._writer.drain()

    async def greet(self, broker: str = "b3", protocol: str = "d-dbr", clusters: tuple[str, ...] = ()) -> object:
        """Sends a hello and returns the answer."""
        heartbeat = Heartbeat(7, clusters or ("",))
        hello = LinkHello(broker, 7, "test", protocol, clusters, "127.0.0.1:1", heartbeat)
        await self.send(link_handshake.encode(hello))
        return await self.link_frame()

    async def link_frame(self) -> object:
        """The next frame of the link handshake, or None if the other end has closed the connection."""
        while True:
            try:
                prefix = await self._reader.readexactly(4)
                frame = prefix + await self._reader.readexactly(int.from_bytes(prefix, "big"))
            except (asyncio.IncompleteReadError, ConnectionError):
                return None
            if frame[6] in link_handshake.KINDS:
                return link_handshake.decode(frame, Limits())


@asynccontextmanager
async def compromised_broker(folder: Path, file: OverlayFileMaker, at: str = "b1") -> AsyncIterator[CompromisedBroker]:
    context = ssl.create_default_context(cafile=str(folder / "certs" / "ca.pem"))
    context.load_cert_chain(folder / "certs" / "b3.pem", folder / "certs" / "b3.key")
    reader, writer = await asyncio.open_connection("127.0.0.1", file.ports[at], ssl=context)
    try:
        yield CompromisedBroker(reader, writer)
    finally:
        writer.transport.abort()
        # The transport closes its socket in the next turn of the loop.
        await asyncio.sleep(0)


@asynccontextmanager
async def others(file: OverlayFileMaker) -> AsyncIterator[InLoop]:
    """Runs all brokers except b3, and asserts that none of them raised an exception."""
    failures: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
    overlay = InLoop(file)
    overlay_ids, file.ids = file.ids, tuple(id for id in file.ids if id != "b3")
    try:
        async with overlay:
            yield overlay
    finally:
        file.ids = overlay_ids
    assert not failures


def overlay_file(folder: Path, links: list[tuple[str, str]], protocol: str = "d-dbr") -> OverlayFileMaker:
    """An overlay file of b1, b2 and b3 with certificates and the access list."""
    with_certificates(folder, ["b1", "b2", "b3"], links, RULES)
    clusters = dict.fromkeys(("b1", "b2", "b3"), ("x",)) if protocol == "merc" else None
    tables: dict[str, dict[str, object]] = {"tls": dict(TLS), "acl": {"file": "access.toml"}}
    overlay = {"protocol": protocol}
    return OverlayFileMaker(folder, ["b1", "b2", "b3"], links, clusters=clusters, overlay=overlay, tables=tables)


STAR = [("b1", "b2"), ("b1", "b3")]
CHAIN = [("b1", "b3"), ("b3", "b2")]


def test_it_cannot_impersonate_another_broker(tmp_path: Path) -> None:
    file = overlay_file(tmp_path, STAR)

    async def test() -> None:
        async with others(file) as overlay:
            before = overlay["b1"].neighbours.links["b2"]
            async with compromised_broker(tmp_path, file) as b3:
                answer = await b3.greet("b2")
                assert isinstance(answer, LinkGoodbye)
                assert (answer.code, "not one of broker b2" in answer.reason) == (link_handshake.UNAUTHORISED, True)
            assert overlay["b1"].violations.counts["unauthorised"] == 1
            assert overlay["b1"].neighbours.links["b2"] is before

    run(test)


def test_it_cannot_connect_as_a_client_even_if_it_knows_the_access_rule(tmp_path: Path) -> None:
    file = overlay_file(tmp_path, STAR)
    digest = hashlib.sha256(SECRET.encode()).hexdigest()

    async def test() -> None:
        async with others(file) as overlay:
            for name, token in (("desk", ""), ("b3", ""), ("hand", digest)):
                with pytest.raises(RefusedError) as refused:
                    async with connect(file.url("b1"), name=name, token=token, tls=shown(tmp_path, "b3")):
                        pass
                assert refused.value.reason == Reason.UNAUTHORISED
            assert overlay["b1"].violations.counts["unauthorised"] == 3

    run(test)


@pytest.mark.parametrize("protocol", ["d-dbr", "fbr", "merc"])
def test_damaged_frames_and_false_messages_do_not_stop_others_from_serving_their_clients(
    tmp_path: Path, protocol: str
) -> None:
    file = overlay_file(tmp_path, STAR, protocol)
    draws = Random(11)
    domains = ("x",) if protocol == "merc" else ("",)
    clusters = domains if protocol == "merc" else ()

    async def send_lies(server: BrokerServer, liar: Liar, *, is_damaged: bool) -> None:
        async with compromised_broker(tmp_path, file) as b3:
            assert isinstance(await b3.greet("b3", protocol, clusters), LinkWelcome)
            frames = [broker_codec.encode(each, 1 if isinstance(each, Publish) else None) for each in lies(liar, 40)]
            stream = bytearray(b"".join(frames))
            for _ in range(3 if is_damaged else 0):
                stream[draws.randrange(len(stream))] = draws.randrange(256)
            link = server.neighbours.links["b3"].connection
            received = link.bytes_in + len(stream)
            await b3.send(bytes(stream))
            await until(lambda: link.bytes_in >= received or link.is_closing)

    async def test() -> None:
        async with others(file) as overlay:
            server = overlay["b1"]
            liar = Liar(draws, ("b1", "b2", "b3"), domains, server.driver.core.incarnation)
            for turn in range(30):
                await send_lies(server, liar, is_damaged=turn % 2 == 1)
            assert server.violations.counts["malformed"] > 5
            async with (
                connect(file.url("b1"), name="desk", tls=shown(tmp_path, "desk")) as client,
                client.subscribe("room = 'lab'") as stream,
            ):
                await client.publish({"room": "lab", "n": 1})
                assert (await stream.next(20.0))["n"] == 1

    run(test)


def lies(liar: Liar, count: int) -> list[Message]:
    return [liar.lie() for _ in range(count)]


def test_a_frame_beyond_the_limits_ends_its_link_and_no_other(tmp_path: Path) -> None:
    file = overlay_file(tmp_path, STAR)

    async def test() -> None:
        async with others(file) as overlay, compromised_broker(tmp_path, file) as b3:
            assert isinstance(await b3.greet(), LinkWelcome)
            await b3.send((1 << 30).to_bytes(4, "big") + bytes(100))
            answer = await b3.link_frame()
            assert isinstance(answer, LinkGoodbye)
            assert "frame_bytes" in answer.reason
            assert overlay["b1"].violations.counts["malformed"] == 1
            assert set(overlay["b1"].neighbours.links) == {"b2"}

    run(test)


def test_it_cannot_end_a_subscription_of_another_brokers_client(tmp_path: Path) -> None:
    file = overlay_file(tmp_path, STAR)

    async def test() -> None:
        async with (
            others(file) as overlay,
            connect(file.url("b1"), name="desk", tls=shown(tmp_path, "desk")) as client,
            client.subscribe("room = 'lab'") as stream,
            compromised_broker(tmp_path, file) as b3,
        ):
            assert isinstance(await b3.greet(), LinkWelcome)
            server = overlay["b1"]
            ends = tuple(Unsubscribe(EntryId("b1", server.driver.core.incarnation, number)) for number in range(20))
            for source in ("b1", "b2", "b3"):
                await b3.send(Update(source, server.driver.core.incarnation, "", (Turn("b1", 1, 1),), ends))
            await until(lambda: server.neighbours.links["b3"].connection.bytes_in > 600)
            await client.publish({"room": "lab", "n": 1})
            assert (await stream.next(20.0))["n"] == 1

    run(test)


async def start_without_rules(overlay: InLoop) -> BrokerServer:
    """Starts b3 with an authenticator that accepts every peer."""
    config = overlay.file.broker("b3")
    real = load_security(config)
    lax = Security(AllowAllAuthenticator(), real.token, real.read_contexts)
    server = await overlay.start("b3", security=lax)
    await overlay.linked()
    return server


def test_it_can_read_and_invent_publications_against_every_rule(tmp_path: Path) -> None:
    file = overlay_file(tmp_path, STAR)

    async def test() -> None:
        async with (
            others(file) as overlay,
            connect(file.url("b2"), name="desk", tls=shown(tmp_path, "desk")) as desk,
            desk.subscribe("room = 'hall'") as invented,
        ):
            await start_without_rules(overlay)
            with pytest.raises(RefusedError, match="may publish only"):
                await desk.publish({"room": "hall"})
            async with connect(file.url("b3"), tls=shown(tmp_path)) as insider, insider.subscribe("TRUE") as everything:
                await overlay.quiet()
                await desk.publish({"room": "lab", "n": 1})
                assert (await everything.next(20.0))["n"] == 1
                await insider.publish({"room": "hall", "n": 2})
                assert (await invented.next(20.0))["n"] == 2

    run(test)


def test_it_can_link_to_every_broker_of_the_overlay(tmp_path: Path) -> None:
    """Brokers may open new links while the overlay runs, so the overlay file does not list all links."""
    file = overlay_file(tmp_path, STAR)

    async def test() -> None:
        async with others(file) as overlay, compromised_broker(tmp_path, file, "b2") as b3:
            assert isinstance(await b3.greet(), LinkWelcome)
            assert set(overlay["b2"].neighbours.links) == {"b1", "b3"}

    run(test)


def test_it_can_spread_false_link_states_that_outlive_its_link(tmp_path: Path) -> None:
    file = overlay_file(tmp_path, STAR)

    async def test() -> None:
        async with others(file) as overlay:
            router = overlay["b1"].driver.core.router
            assert router.is_reachable("", "b2")
            async with compromised_broker(tmp_path, file) as b3:
                assert isinstance(await b3.greet(), LinkWelcome)
                false = LinkState("b2", LARGEST_NUMBER, LARGEST_NUMBER, "", ())
                await b3.send(LinkStates((false,)))
                await until(lambda: not router.is_reachable("", "b2"))
            await until(lambda: "b3" not in overlay["b1"].neighbours.links)
            await overlay.quiet()
            assert not router.is_reachable("", "b2")

    run(test)


def test_it_can_withhold_publications_and_they_arrive_when_it_is_repaired(tmp_path: Path) -> None:
    file = overlay_file(tmp_path, CHAIN)

    async def test() -> None:
        async with others(file) as overlay:
            b3 = await start_without_rules(overlay)
            performers = b3.executor._handlers
            send = performers[Send]

            def send_all_but_publications(effect: Effect) -> None:
                if not (isinstance(effect, Send) and isinstance(effect.message, Publish)):
                    send(effect)

            async with (
                connect(file.url("b2"), name="desk", tls=shown(tmp_path, "desk")) as reader,
                reader.subscribe("n = 1") as stream,
                connect(file.url("b1"), name="hand", token=SECRET, tls=shown(tmp_path)) as publisher,
            ):
                await overlay.quiet()
                performers[Send] = send_all_but_publications
                assert await publisher.publish({"n": 1}) is not None
                # Time for a delivery that must not come.
                await asyncio.sleep(0.5)
                assert len(stream) == 0
                assert overlay["b1"].driver.core.in_custody == 1
                performers[Send] = send
                assert (await stream.next(60.0))["n"] == 1

    run(test)
