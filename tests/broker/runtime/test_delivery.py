"""Brokers in one event loop and real clients over TCP: deliveries to matching clients, once, in order, and after
reconnects."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgpack
import pytest

from broker import connect
from broker.client import client
from broker.client.errors import NotAdvertisedError, RefusedError, TimeoutExpiredError
from broker.client.subscription import Subscription
from broker.core.effects import Deliver, Send
from broker.wire.client_frames import Ping, Pong
from routing.messages import PublicationId, Publish
from routing.registry import names
from tests.harness.broker_processes import InLoop, OverlayFileMaker, run
from tests.harness.conditions import until
from tests.harness.raw_client import RawClient

CHAIN = (("b1", "b2"), ("b2", "b3"))
CLUSTERS = {"b1": ("x",), "b2": ("x", "y"), "b3": ("y",)}


async def numbers(subscription: Subscription, count: int) -> list[object]:
    return [(await subscription.next(40.0))["n"] for _ in range(count)]


@pytest.mark.parametrize("protocol", names())
def test_publications_cross_brokers_in_order_and_reach_only_matching_subscriptions(
    tmp_path: Path, protocol: str
) -> None:
    file = OverlayFileMaker(
        tmp_path, CLUSTERS, CHAIN, clusters=CLUSTERS, overlay={"protocol": protocol, "advertise": "open"}
    )

    async def test() -> None:
        async with (
            InLoop(file) as overlay,
            connect(file.url("b1")) as publisher,
            connect(file.url("b3")) as far,
            connect(file.url("b2")) as near,
            far.subscribe("n >= 10") as large,
            near.subscribe("n < 10") as small,
        ):
            await overlay.quiet()
            for n in range(20):
                await publisher.publish({"n": n}, b"payload")
            assert await numbers(large, 10) == list(range(10, 20))
            assert await numbers(small, 10) == list(range(10))
            await until(lambda: all(server.drain.is_settled for server in overlay.servers.values()))
            assert not len(large)
            assert not len(small)

    run(test)


def test_a_client_with_two_matching_subscriptions_gets_a_publication_once(tmp_path: Path) -> None:
    file = OverlayFileMaker(tmp_path, ["b1"])

    async def test() -> None:
        async with (
            InLoop(file) as overlay,
            connect(file.url("b1")) as client,
            client.subscribe({"one": "n > 1", "two": "n > 2"}) as both,
        ):
            await client.publish({"n": 5})
            assert (await both.next(40.0)).subscriptions == ("one", "two")
            assert overlay["b1"].executor.delivered == 1

    run(test)


def test_with_strict_advertising_a_publication_outside_is_refused_with_its_reason(tmp_path: Path) -> None:
    file = OverlayFileMaker(tmp_path, ["b1"], overlay={"advertise": "strict"})

    async def test() -> None:
        async with InLoop(file), connect(file.url("b1")) as client:
            with pytest.raises(NotAdvertisedError):
                await client.publish({"n": 1})
            await client.advertise("n < 5")
            assert await client.publish({"n": 1}) is not None
            with pytest.raises(NotAdvertisedError):
                await client.publish({"n": 7})

    run(test)


def test_publications_for_a_disconnected_client_are_delivered_once_when_it_reconnects(tmp_path: Path) -> None:
    file = OverlayFileMaker(tmp_path, ["b1", "b2"], [("b1", "b2")])

    async def test() -> None:
        async with (
            InLoop(file) as overlay,
            connect(file.url("b1")) as publisher,
            connect(file.url("b2"), name="reader") as reader,
            reader.subscribe("n >= 0") as stream,
        ):
            await overlay.quiet()
            for n in range(5):
                await publisher.publish({"n": n})
            assert await numbers(stream, 3) == [0, 1, 2]
            # The broker aborts the connection while deliveries are not acknowledged.
            overlay["b2"].clients.sessions["reader"].connection.abort()
            for n in range(5, 8):
                await publisher.publish({"n": n})
            assert await numbers(stream, 5) == [3, 4, 5, 6, 7]
            session = overlay["b2"].driver.core.client("reader")
            assert session is not None
            # The client acknowledges a delivery when it requests the next one.
            await until(lambda: [each.attributes for each in session.undelivered()] == [b"\x81\xa1n\x07"])
            assert reader.reconnects == 1
            assert not len(stream)

    run(test)


def test_a_session_ends_when_its_client_does_not_reconnect(tmp_path: Path) -> None:
    file = OverlayFileMaker(tmp_path, ["b1"], tables={"delivery": {"session": "300ms"}})

    async def test() -> None:
        async with InLoop(file) as overlay:
            client = connect(file.url("b1"), name="gone")
            await client.open()
            async with client.subscribe("TRUE"):
                assert overlay["b1"].driver.core.router.counts().local_subscriptions == 1
                overlay["b1"].clients.sessions["gone"].connection.abort()
                client._is_closing = True
                await until(lambda: overlay["b1"].driver.core.client("gone") is None)
                assert overlay["b1"].driver.core.router.counts().local_subscriptions == 0
            await client.close()

    run(test)


def test_a_publication_that_expired_while_its_client_was_away_is_dropped_and_counted(tmp_path: Path) -> None:
    file = OverlayFileMaker(tmp_path, ["b1"])

    async def test() -> None:
        async with (
            InLoop(file) as overlay,
            connect(file.url("b1")) as publisher,
            connect(file.url("b1"), name="reader", window=1) as reader,
            reader.subscribe("TRUE") as stream,
        ):
            await publisher.publish({"n": 0})
            assert await numbers(stream, 1) == [0]
            # A delivery that is not acknowledged yet fills the window of one.
            await publisher.publish({"n": 1}, expires=0.05)
            await publisher.publish({"n": 2})
            # The lifetime ends.
            await asyncio.sleep(0.2)
            assert await numbers(stream, 1) == [2]
            assert overlay["b1"].driver.core.drops["expired"] == 1

    run(test)


@pytest.fixture
def a_client_that_sends_any_lifetime(monkeypatch: pytest.MonkeyPatch) -> None:
    """Removes this client's limit on lifetimes: other client libraries may send any."""
    monkeypatch.setattr(client, "lifetime_ms", lambda expires: 0 if expires is None else round(expires * 1000))


