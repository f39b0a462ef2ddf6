"""The store: committed records survive a restart, uncommitted ones are not reported, and foreign stores are refused."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import deque
from collections.abc import Callable
from pathlib import Path

import msgpack
import pytest

from broker import connect
from broker.config.tables import FSYNC_POLICIES, Fsync, StoreTable
from broker.core.effects import Deliver
from broker.runtime.store import Store
from broker.runtime.store_format import FILE, StoreError
from broker.runtime.store_records import RecordError, pack_record, unpack_record
from broker.wire.client_codec import encode
from broker.wire.client_frames import (
    Goodbye,
    PublicationRefused,
    PublicationsAccepted,
    PublishRequest,
    Reason,
    RequestAccepted,
    Subscribe,
)
from routing.messages import EntryId, PublicationId, Publish
from routing.router import ForwardingLeg
from tests.harness.broker_processes import InLoop, OverlayFileMaker, run
from tests.harness.conditions import until
from tests.harness.raw_client import RawClient

ID = PublicationId("b1", 3, 9)
DELIVERIES = (
    Deliver("c1", ID, ("a", "b"), b"\x80", b"payload", 2, 7, 123),
    Deliver("c2", ID, ("a",), b"\x80", b"payload", 2, 1, 123),
)
PUBLICATION = (
    Publish(ID, "b1", "", (), (), b"\x80", b"payload", expires=5),
    "c1",
    (ForwardingLeg("x", ("b2",), ("b3",), ("x", "y"), EntryId("b1", 1, 2)), ForwardingLeg("", ("b4",), ())),
)
RECORDS: dict[tuple[str, ...], object] = {
    ("arrival", "b1", "3", "9"): DELIVERIES,
    ("arrival", "b1", "3", "10"): (),
    ("publication", "b1", "3", "9"): PUBLICATION,
    ("subscription", "c1", "a"): ("price > 90", 1_700_000_000_000_000_000),
    ("client", "c1"): ("session", True, None),
    ("acknowledged", "c1"): 7,
    ("members", "west"): ("b2", "b3"),
    ("settled",): ((3, 7), (3, 8)),
}


@pytest.mark.parametrize("key", RECORDS)
def test_a_record_is_read_as_it_was_written(key: tuple[str, ...]) -> None:
    assert unpack_record(key, pack_record(key, RECORDS[key])) == RECORDS[key]


def test_a_publication_that_an_earlier_version_stored_is_read() -> None:
    key = ("publication", "b1", "3", "9")
    frame, client, legs = msgpack.unpackb(pack_record(key, PUBLICATION), use_list=False)
    assert unpack_record(key, msgpack.packb((frame, client, legs, ("c1", "c2")))) == PUBLICATION


def test_a_damaged_record_is_named() -> None:
    with pytest.raises(RecordError, match="publication/b1/3/9"):
        unpack_record(("publication", "b1", "3", "9"), pack_record(("client", "x"), ("no", "publication")))


def fill(folder: Path, policy: Fsync, records: dict[tuple[str, ...], object]) -> list[tuple[str, ...]]:
    persisted: list[tuple[str, ...]] = []

    async def test() -> None:
        store = Store(folder, StoreTable(data_dir="data", fsync=policy), persisted.extend, _raise)
        store.open("b1", 5)
        for key, record in records.items():
            store.put(key, record)
        assert not persisted, "nothing is stored before it is committed"
        await store.close()

    run(test)
    return persisted


def _raise(error: StoreError) -> None:
    raise error


@pytest.mark.parametrize("policy", FSYNC_POLICIES)
def test_committed_records_are_there_after_a_restart(tmp_path: Path, policy: Fsync) -> None:
    assert fill(tmp_path, policy, RECORDS) == list(RECORDS)

    async def again() -> None:
        store = Store(tmp_path, StoreTable(data_dir="data", fsync=policy), lambda _: None, _raise)
        earlier, now, records = store.open("b1", 2)
        assert (earlier, now) == (5, 6), "incarnations grow, whatever the clock says"
        assert records == RECORDS
        for key in RECORDS:
            store.remove(key)
        await store.close()

    run(again)
    assert fill(tmp_path, policy, {}) == []


def test_a_record_that_cannot_be_written_does_not_affect_others(tmp_path: Path) -> None:
    message, *rest = PUBLICATION
    too_late = (message._replace(expires=1 << 64), *rest)
    refused: list[RecordError] = []
    persisted: list[tuple[str, ...]] = []

    async def test() -> None:
        store = Store(tmp_path, StoreTable(), persisted.extend, _raise, refused=refused.append)
        store.open("b1", 5)
        store.put(("acknowledged", "c1"), 7)
        store.put(("publication", "b1", "3", "9"), too_late)
        store.put(("acknowledged", "c2"), 1 << 64)
        store.put(("acknowledged", "c3"), 8)
        await store.close()

    run(test)
    assert [str(error).split(":")[0] for error in refused] == [
        "the record publication/b1/3/9 cannot be written",
        "the record acknowledged/c2 cannot be written",
    ]
    assert persisted == [("acknowledged", "c1"), ("acknowledged", "c3")]

    async def again() -> None:
        store = Store(tmp_path, StoreTable(), lambda _: None, _raise)
        assert store.open("b1", 6)[2] == {("acknowledged", "c1"): 7, ("acknowledged", "c3"): 8}
        await store.close()

    run(again)


def fail_when_full(store: Store) -> None:
    """Limits the size of the database, so that it has room for small records only."""
    pages = store._database.execute("PRAGMA page_count").fetchone()[0]
    store._database.execute(f"PRAGMA max_page_count = {pages + 16}")


def fail_with(action: str) -> Callable[[Store], None]:
    """Makes SQLite fail at a large record. `ABORT` leaves the transaction open, `ROLLBACK` closes it."""

    def prepare(store: Store) -> None:
        store._database.execute(
            "CREATE TRIGGER full BEFORE INSERT ON records WHEN length(NEW.value) > 100000"
            f" BEGIN SELECT RAISE({action}, 'full'); END"
        )

    return prepare


FAILURES = {"full": fail_when_full, "open transaction": fail_with("ABORT"), "closed transaction": fail_with("ROLLBACK")}


@pytest.mark.parametrize("failure", FAILURES)
def test_after_a_failed_write_nothing_is_written_or_reported_as_persisted(tmp_path: Path, failure: str) -> None:
    persisted: list[tuple[str, ...]] = []
    failures: list[str] = []
    stays, ledger = ("subscription", "c", "stays"), ("taken", "c")
    late = ("publication", "b1", "3", "9")

    async def test() -> None:
        store = Store(tmp_path, StoreTable(), persisted.extend, lambda error: failures.append(str(error)))
        store.open("b1", 1)
        FAILURES[failure](store)
        store.put(stays, "a > 1")
        store.put(ledger, 1)
        await until(lambda: len(persisted) == 2)
        # In one transaction: a small record, the one that fails, a small record.
        store.put(("acknowledged", "c"), 1)
        store.put(("subscription", "c", "lost"), "x" * 500_000)
        store.put(ledger, 2)
        # The store starts a batch at the end of the loop turn.
        await asyncio.sleep(0)
        assert not store.pending_count, "it is being written"
        # Meanwhile the next publication becomes pending, and the client's ledger with it.
        store.put(late, PUBLICATION)
        store.put(ledger, 3)
        store.remove(stays)
        await until(lambda: bool(failures))
        store.put(late, PUBLICATION)
        store.put(ledger, 4)
        store.remove(stays)
        # Time for a write that must not happen.
        await asyncio.sleep(0.05)
        assert not store.pending_count
        await store.close()
        assert store.commits == 1

    run(test)
    assert persisted == [stays, ledger]
    (reported,) = failures
    assert reported.startswith(f"cannot write {tmp_path / FILE}: ")

    async def again() -> None:
        store = Store(tmp_path, StoreTable(), lambda _: None, _raise)
        assert store.open("b1", 2)[2] == {stays: "a > 1", ledger: 1}
        await store.close()

    run(again)


def test_a_store_without_a_handler_for_refused_records_fails_once_and_writes_nothing_more(tmp_path: Path) -> None:
    persisted: list[tuple[str, ...]] = []
    failures: list[str] = []

    async def test() -> None:
        store = Store(tmp_path, StoreTable(), persisted.extend, lambda error: failures.append(str(error)))
        store.open("b1", 1)
        for client in ("c1", "c2"):
            store.put(("acknowledged", client), 1 << 64)
        store.put(("acknowledged", "c3"), 1)
        await store.close()

    run(test)
    assert [each.split(":")[0] for each in failures] == ["the record acknowledged/c1 cannot be written"]
    assert not persisted

    async def again() -> None:
        store = Store(tmp_path, StoreTable(), lambda _: None, _raise)
        assert store.open("b1", 2)[2] == {}
        await store.close()

    run(again)


def test_a_record_is_reported_as_persisted_even_if_it_was_removed_before_it_was_written(tmp_path: Path) -> None:
    persisted: list[tuple[str, ...]] = []

    async def test() -> None:
        store = Store(tmp_path, StoreTable(data_dir="data", fsync="never"), persisted.extend, _raise)
        store.open("b1", 1)
        for name in ("removed", "stays", "came again"):
            store.put(("subscription", "c", name), "a > 1")
        for name in ("removed", "came again", "unknown"):
            store.remove(("subscription", "c", name))
        store.put(("subscription", "c", "came again"), "a > 2")
        await store.close()

    run(test)
    assert sorted(name for _, _, name in persisted) == ["came again", "removed", "stays"]

    async def again() -> None:
        store = Store(tmp_path, StoreTable(data_dir="data", fsync="never"), persisted.extend, _raise)
        _, _, records = store.open("b1", 1)
        assert records == {("subscription", "c", "stays"): "a > 1", ("subscription", "c", "came again"): "a > 2"}
        await store.close()

    run(again)


def test_a_client_that_leaves_while_it_is_stored_leaves_its_names_free(tmp_path: Path) -> None:
    file = OverlayFileMaker(tmp_path, ["b1"], tables={"store": {"data_dir": "data"}})

    async def test() -> None:
        async with InLoop(file) as overlay:
            async with RawClient(file.ports["b1"]) as raw:
                await raw.greet("desk", is_durable=True)
                await raw.send(Subscribe(1, "s", "a > 1"))
                assert await raw.frame() == RequestAccepted(1)
                # In one write, so that the store has committed none of the entries when the client leaves.
                entries = encode(Subscribe(2, "s", "a > 2")) + encode(Subscribe(3, "s", "a > 3"))
                await raw.send(entries + encode(Goodbye(Reason.DONE)))
                assert await raw.raw_frame() == b""
            async with RawClient(file.ports["b1"]) as raw:
                assert not (await raw.greet("desk", is_durable=True)).is_resumed
                await raw.send(Subscribe(1, "s", "a > 4"))
                async with asyncio.timeout(40.0):
                    assert await raw.frame() == RequestAccepted(1)
                await raw.send(Goodbye(Reason.DONE))
                assert await raw.raw_frame() == b""
            await until(lambda: overlay["b1"].driver.core.client("desk") is None)
        async with InLoop(file) as overlay:
            assert overlay["b1"].driver.core.client("desk") is None

    run(test)


def test_the_welcome_lists_which_publications_of_a_session_were_accepted_also_after_a_restart(tmp_path: Path) -> None:
    file = OverlayFileMaker(tmp_path, ["b1"], tables={"store": {"data_dir": "data"}})
    wrong = b"\xa5no map"

    async def test() -> None:
        async with InLoop(file), RawClient(file.ports["b1"]) as raw:
            assert (await raw.greet()).accepted_through == 0
            await raw.send(PublishRequest(1, b"\x80"), PublishRequest(2, wrong), PublishRequest(3, b"\x80"))
            answered: set[int] = set()
            while len(answered) < 3:
                frame = await raw.frame()
                assert isinstance(frame, PublicationsAccepted | PublicationRefused)
                answered |= set(frame.answers[::2]) if isinstance(frame, PublicationsAccepted) else {frame.reference}
            async with RawClient(file.ports["b1"]) as again:
                welcome = await again.greet()
                assert (welcome.is_resumed, welcome.accepted_through, welcome.missing) == (True, 3, (2,))
        async with InLoop(file), RawClient(file.ports["b1"]) as raw:
            welcome = await raw.greet()
            assert (welcome.is_resumed, welcome.accepted_through, welcome.missing) == (True, 3, (2,))

    run(test)


def test_a_store_of_another_broker_or_version_is_refused(tmp_path: Path) -> None:
    fill(tmp_path, "never", {})

    async def other() -> None:
        with pytest.raises(StoreError, match="belongs to broker b1, not to b2"):
            Store(tmp_path, StoreTable(), lambda _: None, _raise).open("b2", 1)

    run(other)
    with sqlite3.connect(tmp_path / FILE) as database:
        database.execute("PRAGMA user_version = 99")
    database.close()

    async def newer() -> None:
        with pytest.raises(StoreError, match="version 99"):
            Store(tmp_path, StoreTable(), lambda _: None, _raise).open("b1", 1)

    run(newer)


def test_a_store_cannot_be_used_by_two_brokers_at_once(tmp_path: Path) -> None:
    async def test() -> None:
        first = Store(tmp_path, StoreTable(), lambda _: None, _raise)
        first.open("b1", 1)
        with pytest.raises(StoreError, match="does another broker use it"):
            Store(tmp_path, StoreTable(), lambda _: None, _raise, lock_timeout_s=0.1).open("b1", 1)
        await first.close()

    run(test)


def test_a_durable_client_finds_its_subscriptions_and_undelivered_publications_after_a_restart(tmp_path: Path) -> None:
    file = OverlayFileMaker(
        tmp_path, ["b1", "b2"], [("b1", "b2")], tables={"store": {"data_dir": "data", "fsync": "never"}}
    )

    async def test() -> None:
        async with InLoop(file) as overlay, connect(file.url("b1")) as publisher:
            async with (
                connect(file.url("b2"), name="desk", durable=True) as desk,
                desk.subscribe("n >= 0", name="all") as stream,
            ):
                await overlay.quiet()
                await publisher.publish({"n": 0})
                assert (await stream.next(40.0))["n"] == 0
            await publisher.publish({"n": 1})
            await until(lambda: overlay["b1"].drain.is_settled)
            await overlay.stop("b2")
            await publisher.publish({"n": 2})
            await overlay.start("b2")
            await overlay.linked()
            await publisher.publish({"n": 3})
            async with (
                connect(file.url("b2"), name="desk", durable=True) as desk,
                desk.subscribe("n >= 0", name="all") as stream,
            ):
                assert sorted([int((await stream.next(40.0))["n"]) for _ in range(3)]) == [1, 2, 3]
                await until(lambda: all(server.drain.is_settled for server in overlay.servers.values()))
                assert not len(stream)

    run(test)


def test_a_durable_client_is_refused_where_nothing_is_stored(tmp_path: Path) -> None:
    file = OverlayFileMaker(tmp_path, ["b1"])

    async def test() -> None:
        async with InLoop(file):
            with pytest.raises(Exception, match="no data directory"):
                await connect(file.url("b1"), name="desk", durable=True).open()

    run(test)


def test_an_error_over_one_stored_record_does_not_affect_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = OverlayFileMaker(tmp_path, ["b1"], tables={"store": {"data_dir": "data", "fsync": "never"}})

    def break_down() -> None:
        raise RuntimeError("this one is not understood")

    async def test() -> None:
        async with InLoop(file) as overlay, connect(file.url("b1")) as client:
            server = overlay["b1"]
            assert server.store is not None
            # The broken record is in the same batch as the publications, and before them.
            server.driver.core._pending_writes._waiting["acknowledged", "nobody"] = deque([break_down])
            server.store.put(("acknowledged", "nobody"), 1)
            assert all(await asyncio.gather(*(client.publish({"n": n}) for n in range(3))))
            assert server.errors.counts == {"core failed": 1}
            assert server.driver.core.failures == {"Persisted": 1}
            assert not server.store.pending_count

    run(test)
    (line,) = [record for record in caplog.records if record.message == "core failed"]
    assert line.fields["input"] == "Persisted: acknowledged/nobody"  # type: ignore[attr-defined]
    assert line.exc_info is not None
