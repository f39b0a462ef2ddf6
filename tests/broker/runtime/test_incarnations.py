"""Incarnations: a broker whose clock was set back between two starts is known by a later incarnation all the same."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from broker import connect
from broker.core.settings import SECOND
from broker.runtime.incarnation import EPOCH_NS, begin_incarnation
from broker.runtime.known_incarnations import LATEST_INCARNATION, MOST_REPORTS
from broker.runtime.store_format import StoreError
from broker.wire.link_handshake import LinkHello, encode
from routing.messages import Heartbeat
from tests.harness.broker_processes import InLoop, OverlayFileMaker, run
from tests.harness.conditions import until

HOUR = 3600 * SECOND


@pytest.fixture
def set_clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Sets the clock from which brokers take their incarnation. It stands still."""
    return lambda time_ns: monkeypatch.setattr("broker.runtime.incarnation.time.time_ns", lambda: time_ns)


async def deliver(overlay: InLoop, publisher: str, subscriber: str, number: int) -> None:
    """Publishes at one broker, and receives at the other what was published."""
    file = overlay.file
    async with (
        connect(file.url(subscriber)) as reader,
        connect(file.url(publisher)) as writer,
        reader.subscribe("n >= 0") as stream,
    ):
        await overlay.quiet()
        await writer.publish({"n": number})
        assert (await stream.next(40.0))["n"] == number


@pytest.mark.parametrize("set_back", [HOUR, 0], ids=["an hour back", "the same time again"])
@pytest.mark.parametrize("restarted", ["b1", "b2"])
@pytest.mark.parametrize("protocol", ["d-dbr", "fbr"])
def test_a_broker_that_restarts_with_its_clock_set_back_takes_a_later_incarnation_and_delivers(
    tmp_path: Path, protocol: str, restarted: str, set_back: int, set_clock: Callable[[int], None]
) -> None:
    file = OverlayFileMaker(tmp_path, ["b1", "b2"], [("b1", "b2")], overlay={"protocol": protocol})
    other = "b2" if restarted == "b1" else "b1"
    now = EPOCH_NS + 24 * HOUR

    async def test() -> None:
        set_clock(now)
        async with InLoop(file) as overlay:
            await deliver(overlay, restarted, other, 1)
            first = overlay[restarted].driver.core.incarnation
            await overlay.stop(restarted)
            set_clock(now - set_back)
            await overlay.start(restarted)
            await overlay.linked()
            await deliver(overlay, restarted, other, 2)
            await deliver(overlay, other, restarted, 3)
            assert overlay[restarted].driver.core.incarnation == first + 1

    run(test)


def test_a_broker_whose_neighbour_restarted_too_learns_of_its_later_incarnation_from_distant_brokers(
    tmp_path: Path, set_clock: Callable[[int], None]
) -> None:
    file = OverlayFileMaker(tmp_path, ["b1", "b2", "b3"], [("b1", "b2"), ("b2", "b3")])
    now = EPOCH_NS + 24 * HOUR

    async def test() -> None:
        set_clock(now)
        async with InLoop(file) as overlay:
            await deliver(overlay, "b1", "b3", 1)
            first = overlay["b1"].driver.core.incarnation
            await overlay.stop("b1")
            await overlay.stop("b2")
            set_clock(now - HOUR)
            await overlay.start("b1")
            await overlay.start("b2")
            await until(lambda: overlay["b1"].driver.core.incarnation == first + 1)
            await until(lambda: overlay["b2"].driver.core.incarnation == first + 1)
            await overlay.linked()
            await deliver(overlay, "b1", "b3", 2)
            await deliver(overlay, "b3", "b1", 3)

    run(test)


