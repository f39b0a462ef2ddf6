"""Revoked rights: the broker revokes the entries that they covered, at once or before the client's next delivery."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from broker import RefusedError, connect
from broker.runtime.status import as_prometheus
from broker.runtime.store import Store
from broker.wire.client_codec import decode
from broker.wire.client_frames import Delivery, Goodbye, Hello, Ping, Reason, RequestAccepted, Subscribe, Welcome
from matching.languages.sql import parse
from tests.harness.broker_processes import InLoop, OverlayFileMaker, run
from tests.harness.conditions import until
from tests.harness.raw_client import LIMITS, RawClient
from tests.harness.secured_overlay import rule

SECRET = "a word that nobody guesses"
PUBLIC = "public = TRUE"


def allow(folder: Path, **rights: str) -> None:
    """Writes an access list with these rights for the client desk."""
    text = rule("source", SECRET, publish="TRUE", advertise="TRUE") + rule("desk", SECRET, **rights)
    (folder / "access.toml").write_text(text)


def secured(folder: Path, *brokers: str, is_durable: bool = True) -> OverlayFileMaker:
    (folder / "brokers.token").write_text("the brokers of this overlay know this")
    tables: dict[str, dict[str, object]] = {"acl": {"file": "access.toml", "brokers_token_file": "brokers.token"}}
    if is_durable:
        tables["store"] = {"data_dir": "data", "fsync": "never"}
    links = [(brokers[0], other) for other in brokers[1:]]
    return OverlayFileMaker(folder, brokers, links, tables=tables)


@pytest.mark.parametrize("is_durable", [False, True], ids=["in memory", "durable"])
@pytest.mark.parametrize("mode", ["at-least-once", "at-most-once"])
def test_on_reload_a_client_loses_subscriptions_beyond_its_rights_and_is_notified(
    tmp_path: Path, mode: str, is_durable: bool, caplog: pytest.LogCaptureFixture
) -> None:
    file = secured(tmp_path, "b1", "b2", is_durable=is_durable)
    allow(tmp_path, subscribe="TRUE")

    async def test() -> None:
        async with (
            InLoop(file) as overlay,
            connect(file.url("b2"), name="source", token=SECRET) as source,
            connect(file.url("b1"), name="desk", token=SECRET, mode=mode) as desk,
            desk.subscribe("TRUE", name="all") as everything,
            desk.subscribe("public = TRUE AND n > 0", name="some") as some,
        ):
            b1 = overlay["b1"]
            await overlay.quiet()
            await source.publish({"public": False, "n": 1})
            assert (await everything.next(20.0))["n"] == 1
            allow(tmp_path, subscribe=PUBLIC)
            b1.reload_security()
            client = b1.driver.core.client("desk")
            assert client is None or set(client.subscriptions) == {"some"}
            with pytest.raises(RefusedError, match="may subscribe to only what public = TRUE covers"):
                await everything.next(20.0)
            await overlay.quiet()
            assert overlay["b2"].driver.core.router.counts().remote_subscriptions == 1
            await source.publish({"public": False, "n": 2})
            await source.publish({"public": True, "n": 3})
            assert (await some.next(20.0))["n"] == 3
            assert not len(some)
            assert desk.reconnects == 1
            status = b1.status()
            assert status.withdrawn == 1
            assert 'mercast_withdrawn_total{broker="b1"} 1' in as_prometheus(status)

    run(test)
    (line,) = [record for record in caplog.records if record.message == "rights withdrawn"]
    assert line.fields["client"] == "desk"  # type: ignore[attr-defined]
    assert line.fields["subscriptions"] == ("all",)  # type: ignore[attr-defined]


def test_a_reload_that_revokes_nothing_keeps_connections(tmp_path: Path) -> None:
    file = secured(tmp_path, "b1")
    allow(tmp_path, subscribe=PUBLIC)

    async def test() -> None:
        async with (
            InLoop(file) as overlay,
            connect(file.url("b1"), name="source", token=SECRET) as source,
            connect(file.url("b1"), name="desk", token=SECRET) as desk,
            desk.subscribe("public = TRUE AND n > 0") as stream,
        ):
            for rights in ({"subscribe": "TRUE"}, {"subscribe": PUBLIC}, {"subscribe": PUBLIC, "publish": "TRUE"}):
                allow(tmp_path, **rights)
                overlay["b1"].reload_security()
            await source.publish({"public": True, "n": 3})
            assert (await stream.next(20.0))["n"] == 3
            assert desk.reconnects == 0
            assert overlay["b1"].status().withdrawn == 0

    run(test)


async def greet(raw: RawClient) -> Welcome:
    await raw.send(Hello("desk", "another process", SECRET, is_durable=True))
    welcome = await raw.frame()
    assert isinstance(welcome, Welcome)
    return welcome


@pytest.mark.parametrize("change", ["reload", "restart"])
def test_deliveries_queued_for_an_absent_client_are_dropped_beyond_its_rights(tmp_path: Path, change: str) -> None:
    file = secured(tmp_path, "b1")
    allow(tmp_path, subscribe="TRUE")

    async def test() -> None:
        async with InLoop(file) as overlay, connect(file.url("b1"), name="source", token=SECRET) as source:
            async with (
                connect(file.url("b1"), name="desk", token=SECRET, durable=True) as desk,
                desk.subscribe("TRUE", name="all"),
                desk.subscribe("n > 0 AND public = TRUE", name="some"),
            ):
                pass
            for n in range(1, 5):
                await source.publish({"public": n % 2 == 0, "n": n})
            allow(tmp_path, subscribe=PUBLIC)
            if change == "reload":
                overlay["b1"].reload_security()
            else:
                await overlay.stop("b1")
                await overlay.start("b1")
            core = overlay["b1"].driver.core
            async with RawClient(file.ports["b1"]) as raw:
                assert not (await greet(raw)).is_resumed, "a subscription was revoked"
            await until(lambda: "desk" not in overlay["b1"].clients.sessions)
            async with RawClient(file.ports["b1"]) as raw:
                assert not (await greet(raw)).is_resumed, (
                    "the first connection may have closed before the client read the answer"
                )
                await raw.send(Ping(1))
                frames = [decode(await raw.raw_frame(), LIMITS) for _ in range(2)]
                assert [decoded(frame) for frame in frames] == [2, 4]
            client = core.client("desk")
            assert client is not None
            assert set(client.subscriptions) == {"some"}
            assert core.drops["forbidden"] == 2
            assert client.undelivered_bytes == sum(len(each.attributes) for each in client.undelivered())
            async with RawClient(file.ports["b1"]) as raw:
                assert (await greet(raw)).is_resumed
            await overlay.stop("b1")
            await overlay.start("b1")
            async with RawClient(file.ports["b1"]) as raw:
                assert (await greet(raw)).is_resumed
                frames = [decode(await raw.raw_frame(), LIMITS) for _ in range(2)]
                assert [decoded(frame) for frame in frames] == [2, 4], "revoked deliveries stay revoked after a restart"

    run(test)


def decoded(frame: object) -> object:
    from matching.matcher import unpack_attributes

    assert isinstance(frame, Delivery)
    return unpack_attributes(frame.attributes)["n"]


def test_advertisements_are_revoked_with_their_right(tmp_path: Path) -> None:
    file = secured(tmp_path, "b1")
    allow(tmp_path, publish="TRUE", advertise="TRUE")

    async def test() -> None:
        async with InLoop(file) as overlay, connect(file.url("b1"), name="desk", token=SECRET) as desk:
            await desk.advertise("n > 0")
            await desk.advertise("public = TRUE AND n > 0")
            allow(tmp_path, publish="TRUE", advertise=PUBLIC)
            overlay["b1"].reload_security()
            await until(lambda: desk.reconnects == 1)
            await desk.publish({"n": 1})
            client = overlay["b1"].driver.core.client("desk")
            assert client is not None
            assert [client.expressions[entry] for entry in client.advertisements.values()] == [
                str(parse("public = TRUE AND n > 0"))
            ]

    run(test)


def test_a_request_that_was_allowed_and_is_committed_after_the_reload_is_revoked(tmp_path: Path) -> None:
    file = secured(tmp_path, "b1")
    allow(tmp_path, subscribe="TRUE")

    async def test() -> None:
        async with InLoop(file) as overlay, RawClient(file.ports["b1"]) as raw:
            core = overlay["b1"].driver.core
            await greet(raw)
            await raw.send(Subscribe(1, "all", "TRUE"))
            # Without a pause: the write may be committed within a few milliseconds.
            await until(lambda: ("subscription", "desk", "all") in core._pending_writes, pause_s=0)
            allow(tmp_path, subscribe=PUBLIC)
            overlay["b1"].reload_security()
            assert ("subscription", "desk", "all") in core._pending_writes
            assert await raw.frame() == RequestAccepted(1)
            goodbye = await raw.frame()
            assert isinstance(goodbye, Goodbye)
            assert goodbye.reason == Reason.FORBIDDEN
            client = core.client("desk")
            assert client is not None
            assert not client.subscriptions

    run(test)


@pytest.mark.parametrize("reconnects", ["before it is stored", "as another process", "after it is stored"])
def test_a_request_that_is_committed_after_its_connection_and_its_right_ended_is_revoked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reconnects: str
) -> None:
    file = secured(tmp_path, "b1")
    allow(tmp_path, subscribe="TRUE")
    session = "a third process" if reconnects == "as another process" else "another process"
    may_commit = threading.Event()
    commit = Store._commit

    def commit_later(*arguments: Any) -> None:
        may_commit.wait(20.0)
        commit(*arguments)

    async def test() -> None:
        async with InLoop(file) as overlay:
            b1 = overlay["b1"]
            store = b1.store
            assert store is not None
            async with RawClient(file.ports["b1"]) as raw:
                await greet(raw)
                await until(lambda: not store.pending_count and store._writing is None)
                monkeypatch.setattr(Store, "_commit", commit_later)
                await raw.send(Subscribe(1, "all", "TRUE"))
                await until(lambda: ("subscription", "desk", "all") in b1.driver.core._pending_writes)
                allow(tmp_path, subscribe=PUBLIC)
                b1.reload_security()
            await until(lambda: not b1.clients.sessions)
            if reconnects == "after it is stored":
                may_commit.set()
                await until(lambda: ("subscription", "desk", "all") not in b1.driver.core._pending_writes)
            async with RawClient(file.ports["b1"]) as raw:
                await raw.send(Hello("desk", session, SECRET, is_durable=True))
                assert isinstance(await raw.frame(), Welcome)
                may_commit.set()
                await until(lambda: ("subscription", "desk", "all") not in b1.driver.core._pending_writes)
                client = b1.driver.core.client("desk")
                assert client is not None
                assert not client.subscriptions

    run(test)
