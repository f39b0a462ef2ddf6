"""An attacker on the connection to a broker who sees every byte and may change it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from broker import connect
from broker.config.address import Address
from tests.harness.broker_processes import InLoop, run
from tests.harness.conditions import until
from tests.harness.proxy import Proxy
from tests.harness.secured_overlay import rule, shown, with_certificates, with_tokens

SECRET = "a-word-that-nobody-guesses"
RULES = rule("desk*", SECRET, publish="TRUE", subscribe="TRUE")
WORDS = [b"desk", SECRET.encode(), b"temperature", b"the-body-of-it"]


class Wire:
    """Records bytes. Flips a bit of the next ones if `is_to_change`."""

    def __init__(self) -> None:
        self.seen = bytearray()
        self.is_to_change = False
        self.changed = 0

    def forward(self, data: bytes) -> bytes:
        self.seen += data
        if self.is_to_change and data:
            self.is_to_change = False
            self.changed += 1
            return data[:-1] + bytes([data[-1] ^ 1])
        return data


@asynccontextmanager
async def between(port: int) -> AsyncIterator[tuple[Wire, int]]:
    wire = Wire()
    async with Proxy(f"127.0.0.1:{port}", change=wire.forward) as proxy:
        yield wire, proxy.port


@pytest.mark.parametrize("is_encrypted", [True, False])
def test_a_listener_reads_neither_names_nor_tokens_nor_publications_unless_there_is_no_tls(
    tmp_path: Path, is_encrypted: bool
) -> None:
    file = with_certificates(tmp_path, ["b1"], acl=RULES) if is_encrypted else with_tokens(tmp_path, RULES)

    async def test() -> None:
        async with InLoop(file), between(file.ports["b1"]) as (wire, port):
            context = shown(tmp_path) if is_encrypted else None
            async with (
                connect(f"mercast://127.0.0.1:{port}", name="desk", token=SECRET, tls=context) as client,
                client.subscribe("temperature > 0") as stream,
            ):
                await client.publish({"temperature": 1}, b"the-body-of-it")
                assert (await stream.next(20.0)).payload == b"the-body-of-it"
            assert [word in wire.seen for word in WORDS] == [not is_encrypted] * len(WORDS)

    run(test)


def test_bytes_that_were_changed_in_transit_end_the_connection_and_nothing_untrue_arrives(tmp_path: Path) -> None:
    file = with_certificates(tmp_path, ["b1"], acl=RULES)

    async def test() -> None:
        async with InLoop(file), between(file.ports["b1"]) as (wire, port):
            url = f"mercast://127.0.0.1:{port}"
            async with (
                connect(file.url("b1"), name="desk-1", token=SECRET, tls=shown(tmp_path)) as reader,
                reader.subscribe("EXISTS n") as stream,
            ):
                async with connect(url, name="desk", token=SECRET, tls=shown(tmp_path)) as client:
                    await client.publish({"n": 1})
                    wire.is_to_change = True
                    # The client resends it over a new connection, as after every loss of a connection.
                    await client.publish({"n": 2})
                    assert (wire.changed, client.reconnects) == (1, 1)
                assert [(await stream.next(20.0))["n"] for _ in range(2)] == [1, 2]

    run(test)


def test_a_link_cannot_be_listened_to_either(tmp_path: Path) -> None:
    file = with_certificates(tmp_path, ["b1", "b2"], [("b1", "b2")], acl=RULES)

    async def test() -> None:
        async with between(file.ports["b2"]) as (wire, port):
            overlay = InLoop(file)
            through = f'address = "{Address("127.0.0.1", port)}"\nid = "b2"'
            file.path.write_text(file.path.read_text().replace('id = "b2"', through))
            async with (
                overlay,
                connect(file.url("b2"), name="desk-1", token=SECRET, tls=shown(tmp_path)) as reader,
                reader.subscribe("temperature > 0") as stream,
                connect(file.url("b1"), name="desk", token=SECRET, tls=shown(tmp_path)) as publisher,
            ):
                await overlay.quiet()
                await publisher.publish({"temperature": 1}, b"the-body-of-it")
                assert (await stream.next(20.0)).payload == b"the-body-of-it"
                await until(lambda: len(wire.seen) > 1_000)
            assert not any(word in wire.seen for word in WORDS)

    run(test)