def test_a_link_that_breaks_and_a_new_link_do_not_change_the_incarnation(tmp_path: Path) -> None:
    file = OverlayFileMaker(tmp_path, ["b1", "b2", "b3"], [("b1", "b2"), ("b2", "b3")])

    async def test() -> None:
        async with InLoop(file) as overlay:
            before = {id: server.driver.core.incarnation for id, server in overlay.servers.items()}
            overlay["b1"].neighbours.join(overlay["b3"].listen)
            await until(lambda: "b3" in overlay["b1"].neighbours.links and "b1" in overlay["b3"].neighbours.links)
            for id, peer in (("b2", "b1"), ("b3", "b1"), ("b1", "b3")):
                link = overlay[id].neighbours.links[peer]
                link.connection.abort()
                await until(lambda: overlay[id].neighbours.links.get(peer) not in (None, link))  # noqa: B023
            await overlay.linked()
            assert {id: server.driver.core.incarnation for id, server in overlay.servers.items()} == before

    run(test)


def test_clients_subscribe_again_after_their_broker_took_a_later_incarnation(
    tmp_path: Path, set_clock: Callable[[int], None]
) -> None:
    file = OverlayFileMaker(tmp_path, ["b1", "b2"], [("b1", "b2")])
    now = EPOCH_NS + 24 * HOUR

    async def test() -> None:
        set_clock(now)
        async with InLoop(file) as overlay:
            first = overlay["b1"].driver.core.incarnation
            async with connect(file.url("b1")) as reader, reader.subscribe("n >= 0") as stream:
                await overlay.stop("b1")
                set_clock(now - HOUR)
                await overlay.start("b1")
                await until(lambda: overlay["b1"].driver.core.incarnation == first + 1)
                await until(lambda: overlay["b1"].driver.core.router.counts().local_subscriptions == 1)
                await overlay.linked()
                async with connect(file.url("b2")) as writer:
                    await writer.publish({"n": 1})
                    assert (await stream.next(40.0))["n"] == 1

    run(test)


def test_a_neighbour_interrupts_a_broker_a_few_times_at_most_by_reporting_later_incarnations(tmp_path: Path) -> None:
    file = OverlayFileMaker(tmp_path, ["b1"])

    async def test() -> None:
        async with InLoop(file) as overlay:
            server = overlay["b1"]
            for number in range(1, MOST_REPORTS + 3):
                await greet(file, number * 10**12)
                believed = min(number, MOST_REPORTS)
                await until(lambda: server.driver.core.incarnation == believed * 10**12 + 1)  # noqa: B023
            async with connect(file.url("b1")) as client:
                assert await client.publish({"n": 1})
            await greet(file, LATEST_INCARNATION, "false-2")
            assert server.driver.core.incarnation == MOST_REPORTS * 10**12 + 1

    run(test)


async def greet(file: OverlayFileMaker, remembered: int, broker: str = "false") -> None:
    """Dials b1 as a broker that remembers this incarnation of it, and waits for the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", file.ports["b1"])
    hello = LinkHello(broker, 1, "test", "d-dbr", (), "", Heartbeat(1, ()), "", "b1", remembered)
    writer.write(encode(hello))
    assert await reader.read(1)
    writer.close()


def test_a_durable_broker_with_an_old_store_stops_and_then_takes_a_later_incarnation(
    tmp_path: Path, set_clock: Callable[[int], None]
) -> None:
    file = OverlayFileMaker(tmp_path, ["b1", "b2"], [("b1", "b2")], tables={"store": {"data_dir": "data"}})
    now = EPOCH_NS + 24 * HOUR

    async def test() -> None:
        set_clock(now)
        async with InLoop(file) as overlay:
            first = overlay["b1"].driver.core.incarnation
            await overlay.stop("b1")
            shutil.rmtree(tmp_path / "data" / "b1")
            set_clock(now - HOUR)
            stopped = await overlay.start("b1")
            with pytest.raises(StoreError, match=f"b2 knows incarnation {first} of b1"):
                await stopped.failed
            await overlay.stop("b1")
            await overlay.start("b1")
            await overlay.linked()
            assert overlay["b1"].driver.core.incarnation == first + 1
            await deliver(overlay, "b1", "b2", 2)

    run(test)


def test_a_clock_before_the_epoch_gives_a_positive_incarnation(set_clock: Callable[[int], None]) -> None:
    set_clock(0)
    assert begin_incarnation("b1", None).number == 1