@pytest.mark.usefixtures("a_client_that_sends_any_lifetime")
@pytest.mark.parametrize("is_durable", [False, True], ids=["in memory", "durable"])
@pytest.mark.parametrize("expires", [1e10, 1e13, 9e15])
def test_a_lifetime_beyond_all_clocks_means_never_at_every_broker(
    tmp_path: Path, expires: float, is_durable: bool
) -> None:
    tables = {"store": {"data_dir": "data", "fsync": "never"}} if is_durable else {}
    file = OverlayFileMaker(tmp_path, ["b1", "b2"], [("b1", "b2")], tables=tables)

    async def test() -> None:
        async with (
            InLoop(file) as overlay,
            connect(file.url("b1")) as publisher,
            connect(file.url("b1")) as bystander,
            connect(file.url("b2")) as reader,
            reader.subscribe("n >= 0") as stream,
        ):
            await overlay.quiet()
            await asyncio.gather(publisher.publish({"n": 1}, expires=expires), bystander.publish({"n": 2}))
            assert sorted(map(str, await numbers(stream, 2))) == ["1", "2"]
            await until(lambda: overlay["b1"].drain.is_settled)
            assert not overlay["b2"].violations.counts
            assert not overlay["b1"].errors.counts
            assert publisher.reconnects == bystander.reconnects == 0

    run(test)


