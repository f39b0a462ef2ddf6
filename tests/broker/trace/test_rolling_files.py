"""A trace that is readable while it is written: complete files appear one after another, with each row exactly once."""

from __future__ import annotations

from pathlib import Path

from broker.trace.files import TraceWriter, iter_rows
from broker.trace.schema import DropRow, LinkRow


def drop(number: int) -> DropRow:
    return DropRow(float(number), "b1", "queue full", None, "")


def files(folder: Path, table: str) -> list[str]:
    return sorted(path.name for path in (folder / "trace" / table).glob("[!.]*"))


def test_rows_can_be_read_after_each_roll_and_all_at_the_end(tmp_path: Path) -> None:
    with TraceWriter(tmp_path, "run") as writer:
        writer.record(drop(1))
        assert files(tmp_path, "drops") == []
        writer.roll()
        assert list(iter_rows(tmp_path, DropRow)) == [drop(1)]
        writer.record(drop(2))
        writer.record(drop(3))
        writer.roll()
        assert list(iter_rows(tmp_path, DropRow)) == [drop(1), drop(2), drop(3)]
        writer.record(drop(4))
    assert list(iter_rows(tmp_path, DropRow)) == [drop(number) for number in (1, 2, 3, 4)]
    assert files(tmp_path, "drops") == ["part-00000.parquet", "part-00001.parquet", "part-00002.parquet"]


def test_a_table_without_rows_gets_no_file_until_the_end(tmp_path: Path) -> None:
    with TraceWriter(tmp_path, "run") as writer:
        writer.record(drop(1))
        writer.roll()
        writer.roll()
        assert files(tmp_path, "links") == []
        assert files(tmp_path, "drops") == ["part-00000.parquet"]
    assert list(iter_rows(tmp_path, LinkRow)) == []
    assert files(tmp_path, "links") == ["part-00000.parquet"]


def test_rolling_leaves_the_digest_alone(tmp_path: Path) -> None:
    digests = []
    for name in ("rolled", "whole"):
        with TraceWriter(tmp_path / name, "run") as writer:
            writer.record(drop(1))
            if name == "rolled":
                writer.roll()
            writer.record(drop(2))
            digests.append(writer.digest.hexdigest())
    assert digests[0] == digests[1]


def test_visible_files_stay_when_the_rest_is_abandoned(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path, "run")
    writer.record(drop(1))
    writer.roll()
    writer.record(drop(2))
    writer.discard()
    assert list(iter_rows(tmp_path, DropRow)) == [drop(1)]
    assert sorted(path.name for path in (tmp_path / "trace" / "drops").iterdir()) == ["part-00000.parquet"]
