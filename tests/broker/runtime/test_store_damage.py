"""A damaged store: a broker restores exactly its records or refuses to start, and `mercast store` shows the damage."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
import stat
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from broker import connect
from broker.config.tables import Fsync, StoreTable
from broker.runtime import store_files
from broker.runtime.store import DamagedStoreError, Store
from broker.runtime.store_files import LOG_SUFFIX, MARK_SUFFIX, beside
from broker.runtime.store_format import FILE, StoreError, UnreadableStoreError
from broker.runtime.store_reader import StoreReader
from broker.runtime.store_records import pack_key, pack_record
from tests.harness.broker_processes import OverlayFileMaker, Processes, run
from tests.harness.command_line import CommandLine
from tests.harness.conditions import until

Records = dict[tuple[str, ...], object]

RECORDS: Records = {
    ("subscription", f"client-{number}", "all"): (f"price > {number} AND " * 10 + "TRUE", number)
    for number in range(43)
}
BATCH = 8
HEADER_BYTES = 100
"""The header of an SQLite file. Damage there has the most different effects."""


def fill(folder: Path, *, is_killed: bool, has_checkpoint: bool = False, fsync: Fsync = "never") -> Path:
    """Writes the records in several commits. With `is_killed` the store is left as a killed broker leaves it. With
    `has_checkpoint` the database then contains some of the records, and the log the others."""

    async def test() -> None:
        used = folder.with_name(folder.name + "-used") if is_killed else folder
        store = Store(used, StoreTable(fsync=fsync), lambda _: None, _raise)
        store.open("b1", 5)
        for number, (key, record) in enumerate(RECORDS.items(), 1):
            store.put(key, record)
            if number % BATCH == 0:
                await until(lambda: store.records_written == number)  # noqa: B023
                if has_checkpoint and number == 3 * BATCH:
                    store._database.execute("PRAGMA wal_checkpoint")
        await until(lambda: store.records_written == len(RECORDS))
        if is_killed:
            shutil.copytree(used, folder)
        await store.close()

    run(test)
    return folder / FILE


def _raise(error: StoreError) -> None:
    raise error


async def restore(folder: Path) -> Records:
    store = Store(folder, StoreTable(), lambda _: None, _raise)
    _, _, records = store.open("b1", 5)
    await store.close()
    return records


def outcome(folder: Path, path: Path) -> str:
    """What a broker does with the store: it restores exactly the records, or refuses and names the file."""
    try:
        return "restored" if asyncio.run(restore(folder)) == RECORDS else "restored something else"
    except StoreError as error:
        return "refused" if str(path) in str(error) else f"refused without its name: {error}"


def flips(size: int, count: int) -> Iterator[int]:
    """Numbers of bits: every seventh of the header, and `count` of the whole file."""
    yield from range(0, min(size, HEADER_BYTES) * 8, 7)
    for number in range(count):
        yield size * number // count * 8 + number % 8


@pytest.mark.parametrize(
    ("is_killed", "has_checkpoint", "suffix", "count", "expected"),
    [
        (False, False, "", 250, {"restored", "refused"}),
        (True, True, "", 250, {"restored", "refused"}),
        (True, True, LOG_SUFFIX, 120, {"restored", "refused"}),
        (True, False, LOG_SUFFIX, 120, {"refused"}),
        (True, False, MARK_SUFFIX, 60, {"refused"}),
    ],
)
def test_after_one_flipped_bit_exactly_the_records_are_restored_or_the_store_is_refused(
    tmp_path: Path, is_killed: bool, has_checkpoint: bool, suffix: str, count: int, expected: set[str]
) -> None:
    sound = fill(tmp_path / "sound", is_killed=is_killed, has_checkpoint=has_checkpoint)
    assert asyncio.run(restore(shutil.copytree(sound.parent, tmp_path / "first"))) == RECORDS
    content = beside(sound, suffix).read_bytes()
    outcomes: Counter[str] = Counter()
    for bit in flips(len(content), count):
        folder = tmp_path / "damaged"
        shutil.copytree(sound.parent, folder)
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        beside(folder / FILE, suffix).write_bytes(damaged)
        outcomes[outcome(folder, folder / FILE)] += 1
        shutil.rmtree(folder)
    assert set(outcomes) <= expected, outcomes
    assert outcomes["refused"]


def edit(statement: str, *values: object) -> Callable[[Path], None]:
    """Changes the database by a statement, as damage of whole rows would."""

    def change(path: Path) -> None:
        with sqlite3.connect(path) as database:
            database.execute(statement, values)
        database.close()

    return change


def overwrite(path: Path) -> None:
    path.write_bytes(b"x" * 5000)


def damage_schema(path: Path) -> None:
    """Makes the name of a table an invalid text, which SQLite quotes in its message."""
    content = bytearray(path.read_bytes())
    content[content.index(b"recordsrecords") + 3] ^= 0x80
    path.write_bytes(content)


KEY = ("subscription", "client-7", "all")
DAMAGES: dict[str, tuple[Callable[[Path], None], str]] = {
    "a lost record": (edit("DELETE FROM records WHERE rowid = 20"), "42 records are readable, 43 were written"),
    "a changed value": (
        edit("UPDATE records SET value = ? WHERE key = ?", pack_record(KEY, ("a > 1", 7)), pack_key(KEY)),
        "the record subscription/client-7/all is damaged: its checksum does not fit",
    ),
    "one record in the place of another": (
        edit(
            "UPDATE records SET (key, value, digest) = (SELECT x'91a178', x'01', digest) WHERE rowid = 20",
        ),
        "the record x is damaged: its checksum does not fit",
    ),
    "another incarnation": (edit("UPDATE broker SET incarnation = 4"), "the row of the broker is damaged"),
    "no row of the broker": (edit("DELETE FROM broker"), "the row of the broker is damaged"),
    "no version": (edit("PRAGMA user_version = 0"), "its version is 0"),
    "an invalid schema": (damage_schema, "is not a store of Mercast, or its first page is damaged"),
    "a file of another kind": (overwrite, "is not a store of Mercast"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_broker_refuses_a_damaged_store_by_name_and_leaves_it_as_it_is(tmp_path: Path, damage: str) -> None:
    path = fill(tmp_path, is_killed=False)
    change, message = DAMAGES[damage]
    change(path)
    before = path.read_bytes()
    for _ in range(2):
        with pytest.raises(DamagedStoreError) as refusal:
            asyncio.run(restore(tmp_path))
        text = str(refusal.value)
        assert text.startswith(f"{path} is damaged")
        assert message in text
        assert f"mercast store check {path}" in text
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == [FILE]


def test_a_log_that_is_damaged_is_kept_for_a_look_at_it(tmp_path: Path) -> None:
    path = fill(tmp_path / "b1", is_killed=True)
    log = beside(path, LOG_SUFFIX)
    content = bytearray(log.read_bytes())
    content[len(content) // 2] ^= 1
    log.write_bytes(content)
    for _ in range(2):
        with pytest.raises(DamagedStoreError, match=r"the last \d of 7 commits are lost: the write-ahead log"):
            asyncio.run(restore(path.parent))
    assert log.read_bytes() == content


@pytest.mark.parametrize(
    ("fsync", "is_rebooted", "is_refused"),
    [("batch", True, True), ("checkpoint", True, False), ("checkpoint", False, True), ("never", True, False)],
)
def test_commits_may_be_missing_only_after_a_power_cut_under_a_policy_that_permits_it(
    tmp_path: Path,
    fsync: Fsync,
    is_rebooted: bool,
    is_refused: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(store_files, "current_boot", lambda: "boot-1")
    path = fill(tmp_path / "b1", is_killed=True, fsync=fsync)
    log = beside(path, LOG_SUFFIX)
    log.write_bytes(log.read_bytes()[:-1000])
    if is_rebooted:
        monkeypatch.setattr(store_files, "current_boot", lambda: "boot-2")
    if is_refused:
        with pytest.raises(DamagedStoreError, match="the last 1 of 7 commits are lost"):
            asyncio.run(restore(path.parent))
        return
    assert asyncio.run(restore(path.parent)) == dict(list(RECORDS.items())[:40])
    (line,) = [record for record in caplog.records if record.message == "store incomplete"]
    assert "the last 1 of 7 commits are lost" in line.fields["reason"]  # type: ignore[attr-defined]


def test_a_store_that_could_not_be_opened_is_not_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path / "b1", is_killed=False)

    def fail(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", fail)
        with pytest.raises(StoreError, match="No space left"):
            asyncio.run(restore(tmp_path / "b1"))
    assert asyncio.run(restore(tmp_path / "b1")) == RECORDS


def test_a_store_without_checksums_gets_them(tmp_path: Path) -> None:
    path = tmp_path / FILE
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE broker (id TEXT NOT NULL, incarnation INTEGER NOT NULL)")
        database.execute("CREATE TABLE records (key BLOB NOT NULL UNIQUE, value BLOB NOT NULL)")
        database.execute("INSERT INTO broker VALUES ('b1', 70)")
        rows = ((pack_key(key), pack_record(key, record)) for key, record in RECORDS.items())
        database.executemany("INSERT INTO records VALUES (?, ?)", rows)
        database.execute("PRAGMA user_version = 1")
    database.close()

    async def upgrade() -> None:
        store = Store(tmp_path, StoreTable(), lambda _: None, _raise)
        assert store.open("b1", 5) == (70, 71, RECORDS)
        store.put(("acknowledged", "c"), 1)
        store.remove(KEY)
        await store.close()

    run(upgrade)
    expected = {**RECORDS, ("acknowledged", "c"): 1}
    del expected[KEY]
    assert asyncio.run(restore(tmp_path)) == expected
    edit("UPDATE records SET value = x'00' WHERE rowid = 3")(path)
    with pytest.raises(DamagedStoreError, match="subscription/client-2/all"):
        asyncio.run(restore(tmp_path))


def test_only_the_owner_can_read_folder_and_files_and_wider_permissions_are_corrected(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "data" / "b1"

    def modes() -> dict[str, str]:
        return {path.name: oct(stat.S_IMODE(path.stat().st_mode)) for path in (folder, *folder.iterdir())}

    async def test() -> None:
        for _ in range(2):
            store = Store(folder, StoreTable(), lambda _: None, _raise)
            store.open("b1", 1)
            private = {FILE: "0o600", FILE + LOG_SUFFIX: "0o600", FILE + MARK_SUFFIX: "0o600"}
            assert modes() == {"b1": "0o700", **private}
            await store.close()
            folder.chmod(0o755)
            (folder / FILE).chmod(0o644)

    run(test)
    assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o700
    corrected = [record.fields for record in caplog.records if record.message == "permissions corrected"]  # type: ignore[attr-defined]
    assert [(Path(each["path"]).name, each["mode"]) for each in corrected] == [("b1", "0755"), (FILE, "0644")]


def test_a_broker_with_a_damaged_store_exits_and_the_commands_show_the_damage(tmp_path: Path) -> None:
    file = OverlayFileMaker(tmp_path, ["b1"], tables={"store": {"data_dir": "data"}})
    commands = CommandLine(tmp_path / "run", tmp_path)
    store = tmp_path / "data" / "b1" / FILE

    async def subscribe() -> None:
        client = connect(file.url("b1"), name="desk", durable=True)
        async with client, client.subscribe("price > 90", name="high"):
            refused = commands.run("store", "check", str(file.path), "--id", "b1")
            assert (refused.code, refused.out) == (4, "")
            assert f"{store} is in use" in refused.err

    with Processes(file) as brokers:
        run(subscribe)
        brokers.kill("b1")
    sound = commands.succeed("store", "check", str(file.path), "--id", "b1", "--json")
    report = json.loads(sound.out)
    assert (report["is_sound"], report["broker"], report["kinds"]["subscription"]) == (True, "b1", 1)
    lines = [json.loads(line) for line in commands.succeed("store", "export", str(store.parent)).out.splitlines()]
    assert ["subscription", "desk", "high"] in [line["key"] for line in lines]

    edit("UPDATE records SET value = x'01' WHERE key = ?", pack_key(("subscription", "desk", "high")))(store)
    damage = "the record subscription/desk/high is damaged: its checksum does not fit"
    with commands.started("broker", str(file.path), "--id", "b1") as process:
        out, err = process.communicate()
    assert (process.returncode, out) == (1, "")
    assert f"mercast: {store} is damaged" in err
    assert damage in err
    assert "Traceback" not in err
    checked = commands.run("store", "check", str(store))
    assert checked.code == 1
    assert f"damage: {damage}" in checked.out
    exported = commands.run("store", "export", str(store), "--out", "records.jsonl")
    assert (exported.code, exported.out) == (1, f"{len(lines)} records in records.jsonl\n")
    assert damage in exported.err
    written = [json.loads(line) for line in (tmp_path / "records.jsonl").read_text().splitlines()]
    (damaged,) = [line for line in written if "damaged" in line]
    assert damaged["key"] == ["subscription", "desk", "high"]
    assert damaged["packed_record"] == {"base64": "AQ=="}
    assert commands.run("store", "export", str(store), "--out", "records.jsonl").code == 3


def test_a_store_that_cannot_be_read_is_not_called_damaged(tmp_path: Path) -> None:
    path = fill(tmp_path, is_killed=False)
    beside(path, LOG_SUFFIX).mkdir()
    with pytest.raises(UnreadableStoreError, match=f"cannot read {path}"):
        asyncio.run(restore(tmp_path))


def test_records_before_and_after_a_damaged_page_are_exported(tmp_path: Path) -> None:
    path = fill(tmp_path, is_killed=False)
    content = path.read_bytes()
    with sqlite3.connect(path) as database:
        ((page_bytes,),) = database.execute("PRAGMA page_size")
    database.close()
    place = content.index(b"price > 20 AND")
    start = place // page_bytes * page_bytes
    path.write_bytes(content[:start] + bytes(page_bytes) + content[start + page_bytes :])
    with StoreReader(path) as reader:
        rows = list(reader.rows())
    sound = {row.key: row.record for row in rows if not row.problem}
    damaged = {row.key for row in rows if row.problem}
    assert 0 < len(sound) < len(RECORDS)
    assert sound.items() <= RECORDS.items()
    assert set(sound) | damaged == set(RECORDS)
    numbers = sorted(int(key[1].removeprefix("client-")) for key in damaged if key is not None)
    assert min(numbers) > 0
    assert max(numbers) < len(RECORDS) - 1


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["nowhere"], 3, "there is no store nowhere"),
        (["text.txt"], 3, "text.txt is not a store of Mercast"),
        (["test.toml"], 3, "add --id"),
        (["test.toml", "--id", "b1"], 3, "broker b1 has no data_dir"),
    ],
)
def test_what_is_no_store_is_named(tmp_path: Path, words: list[str], code: int, message: str) -> None:
    OverlayFileMaker(tmp_path, ["b1"])
    (tmp_path / "text.txt").write_text("text" * 400)
    outcome = CommandLine(tmp_path / "run", tmp_path).run("store", "check", *words)
    assert (outcome.code, outcome.out) == (code, "")
    assert message in outcome.err