@pytest.mark.usefixtures("a_client_that_sends_any_lifetime")
def test_a_durable_broker_restarts_with_a_publication_that_never_expires(tmp_path: Path) -> None:
    tables = {"store": {"data_dir": "data", "fsync": "never"}}
    file = OverlayFileMaker(tmp_path, ["b1", "b2"], [("b1", "b2")], tables=tables)

    async def test() -> None:
        async with InLoop(file) as overlay:
            async with (
                connect(file.url("b2"), name="reader", durable=True) as reader,
                reader.subscribe("n >= 0", name="all"),
            ):
                await overlay.quiet()
            await overlay.stop("b2")
            async with connect(file.url("b1")) as publisher:
                await publisher.publish({"n": 1}, expires=1e13)
            assert overlay["b1"].driver.core.in_custody == 1
            await overlay.stop("b1")
            await overlay.start("b1")
            await overlay.start("b2")
            async with (
                connect(file.url("b2"), name="reader", durable=True) as reader,
                reader.subscribe("n >= 0", name="all") as stream,
            ):
                assert await numbers(stream, 1) == [1]

    run(test)


def test_an_effect_that_cannot_be_written_does_not_affect_others(tmp_path: Path) -> None:
    file = OverlayFileMaker(tmp_path, ["b1", "b2"], [("b1", "b2")])

    async def test() -> None:
        async with (
            InLoop(file) as overlay,
            connect(file.url("b1"), name="reader") as reader,
            reader.subscribe("n >= 0", name="all") as stream,
        ):
            server = overlay["b1"]
            broken, sound = (PublicationId("b1", incarnation, 7) for incarnation in (1 << 64, 1))
            body = (msgpack.packb({"n": 1}), b"")
            before = server.driver.totals()
            server.executor.perform(
                [
                    Send("b2", Publish(sound, "b1", "", ("b2",), (), *body, expires=1 << 64), 1),
                    Deliver("reader", broken, ("all",), *body, 0, 1),
                    Deliver("reader", sound, ("all",), *body, 0, 2),
                ]
            )
            assert await numbers(stream, 1) == [1]
            assert server.errors.counts == {"frame not written": 2}
            assert server.driver.totals() == {**before, "delivered": before["delivered"] + 1}
            assert server.status().errors == {"frame not written": 2}
            await stream.unsubscribe()
            assert reader.reconnects == 0, "the numbers of deliveries have no gap"

    run(test)


def test_at_most_once_needs_no_acknowledgement(tmp_path: Path) -> None:
    file = OverlayFileMaker(tmp_path, ["b1"])

    async def test() -> None:
        async with (
            InLoop(file) as overlay,
            connect(file.url("b1"), mode="at-most-once", name="reader") as client,
            client.subscribe("TRUE") as stream,
        ):
            for n in range(10):
                await client.publish({"n": n})
            assert await numbers(stream, 10) == list(range(10))
            session = overlay["b1"].driver.core.client("reader")
            assert session is not None
            assert not session.in_flight
            assert session.keep == 0

    run(test)


def test_a_name_can_be_used_by_one_client_at_a_time(tmp_path: Path) -> None:
    file = OverlayFileMaker(tmp_path, ["b1"])

    async def test() -> None:
        async with InLoop(file), connect(file.url("b1"), name="me"):
            with pytest.raises(RefusedError, match="is connected from"):
                await connect(file.url("b1"), name="me").open()

    run(test)


def test_publications_wait_while_the_broker_has_no_room_and_keep_their_order(tmp_path: Path) -> None:
    file = OverlayFileMaker(
        tmp_path, ["b1", "b2"], [("b1", "b2")], tables={"limits": {"window": 8, "credit": 2, "link_queue": 4}}
    )

    async def test() -> None:
        async with (
            InLoop(file) as overlay,
            connect(file.url("b1")) as publisher,
            connect(file.url("b2")) as reader,
            reader.subscribe("n >= 0") as stream,
        ):
            await overlay.quiet()
            answers = [await publisher.publish_soon({"n": n}) for n in range(200)]
            assert await numbers(stream, 200) == list(range(200))
            assert all([await answer is not None for answer in answers])
            assert not overlay["b1"].driver.core.drops

    run(test)


