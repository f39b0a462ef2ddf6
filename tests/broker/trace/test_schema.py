"""The trace has the tables that its readers expect, and two digests differ exactly if the traces differ.

Traces differ in a value, in the order of rows within a table, or in a table. The digest is independent of batches, the
interleaving of tables, the seed of Python's hashes and the machine.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from broker.trace import schema
from broker.trace.schema import (
    TABLE_OF,
    TABLES,
    BrokerRow,
    DeliveryRow,
    Digest,
    DropRow,
    ExpectationRow,
    FaultRow,
    HopRow,
    LinkRow,
    MatchRow,
    PublicationRow,
    Row,
    Trace,
    seconds,
    spark_ddl,
)
from tests.harness.trace_strategies import any_row, rows_of, values_of

ROOT = Path(__file__).resolve().parents[3]

ONE_OF_EACH: list[Row] = [
    HopRow("b1/1/7", "publish", "b1", "b1", "b2", 1, 3, 58, 1200, 0.25, 0.252),
    MatchRow("b1", "b1/1/7", "l-prt", 2000, 12, 9, 2, 0.25, 0.0122),
    DeliveryRow("b1/1/7", "b2", "ann", 1, 0.25, 0.2525),
    BrokerRow("b2", 1.0, 0.63, 4, 2, 10, 1990, 65536, 0),
    PublicationRow("b1/1/7", "b1", "bob", 0.25, 5, 1200),
    ExpectationRow("b1/1/7", "ann", True, False),
    DropRow(0.5, "b2", "queue-full", None, "queue to b7 is full (4096 frames)"),
    FaultRow(0.5, "crash", "b3", None),
    LinkRow("b1", "b2", 0.0, 0.75),
]


def digest_of(rows: Iterable[Row]) -> str:
    digest: Trace = Digest()
    for row in rows:
        digest.record(row)
    assert isinstance(digest, Digest)
    return digest.hexdigest()


def test_every_table_has_the_columns_that_readers_rely_on() -> None:
    assert {name: " ".join(column.name for column in table.columns) for name, table in TABLES.items()} == {
        "hops": "run message kind source sender receiver hop destinations header_bytes body_bytes sent_s received_s",
        "matches": "run broker message table stored candidates evaluated matched started_s cost_s",
        "deliveries": "run publication broker client hops published_s delivered_s",
        "brokers": "run broker at_s busy_s queue advertisements local_subscriptions remote_subscriptions "
        "routing_table_bytes memory_bytes",
        "publications": "run publication broker client published_s attribute_count bytes",
        "expectations": "run publication client expected owed",
        "drops": "run at_s broker reason publication detail",
        "faults": "run at_s kind subject until_s",
        "links": "run a b up_s down_s",
    }


def test_only_columns_that_may_be_absent_are_nullable() -> None:
    nullable = [
        f"{table.name}.{column.name}" for table in TABLES.values() for column in table.columns if column.is_nullable
    ]
    assert nullable == ["brokers.memory_bytes", "drops.publication", "faults.until_s", "links.down_s"]


def test_every_column_has_a_type_that_storage_knows_and_every_time_is_in_seconds() -> None:
    for table in TABLES.values():
        for column in table.columns:
            assert column.type in {"str", "int", "float", "bool"}
            assert (column.type == "float") == column.name.endswith("_s")


def test_every_class_of_rows_has_its_table() -> None:
    assert [TABLE_OF[type(row)].name for row in ONE_OF_EACH] == list(TABLES)


def test_spark_gets_the_same_columns() -> None:
    assert spark_ddl(TABLES["drops"]) == (
        "`run` STRING NOT NULL, `at_s` DOUBLE NOT NULL, `broker` STRING NOT NULL, `reason` STRING NOT NULL, "
        "`publication` STRING, `detail` STRING NOT NULL"
    )
    assert spark_ddl(TABLES["expectations"]) == (
        "`run` STRING NOT NULL, `publication` STRING NOT NULL, `client` STRING NOT NULL, "
        "`expected` BOOLEAN NOT NULL, `owed` BOOLEAN NOT NULL"
    )
    assert "`hop` BIGINT NOT NULL" in spark_ddl(TABLES["hops"])


def test_nanoseconds_become_seconds() -> None:
    assert seconds(1_500_000_000) == 1.5
    assert seconds(0) == 0.0


def test_the_digest_is_the_same_on_every_machine_and_in_every_version() -> None:
    assert digest_of(ONE_OF_EACH) == "d9790fa202c2991d7ac05070b7a686a3e8705cda6a128d7a67424dd7c97766b0"


def test_the_work_of_an_index_is_no_part_of_the_digest() -> None:
    (row,) = [row for row in ONE_OF_EACH if isinstance(row, MatchRow)]
    assert digest_of([row]) == digest_of([row._replace(candidates=row.candidates + 1, evaluated=0)])
    assert digest_of([row]) != digest_of([row._replace(matched=row.matched + 1)])


@given(st.lists(any_row, max_size=20), st.integers(1, 7), st.integers(1, 7))
def test_the_size_of_batches_does_not_count(rows: list[Row], one: int, other: int) -> None:
    assert digest_in_batches(rows, one) == digest_in_batches(rows, other) == digest_of(rows)


def digest_in_batches(rows: Sequence[Row], size: int) -> str:
    digest = Digest()
    batches = schema.batches(size)
    for row in rows:
        if batches[type(row)].add(row):
            digest.update(TABLE_OF[type(row)], batches[type(row)].drain())
    for row_type, batch in batches.items():
        digest.update(TABLE_OF[row_type], batch.drain())
    return digest.hexdigest()


def test_rows_beyond_the_digests_own_batch_count() -> None:
    links = [LinkRow("a", "b", float(number), None) for number in range(schema.DIGEST_BATCH_ROWS + 5)]
    assert digest_of(links) == digest_in_batches(links, 999)
    assert digest_of(links) != digest_of(links[:-1])


@given(rows_of(TABLES["hops"]), rows_of(TABLES["hops"]))
def test_single_rows_and_batches_of_them_keep_their_order(first: Row, second: Row) -> None:
    digest = Digest()
    digest.record(first)
    digest.update(TABLES["hops"], [[value] for value in second])
    assert digest.hexdigest() == digest_of([first, second])


@given(st.lists(any_row, max_size=12), st.integers(0, 12))
def test_reading_the_digest_does_not_change_it(rows: list[Row], position: int) -> None:
    digest = Digest()
    for row in rows[:position]:
        digest.record(row)
    digest.hexdigest()
    for row in rows[position:]:
        digest.record(row)
    assert digest.hexdigest() == digest_of(rows)


@given(st.lists(any_row, max_size=12))
def test_how_tables_interleave_does_not_count(rows: list[Row]) -> None:
    by_table = sorted(rows, key=lambda row: TABLE_OF[type(row)].name)
    assert digest_of(by_table) == digest_of(rows)


@given(st.lists(any_row, min_size=1, max_size=6), st.data())
def test_every_value_counts(rows: list[Row], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(rows) - 1))
    row = rows[place]
    table = TABLE_OF[type(row)]
    column = data.draw(st.sampled_from(table.row_columns))
    assume(f"{table.name}.{column.name}" not in schema.INDEX_SPECIFIC_COLUMNS)
    value = data.draw(values_of(column))
    # Compared by their text, because 0.0 and -0.0 are equal but have different digests.
    assume(repr(value) != repr(getattr(row, column.name)))
    changed = [*rows[:place], row._replace(**{column.name: value}), *rows[place + 1 :]]  # type: ignore[arg-type]
    assert digest_of(changed) != digest_of(rows)


@given(st.sampled_from(list(TABLES.values())).flatmap(lambda table: st.lists(rows_of(table), min_size=2, max_size=5)))
def test_the_order_of_a_tables_rows_counts(rows: list[Row]) -> None:
    assume(repr(rows) != repr(rows[::-1]))
    assert digest_of(rows) != digest_of(rows[::-1])


@given(st.lists(any_row, min_size=1, max_size=5))
def test_the_number_of_rows_counts(rows: list[Row]) -> None:
    assert len({digest_of(rows), digest_of(rows[:-1]), digest_of([*rows, rows[-1]])}) == 3


def test_the_table_counts() -> None:
    row = ["b1"], ["b2"], [0.0], [None]
    one, other = Digest(), Digest()
    one.update(TABLES["links"], row)
    other.update(replace(TABLES["links"], name="tunnels"), row)
    assert one.hexdigest() != other.hexdigest()


def test_text_does_not_flow_from_one_value_into_the_next() -> None:
    def links(*names: str) -> str:
        return digest_of(LinkRow(name, "b", 0.0, None) for name in names)

    assert len({links("ab", "c"), links("a", "bc"), links("abc", ""), links("", "abc"), links("abc")}) == 5


def test_nothing_is_neither_empty_nor_zero() -> None:
    assert digest_of([DropRow(0.0, "b", "r", None, "")]) != digest_of([DropRow(0.0, "b", "r", "", "")])
    assert digest_of([FaultRow(0.0, "crash", "b", None)]) != digest_of([FaultRow(0.0, "crash", "b", 0.0)])


def test_where_a_value_is_absent_counts() -> None:
    mended, broken = FaultRow(0.0, "crash", "b", 0.5), FaultRow(0.0, "crash", "b", None)
    assert digest_of([mended, broken]) != digest_of([broken, mended])


class Kind(StrEnum):
    CRASH = "crash"


def test_a_value_counts_as_its_columns_type() -> None:
    assert digest_of([FaultRow(0, Kind.CRASH, "b", 2)]) == digest_of([FaultRow(0.0, "crash", "b", 2.0)])


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"hop": 1.5}, "hops.hop takes int, not 1.5"),
        ({"hop": 2**63}, f"hops.hop takes int, not {2**63}"),
        ({"sent_s": None}, "hops.sent_s takes float, not None"),
        ({"kind": b"publish"}, "hops.kind takes str, not b'publish'"),
        ({"kind": "\ud800"}, r"hops.kind takes str, not '\\ud800'"),
    ],
)
def test_a_value_of_a_wrong_type_is_refused_by_its_column(wrong: dict[str, object], words: str) -> None:
    good = ONE_OF_EACH[0]
    bad = good._replace(**wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=words):
        digest_of([good, bad, good])


def test_the_digest_is_the_same_under_any_seed_of_pythons_hashes() -> None:
    script = (
        "from broker.trace.schema import *\n"
        "digest = Digest()\n"
        "for name in 'one two three four five six'.split():\n"
        "    digest.record(LinkRow(name, 'b', 0.5, None))\n"
        "    digest.record(DropRow(1.5, name, 'reason', None, 'detail'))\n"
        "    digest.record(ExpectationRow(name, 'c', True, False))\n"
        "print(digest.hexdigest(), hash('one'))\n"
    )
    digests, hashes = set(), set()
    for seed in ("0", "1"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", script]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT, env=environment)
        digest, hashed = done.stdout.split()
        digests.add(digest)
        hashes.add(hashed)
    assert len(hashes) == 2
    assert len(digests) == 1


def test_rows_and_schema_load_no_parquet_library() -> None:
    script = (
        "import sys, broker.trace.schema, broker.trace.files\nprint('pyarrow' in sys.modules, 'numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.split() == ["False", "False"]


def test_rows_name_their_fields_as_columns() -> None:
    for row in ONE_OF_EACH:
        assert list(row._fields) == [column.name for column in TABLE_OF[type(row)].row_columns]
