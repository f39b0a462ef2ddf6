"""No client keeps a broker from serving others: turns of the event loop are short, whatever clients send."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from functools import partial
from pathlib import Path

import pytest

from broker import connect
from broker.client.errors import InvalidError, RefusedError
from broker.core.inputs import Input, Subscribed
from broker.runtime import expression_reader, listener
from broker.runtime.client_session import ClientSession
from broker.runtime.connection import Connection, FlushQueue, TurnBudget
from broker.runtime.core_driver import CoreDriver
from broker.runtime.pause_meter import PauseMeter
from broker.runtime.server import BrokerServer
from broker.security.access import Rights
from broker.wire.client_codec import encode
from broker.wire.client_frames import Ping, RequestAccepted, RequestRefused, Subscribe
from broker.wire.limits import Limits, WireError
from matching.expressions.model import Expression
from matching.languages.sql import parse
from routing.tables import is_parsable
from tests.harness.broker_processes import InLoop, OverlayFileMaker, run
from tests.harness.conditions import until
from tests.harness.raw_client import RawClient

LONG = " OR ".join(f"(a = {number} AND b > {number})" for number in range(100))


def one(tmp_path: Path) -> OverlayFileMaker:
    return OverlayFileMaker(tmp_path, ["b1"])


class BlockedReading:
    """Reads an expression when the test lets it."""

    def __init__(self) -> None:
        self.is_reading = threading.Event()
        self.may_read = threading.Event()

    def parse(self, text: str) -> Expression:
        self.is_reading.set()
        self.may_read.wait()
        return parse(text)


class CountedTurns:
    """Counts the turns of the event loop in the block."""

    def __enter__(self) -> CountedTurns:
        self.turn = 0
        self._is_counting = True
        self._count()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_counting = False

    def _count(self) -> None:
        self.turn += 1
        if self._is_counting:
            asyncio.get_running_loop().call_soon(self._count)


def test_a_connection_without_time_handles_one_frame_in_a_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "TurnBudget", partial(TurnBudget, 0, 0))
    file, handled = one(tmp_path), list[tuple[int, str]]()
    handle = CoreDriver.handle

    async def test() -> None:
        with CountedTurns() as turns:

            def counted(driver: CoreDriver, happened: Input) -> None:
                if isinstance(happened, Subscribed):
                    handled.append((turns.turn, happened.client))
                handle(driver, happened)

            monkeypatch.setattr(CoreDriver, "handle", counted)
            async with InLoop(file), RawClient(file.ports["b1"]) as first, RawClient(file.ports["b1"]) as second:
                await first.greet("first")
                await second.greet("second")
                for raw in (first, second):
                    await raw.send(*(Subscribe(each, f"n{each}", f"n = {each}") for each in range(50)))
                for raw in (first, second):
                    for each in range(50):
                        assert await raw.frame() == RequestAccepted(each)

    run(test)
    assert len(handled) == 100
    assert len({turn for turn, _ in handled}) == 100
    # Neither waits until the other has finished.
    order = [client for _, client in handled]
    assert order.index("second") < 50
    assert order[-50:] != ["second"] * 50


def test_connections_that_postpone_frames_continue_in_turn() -> None:
    log: list[str] = []

    class OneFrame:
        """Handles one frame in each turn."""

        def __init__(self, name: str, connection: Connection) -> None:
            self.name, self.connection = name, connection

        def received(self, frames: list[bytes]) -> None:
            log.append(self.name)
            if frames[1:]:
                self.connection.postpone(frames[1:])

        def before_writing(self) -> None: ...
        def paused(self) -> None: ...
        def resumed(self) -> None: ...
        def malformed(self, error: WireError) -> None: ...
        def lost(self) -> None: ...

    async def test() -> None:
        budget, flush_queue = TurnBudget(0, 0), FlushQueue()
        for name in "ab":
            connection = Connection(flush_queue, budget, Limits(), 1 << 16)
            connection.receiver = OneFrame(name, connection)
            connection.receive_early(3 * encode(Ping(1)))
        while len(log) < 6:
            await asyncio.sleep(0)

    asyncio.run(test())
    # The first one uses up the first turn.
    assert log == ["a", "a", "b", "a", "b", "b"]


def test_a_long_expression_is_read_in_a_thread_and_requests_stay_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, threads = one(tmp_path), list[str]()

    def recorded(text: str) -> object:
        threads.append(threading.current_thread().name)
        return parse(text)

    monkeypatch.setattr(expression_reader, "parse", recorded)
    monkeypatch.setattr("broker.core.sessions.parse", lambda _: pytest.fail("the core reads a long expression"))

    async def test() -> None:
        async with InLoop(file), connect(file.url("b1")) as client, client.subscribe(LONG) as stream:
            await client.publish({"a": 7, "b": 8})
            assert (await stream.next(40.0))["a"] == 7

    run(test)
    assert [name.partition("_")[0] for name in threads] == ["requests"]


def test_a_long_expression_with_an_error_is_refused_with_the_place(tmp_path: Path) -> None:
    file = one(tmp_path)

    async def test() -> None:
        async with InLoop(file), connect(file.url("b1")) as client:
            with pytest.raises(InvalidError) as caught:
                async with client.subscribe(f"{LONG} OR price >"):
                    pass
            assert f"column {len(LONG) + len(' OR price >') + 1}" in str(caught.value)
            await client.publish({"a": 1})

    run(test)


def test_a_long_expression_outside_the_rights_is_refused(tmp_path: Path) -> None:
    file = one(tmp_path)

    async def test() -> None:
        async with InLoop(file) as overlay, connect(file.url("b1"), name="desk") as client:
            overlay["b1"].clients.sessions["desk"]._rights = Rights(subscribe=parse("c = 1"))
            with pytest.raises(RefusedError, match="may subscribe to only what c = 1 covers"):
                async with client.subscribe(LONG):
                    pass
            assert overlay["b1"].violations.counts == {"forbidden": 1}

    run(test)


def test_rights_that_change_while_an_expression_is_read_are_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, blocked = one(tmp_path), BlockedReading()
    monkeypatch.setattr(expression_reader, "parse", blocked.parse)

    async def test() -> None:
        async with InLoop(file) as overlay, RawClient(file.ports["b1"]) as raw:
            await raw.greet("desk")
            await raw.send(Subscribe(1, "n", LONG))
            await until(blocked.is_reading.is_set)
            overlay["b1"].clients.sessions["desk"]._rights = Rights()
            blocked.may_read.set()
            answer = await raw.frame()
            assert isinstance(answer, RequestRefused)
            assert answer.reason == "forbidden"
            assert overlay["b1"].driver.core.router.counts().local_subscriptions == 0

    run(test)


def test_a_link_stays_up_while_an_update_is_read_for_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = OverlayFileMaker(tmp_path, ["b1", "b2"], [("b1", "b2")])
    is_reading, may_read, threads = threading.Event(), threading.Event(), list[str]()

    def waiting(text: str) -> bool:
        threads.append(threading.current_thread().name)
        is_reading.set()
        may_read.wait()
        return is_parsable(text)

    async def test() -> None:
        async with InLoop(file) as overlay:
            monkeypatch.setattr(expression_reader, "is_parsable", waiting)
            before = {id: overlay[id].neighbours.links for id in file.ids}
            links = {id: next(iter(links.values())) for id, links in before.items()}
            async with connect(file.url("b2")) as subscriber, subscriber.subscribe(LONG) as stream:
                await until(is_reading.is_set)
                # Three times as long as the silence after which a link is down.
                await asyncio.sleep(1.8)
                may_read.set()
                await overlay.quiet()
                async with connect(file.url("b1")) as publisher:
                    await publisher.publish({"a": 5, "b": 6})
                assert (await stream.next(40.0))["a"] == 5
            assert {id: next(iter(overlay[id].neighbours.links.values())) for id in file.ids} == links

    run(test)
    assert {name.partition("_")[0] for name in threads} == {"links"}


def test_an_expression_that_cannot_be_read_by_a_defect_is_reported_and_the_connection_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = one(tmp_path)

    def broken(_text: str) -> object:
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr(expression_reader, "parse", broken)

    async def test() -> None:
        async with InLoop(file) as overlay, connect(file.url("b1")) as client:
            with pytest.raises(InvalidError, match="failed to read"):
                async with client.subscribe(LONG):
                    pass
            assert overlay["b1"].errors.counts == {"expression not read": 1}
            async with client.subscribe("n = 1") as stream:
                await client.publish({"n": 1})
                assert (await stream.next(40.0))["n"] == 1

    run(test)


def test_a_client_that_leaves_while_its_expression_is_read_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, blocked = one(tmp_path), BlockedReading()
    monkeypatch.setattr(expression_reader, "parse", blocked.parse)

    async def test() -> None:
        async with InLoop(file) as overlay:
            async with RawClient(file.ports["b1"]) as raw:
                await raw.greet("desk")
                await raw.send(Subscribe(1, "n", LONG))
                await until(blocked.is_reading.is_set)
                overlay["b1"].clients.sessions["desk"].connection.abort()
            await until(lambda: not overlay["b1"].clients.sessions)
            blocked.may_read.set()
            await asyncio.to_thread(overlay["b1"]._admission._reader._thread.submit(bool).result)
            await asyncio.sleep(0)
            assert overlay["b1"].driver.core.router.counts().local_subscriptions == 0

    run(test)


def test_the_pause_meter_shows_how_long_nothing_was_served() -> None:
    async def test() -> None:
        meter = PauseMeter()
        meter.start()
        await asyncio.sleep(0.1)
        time.sleep(0.3)
        await until(lambda: meter.longest_s > 0.2)
        assert meter.longest_recent_s == meter.longest_s
        meter.stop()

    asyncio.run(test())


def test_the_longest_pause_is_in_the_status_and_the_metrics(tmp_path: Path) -> None:
    from broker.runtime.status import as_prometheus

    file = one(tmp_path)

    async def test() -> None:
        async with InLoop(file) as overlay:
            server: BrokerServer = overlay["b1"]
            server.housekeeping.pauses.longest_s = 1.25
            status = server.status()
            assert status.longest_pause_s == 1.25
            assert 'mercast_longest_pause_seconds{broker="b1"} 1.25' in as_prometheus(status)

    run(test)


def test_connections_that_ended_are_freed_without_the_cycle_collector(tmp_path: Path) -> None:
    """A broker never collects cycles of objects that lived for long."""
    file = one(tmp_path)

    def alive() -> list[object]:
        return [each for each in gc.get_objects() if type(each) in (ClientSession, Connection)]

    async def test() -> None:
        async with InLoop(file):
            gc.collect()
            gc.disable()
            try:
                for number in range(5):
                    async with connect(file.url("b1"), name=f"c{number}") as client, client.subscribe("n = 1"):
                        await client.publish({"n": 2})
                    async with RawClient(file.ports["b1"]) as raw:
                        await raw.greet(f"raw{number}")
                await until(lambda: not alive(), what=lambda: f"{len(alive())} objects of ended connections are alive")
            finally:
                gc.enable()

    run(test)
