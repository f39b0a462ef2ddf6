"""Recorded rows are read back unchanged, memory stays flat, and a file with its final name is complete, however a run
ends."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.trace.files import PART, TraceWriter, iter_rows, read_table
from broker.trace.schema import (
    TABLES,
    Digest,
    ExpectationRow,
    FaultRow,
    LinkRow,
    Row,
    Trace,
    TraceError,
    TraceWriteError,
)
from tests.harness.trace_strategies import any_row

ROOT = Path(__file__).resolve().parents[3]
ARROW_TYPES = {"str": "string", "int": "int64", "float": "double", "bool": "bool"}


def link(number: int) -> LinkRow:
    return LinkRow(f"b{number}", f"b{number + 1}", number / 8, None)


def write(directory: Path, rows: Sequence[Row], batch_rows: int = 50_000) -> str:
    with TraceWriter(directory, "run-1", batch_rows) as writer:
        trace: Trace = writer
        for row in rows:
            trace.record(row)
    return writer.digest.hexdigest()


def file_of(directory: Path, table: str) -> Path:
    return directory / "trace" / table / PART


def all_files(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.rglob("*") if path.is_file())


def digest_of(rows: Sequence[Row]) -> str:
    digest = Digest()
    for row in rows:
        digest.record(row)
    return digest.hexdigest()


@settings(max_examples=40, deadline=None)
@given(st.lists(any_row, max_size=25), st.integers(1, 9))
def test_rows_and_their_digest_are_read_as_they_were_written(rows: list[Row], batch_rows: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        written = write(directory, rows, batch_rows)
        read = [row for table in TABLES for row in iter_rows(directory, table)]
        assert read == [row for table in TABLES.values() for row in rows if isinstance(row, table.row_type)]
        assert digest_of(read) == written == digest_of(rows)


def test_rows_are_read_by_their_class_too(tmp_path: Path) -> None:
    rows = [link(number) for number in range(5)]
    write(tmp_path, [*rows, FaultRow(0.5, "crash", "b1", None)])
    assert list(iter_rows(tmp_path, LinkRow)) == rows


def test_the_digest_does_not_depend_on_batches_or_the_name_of_the_run(tmp_path: Path) -> None:
    rows = [link(number) for number in range(100)]
    digests = {write(tmp_path / str(size), rows, size) for size in (1, 7, 100, 1000)}
    with TraceWriter(tmp_path / "other", "another run") as writer:
        for row in rows:
            writer.record(row)
    digests.add(writer.digest.hexdigest())
    assert len(digests) == 1


def test_the_digest_of_a_trace_in_progress_counts_all_rows(tmp_path: Path) -> None:
    rows = [link(number) for number in range(10)]
    with TraceWriter(tmp_path, "run-1", batch_rows=4) as writer:
        for row in rows[:6]:
            writer.record(row)
        assert writer.digest.hexdigest() == digest_of(rows[:6])
        for row in rows[6:]:
            writer.record(row)
    assert writer.digest.hexdigest() == digest_of(rows)
    assert list(iter_rows(tmp_path, "links")) == rows


def test_the_files_have_the_schema_of_the_tables(tmp_path: Path) -> None:
    write(tmp_path, [link(1), ExpectationRow("p", "c", True, False)])
    for name, table in TABLES.items():
        schema = pyarrow.parquet.read_schema(file_of(tmp_path, name))
        found = [(field.name, str(field.type), field.nullable) for field in schema]
        assert found == [(column.name, ARROW_TYPES[column.type], column.is_nullable) for column in table.columns]


def test_a_table_without_rows_has_one_empty_file(tmp_path: Path) -> None:
    write(tmp_path, [])
    for name in TABLES:
        assert all_files(tmp_path / "trace" / name) == [PART]
        assert read_table(tmp_path, name).num_rows == 0
        assert list(iter_rows(tmp_path, name)) == []


def test_every_row_carries_its_run(tmp_path: Path) -> None:
    write(tmp_path, [link(number) for number in range(5)], batch_rows=2)
    table = read_table(tmp_path, "links")
    assert table.column("run").to_pylist() == ["run-1"] * 5
    assert table.column("a").to_pylist() == ["b0", "b1", "b2", "b3", "b4"]


def test_files_are_compressed_and_keep_to_encodings_that_every_spark_reads(tmp_path: Path) -> None:
    write(tmp_path, [link(number) for number in range(50)])
    group = pyarrow.parquet.read_metadata(file_of(tmp_path, "links")).row_group(0)
    for index in range(group.num_columns):
        assert group.column(index).compression == "ZSTD"
        assert set(group.column(index).encodings) <= {"PLAIN", "RLE", "RLE_DICTIONARY"}


def test_memory_stays_flat_while_rows_grow(tmp_path: Path) -> None:
    batch_rows = 10
    most = 0
    with TraceWriter(tmp_path, "run-1", batch_rows) as writer:
        for number in range(1000):
            writer.record(link(number))
            writer.record(FaultRow(number / 8, "crash", "b1", None))
            most = max(most, writer.buffered_rows)
    assert 0 < most <= 2 * batch_rows
    assert pyarrow.parquet.read_metadata(file_of(tmp_path, "links")).num_row_groups == 100
    assert list(iter_rows(tmp_path, "links")) == [link(number) for number in range(1000)]


def test_no_file_has_its_final_name_before_the_end(tmp_path: Path) -> None:
    with TraceWriter(tmp_path, "run-1", batch_rows=1) as writer:
        writer.record(link(1))
        assert all_files(tmp_path)
        assert all(name.startswith(".") for name in all_files(tmp_path))
    assert all_files(tmp_path) == [PART] * len(TABLES)


def fail_while_recording(directory: Path) -> None:
    with TraceWriter(directory, "run-1", batch_rows=1) as writer:
        writer.record(link(1))
        raise KeyboardInterrupt


def test_a_run_that_ends_in_an_exception_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        fail_while_recording(tmp_path)
    assert all_files(tmp_path) == []
    with pytest.raises(TraceError, match=r"links/part-00000\.parquet is missing: the run did not come to its end"):
        read_table(tmp_path, "links")


def test_if_a_file_cannot_get_its_name_the_others_are_removed(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path, "run-1")
    writer.record(link(1))
    (file_of(tmp_path, "drops") / "in the way").mkdir(parents=True)
    with pytest.raises(TraceWriteError, match=r"cannot write .*drops/part-00000\.parquet"):
        writer.close()
    assert all_files(tmp_path) == []


def test_a_row_that_cannot_be_stored_is_named_and_leaves_no_file(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path, "run-1")
    writer.record(LinkRow("a", "b", 0.5, "soon"))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"links\.down_s takes float or None, not 'soon'"):
        writer.close()
    assert all_files(tmp_path) == []


def test_a_value_that_only_the_file_refuses_is_named_by_its_column(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path, "run-1")
    writer.record(ExpectationRow("p", "c", True, 1))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="the column owed takes bool"):
        writer.close()
    assert all_files(tmp_path) == []


def run_script(script: str, directory: Path) -> subprocess.CompletedProcess[str]:
    imports = (
        "import os, resource, sys\n"
        "from pathlib import Path\n"
        "from broker.trace.schema import LinkRow, TraceWriteError\n"
        "from broker.trace.files import TraceWriter\n"
    )
    command = [sys.executable, "-c", imports + script, str(directory)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


def test_a_full_disk_is_an_error_with_the_files_name_and_leaves_no_file(tmp_path: Path) -> None:
    script = (
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))\n"
        "try:\n"
        "    with TraceWriter(Path(sys.argv[1]), 'run-1', batch_rows=100) as writer:\n"
        "        for number in range(100_000):\n"
        "            writer.record(LinkRow(str(number), 'b', number / 7, None))\n"
        "except TraceWriteError as error:\n"
        "    print(error.exit_code, error)\n"
    )
    done = run_script(script, tmp_path)
    assert done.stderr == ""
    assert done.stdout.startswith(f"1 cannot write {tmp_path}/trace/links/.{PART}")
    assert all_files(tmp_path) == []


def test_a_killed_process_leaves_no_final_name_and_the_next_run_can_use_the_directory(tmp_path: Path) -> None:
    script = (
        "writer = TraceWriter(Path(sys.argv[1]), 'run-1', batch_rows=1)\n"
        "writer.record(LinkRow('a', 'b', 0.5, None))\n"
        "os._exit(7)\n"
    )
    assert run_script(script, tmp_path).returncode == 7
    assert all_files(tmp_path)
    assert PART not in all_files(tmp_path)
    with pytest.raises(TraceError, match="did not come to its end"):
        read_table(tmp_path, "links")
    write(tmp_path, [link(2)])
    assert list(iter_rows(tmp_path, "links")) == [link(2)]
    assert all_files(tmp_path) == [PART] * len(TABLES)


def test_a_trace_is_never_overwritten(tmp_path: Path) -> None:
    write(tmp_path, [link(1)])
    with pytest.raises(TraceError, match=r"hops/part-00000\.parquet is already there") as caught:
        TraceWriter(tmp_path, "run-2")
    assert caught.value.exit_code == 3
    assert list(iter_rows(tmp_path, "links")) == [link(1)]


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("a file")
    with pytest.raises(TraceWriteError, match=r"cannot write .*run/trace/hops"):
        TraceWriter(tmp_path / "run", "run-1")


def test_closing_twice_is_closing_once_and_a_closed_trace_refuses_rows(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path, "run-1")
    writer.record(link(1))
    writer.close()
    writer.close()
    writer.discard()
    with pytest.raises(ValueError, match=r"the trace is closed, and LinkRow.*was not recorded"):
        writer.record(link(2))
    assert list(iter_rows(tmp_path, "links")) == [link(1)]


def test_a_value_that_is_no_row_is_refused(tmp_path: Path) -> None:
    with TraceWriter(tmp_path, "run-1") as writer, pytest.raises(TypeError, match="a str is not a row of a trace"):
        writer.record("hop")  # type: ignore[arg-type]


def test_a_directory_without_a_trace_is_named(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"trace/hops is missing: .* is not the directory of a run") as caught:
        iter_rows(tmp_path, "hops")
    assert caught.value.exit_code == 3
    with pytest.raises(TraceError, match="trace/hops is missing"):
        read_table(tmp_path, "hops")


def test_a_table_that_does_not_exist_is_answered_with_those_that_do(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="no table 'hopps'; known: hops, matches"):
        read_table(tmp_path, "hopps")


@pytest.mark.parametrize("kept", [0.5, 0.0])
def test_a_damaged_file_is_named(tmp_path: Path, kept: float) -> None:
    write(tmp_path, [link(number) for number in range(100)])
    path = file_of(tmp_path, "links")
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * kept)])
    with pytest.raises(TraceError, match=r"links/part-00000\.parquet is damaged") as caught:
        read_table(tmp_path, "links")
    assert caught.value.exit_code == 3
    with pytest.raises(TraceError, match=r"links/part-00000\.parquet is damaged"):
        list(iter_rows(tmp_path, "links"))


def test_a_single_wrong_bit_among_the_values_is_noticed(tmp_path: Path) -> None:
    write(tmp_path, [LinkRow("a", "b", number**0.5, None) for number in range(100)])
    path = file_of(tmp_path, "links")
    column = pyarrow.parquet.read_metadata(path).row_group(0).column(3)
    content = bytearray(path.read_bytes())
    content[column.data_page_offset + column.total_compressed_size // 2] ^= 1
    path.write_bytes(content)
    for read in (read_table, lambda directory, table: list(iter_rows(directory, table))):
        with pytest.raises(TraceError, match=r"links/part-00000\.parquet is damaged"):
            read(tmp_path, "links")


def test_a_file_with_other_columns_is_named_with_both_schemas(tmp_path: Path) -> None:
    write(tmp_path, [link(1)])
    path = file_of(tmp_path, "links")
    pyarrow.parquet.write_table(pyarrow.table({"run": ["r"], "left": ["b1"]}), path)
    with pytest.raises(
        TraceError, match=r"links/part-00000\.parquet .* has run string, left string, not run string not"
    ):
        read_table(tmp_path, "links")


def test_several_files_of_a_table_are_read_in_the_order_of_their_names(tmp_path: Path) -> None:
    write(tmp_path / "one", [link(1)])
    write(tmp_path / "two", [link(2)])
    file_of(tmp_path / "two", "links").rename(file_of(tmp_path / "one", "links").with_name("part-00001.parquet"))
    assert list(iter_rows(tmp_path / "one", "links")) == [link(1), link(2)]
    assert read_table(tmp_path / "one", "links").column("a").to_pylist() == ["b1", "b2"]


def test_without_the_library_the_error_names_the_package_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(TraceError, match=r"traces need pyarrow: pip install 'mercast\[sim\]'"):
        TraceWriter(tmp_path, "run-1")
