"""A subscriber that does not read never stalls others: its outbox is bounded, and drops are counted."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from broker import connect
from broker.core.delivery_queue import SLOW
from broker.wire.client_frames import DeliveryMode, Subscribe
from tests.harness.broker_processes import InLoop, OverlayFileMaker, run
from tests.harness.conditions import until
from tests.harness.raw_client import RawClient

PUBLICATIONS = 400
PAYLOAD = bytes(20_000)
"""All payloads together far exceed the sockets' buffers."""


@pytest.mark.parametrize("mode", list(DeliveryMode))
@pytest.mark.parametrize("policy", ["drop", "disconnect"])
def test_others_receive_everything_while_one_does_not_read(tmp_path: Path, mode: DeliveryMode, policy: str) -> None:
    file = OverlayFileMaker(tmp_path, ["b1"], tables={"delivery": {"outbox": 50, "when_full": policy}})

    async def test() -> None:
        async with (
            InLoop(file) as overlay,
            RawClient(file.ports["b1"]) as slow,
            connect(file.url("b1")) as client,
            client.subscribe("n >= 0") as stream,
        ):
            server = overlay["b1"]
            await slow.greet("slow", mode=mode, window=10_000)
            await slow.send(Subscribe(1, "all", "TRUE"))
            await until(lambda: server.driver.core.router.counts().local_subscriptions == 2)
            for n in range(PUBLICATIONS):
                await client.publish({"n": n}, PAYLOAD)
                assert (await stream.next(40.0))["n"] == n
            session = server.driver.core.client("slow")
            if policy == "disconnect":
                assert server.violations.counts == {"slow": 1}
                assert "slow" not in server.clients.sessions
            else:
                assert session is not None
                assert len(session.waiting) + len(session.in_flight) == 50
                assert server.driver.core.drops[SLOW] > 50
            if mode is DeliveryMode.AT_MOST_ONCE and policy == "disconnect":
                assert session is None, "nothing is kept for it"

    run(test)


def test_a_subscriber_that_reads_again_receives_the_rest_in_order(tmp_path: Path) -> None:
    file = OverlayFileMaker(tmp_path, ["b1"], tables={"delivery": {"outbox": 50}})

    async def test() -> None:
        async with (
            InLoop(file) as overlay,
            RawClient(file.ports["b1"]) as slow,
            connect(file.url("b1")) as client,
        ):
            server = overlay["b1"]
            await slow.greet("slow", mode=DeliveryMode.AT_MOST_ONCE, window=10_000)
            await slow.send(Subscribe(1, "all", "TRUE"))
            await until(lambda: server.driver.core.router.counts().local_subscriptions == 1)
            for n in range(PUBLICATIONS):
                await client.publish({"n": n}, PAYLOAD)
            counters: list[int] = []
            await slow.frame()
            while not counters or counters[-1] < PUBLICATIONS - 1:
                async with asyncio.timeout(5):
                    delivery = await slow.frame()
                counters.append(delivery.id.counter)  # type: ignore[union-attr]
            assert counters == sorted(set(counters))
            assert len(counters) == PUBLICATIONS - server.driver.core.drops[SLOW]

    run(test)