def test_a_client_without_answers_is_not_read_while_there_is_no_room(tmp_path: Path) -> None:
    limits = {"window": 8, "credit": 2, "link_queue": 4, "publish_window": 5}
    file = OverlayFileMaker(tmp_path, ["b1", "b2"], [("b1", "b2")], tables={"limits": limits})

    async def test() -> None:
        async with (
            InLoop(file) as overlay,
            connect(file.url("b1"), mode="at-most-once") as publisher,
            connect(file.url("b2")) as reader,
            reader.subscribe("n >= 0") as stream,
        ):
            await overlay.quiet()
            for n in range(300):
                await publisher.publish({"n": n})
            assert await numbers(stream, 300) == list(range(300))
            assert not overlay["b1"].violations.counts

    run(test)


def test_a_publisher_whose_connection_breaks_publishes_nothing_twice_and_loses_nothing(tmp_path: Path) -> None:
    file = OverlayFileMaker(tmp_path, ["b1"])

    async def test() -> None:
        async with (
            InLoop(file) as overlay,
            connect(file.url("b1"), name="source") as publisher,
            connect(file.url("b1")) as reader,
            reader.subscribe("n >= 0") as stream,
        ):
            for n in range(300):
                await publisher.publish_soon({"n": n})
                if n % 100 == 50:
                    # The client sends a part of them before the connection breaks.
                    await asyncio.sleep(0)
                    await until(lambda: "source" in overlay["b1"].clients.sessions)
                    overlay["b1"].clients.sessions["source"].connection.abort()
            await publisher.flush()
            assert await numbers(stream, 300) == list(range(300))
            assert publisher.reconnects == 3
            assert not len(stream)

    run(test)


def test_replacing_a_subscription_by_its_name_changes_what_it_matches(tmp_path: Path) -> None:
    file = OverlayFileMaker(tmp_path, ["b1"])

    async def test() -> None:
        async with (
            InLoop(file) as overlay,
            connect(file.url("b1")) as client,
            client.subscribe("n = 1", name="mine") as stream,
        ):
            await client.publish({"n": 1})
            assert await numbers(stream, 1) == [1]
            await stream.add("mine", "n = 2")
            await client.publish({"n": 1})
            await client.publish({"n": 2})
            assert await numbers(stream, 1) == [2]
            assert overlay["b1"].driver.core.router.counts().local_subscriptions == 1

    run(test)


def test_a_closed_client_loses_its_subscriptions(tmp_path: Path) -> None:
    file = OverlayFileMaker(tmp_path, ["b1", "b2"], [("b1", "b2")])

    async def test() -> None:
        async with InLoop(file) as overlay, connect(file.url("b1")) as publisher:
            async with connect(file.url("b2")) as reader, reader.subscribe("TRUE") as stream:
                await overlay.quiet()
                await publisher.publish({"n": 1})
                assert await numbers(stream, 1) == [1]
                with pytest.raises(TimeoutExpiredError):
                    await stream.next(0.05)
            await overlay.quiet()
            assert overlay["b1"].driver.core.router.counts().remote_subscriptions == 0

    run(test)


def test_a_client_that_may_have_missed_the_welcome_of_a_new_session_gets_it_again(tmp_path: Path) -> None:
    file = OverlayFileMaker(tmp_path, ["b1"])

    async def test() -> None:
        async with InLoop(file) as overlay:
            for _ in range(2):
                async with RawClient(file.ports["b1"]) as raw:
                    assert not (await raw.greet()).is_resumed
                await until(lambda: not overlay["b1"].clients.sessions)
            async with RawClient(file.ports["b1"]) as raw:
                assert not (await raw.greet()).is_resumed
                await raw.send(Ping(1))
                assert await raw.frame() == Pong(1)
            await until(lambda: not overlay["b1"].clients.sessions)
            async with RawClient(file.ports["b1"]) as raw:
                assert (await raw.greet()).is_resumed

    run(test)
