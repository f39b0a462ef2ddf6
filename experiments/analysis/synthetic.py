"""Writes traces of any size for the benchmark, without a simulation.

Every publication travels from its source along four branches of five hops. Clients at five of these brokers receive it.
Values are computed from the row's number by integer arithmetic, so the same number of rows gives the same trace.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from broker.trace.files import arrow_schema
from broker.trace.schema import TABLES, BrokerRow, LinkRow

Numbers: TypeAlias = NDArray[np.int64]

BROKERS = 100
BRANCHES = 4
DEPTH = 5
HOPS = BRANCHES * DEPTH
CLIENTS_AT = ((0, 3), (0, 5), (1, 5), (2, 5), (3, 5))
"""Branch and depth of the brokers with a client that receives the publication."""
PUBLICATIONS_IN_A_FILE = 50_000
PUBLICATIONS_PER_S = 1_000
UPDATE_EVERY = 50
"""Every fiftieth message is an update instead of a publication."""

_NAMES = pa.array([f"b{number:03}" for number in range(BROKERS)])
_CLIENTS = pa.array([f"s{number:03}" for number in range(BROKERS)])


def write_trace(folder: Path, hop_rows: int, progress: Callable[[int, int], None]) -> None:
    """Writes the folder of a run with `hop_rows` rows of hops (a multiple of 20) and other tables in proportion."""
    publications = max(1, hop_rows // HOPS)
    for number, start in enumerate(range(0, publications, PUBLICATIONS_IN_A_FILE)):
        end = min(start + PUBLICATIONS_IN_A_FILE, publications)
        for table, columns in _tables_of(np.arange(start, end, dtype=np.int64)).items():
            _write(folder, table, number, columns)
        progress(end, publications)
    names = _NAMES.to_pylist()
    _write(folder, "brokers", 0, list(zip(*_broker_rows(names, publications / PUBLICATIONS_PER_S), strict=True)))
    links = [LinkRow(a, b, 0.0, None) for a in names for b in names if a < b]
    _write(folder, "links", 0, list(zip(*links, strict=True)))


def _broker_rows(names: Sequence[str], length_s: float) -> list[BrokerRow]:
    rows = []
    for number, name in enumerate(names):
        for part in range(1, 11):
            at_s = length_s * part / 10
            busy_s = at_s * (number + 1) / BROKERS
            rows.append(BrokerRow(name, at_s, busy_s, number, 100, 30, 20 * number, 10_800, None))
    return rows


def _tables_of(publications: Numbers) -> dict[str, list[Any]]:
    published_s = publications / PUBLICATIONS_PER_S
    ids = _ids(publications)
    source = _NAMES.take(_broker(publications, 0, 0))
    hops = [_hops(publications, ids, branch, depth) for branch in range(BRANCHES) for depth in range(1, DEPTH + 1)]
    deliveries = [_deliveries(publications, ids, branch, depth) for branch, depth in CLIENTS_AT]
    clients = pa.repeat("p000", len(publications))
    delivered = _join(deliveries)
    always = _constant(True, len(delivered[0]))
    matches = [_matches(publications, ids, 0, 0), *(_matches(publications, ids, *place) for place in CLIENTS_AT)]
    count = len(publications)
    return {
        "hops": _join(hops),
        "deliveries": delivered,
        "matches": _join(matches),
        "publications": [ids, source, clients, published_s, _constant(9, count), _constant(130, count)],
        "expectations": [delivered[0], delivered[2], always, always],
    }


def _broker(publications: Numbers, branch: int, depth: int) -> Numbers:
    """The number of the broker at a branch and depth of the publication's tree. All branches begin at the source."""
    if depth == 0:
        return publications * 7_919 % BROKERS
    return (publications * 7_919 + (publications // BROKERS * 31 + branch * 17) % 89 + depth * 13) % BROKERS


def _delay_us(publications: Numbers, branch: int, depth: int) -> Numbers:
    """The delay up to a branch and depth of the tree. Each hop takes one to three milliseconds."""
    delay = np.zeros(len(publications), dtype=np.int64)
    for hop in range(1, depth + 1):
        delay += 1_000 + (publications * 2_654_435 + branch * 40_503 + hop * 9_973) % 2_001
    return delay


def _ids(publications: Numbers) -> Any:
    return pc.binary_join_element_wise(
        _NAMES.take(_broker(publications, 0, 0)), "1", pc.cast(publications, pa.string()), "/"
    )


def _hops(publications: Numbers, ids: Any, branch: int, depth: int) -> list[Any]:
    count = len(publications)
    is_update = pa.array(publications % UPDATE_EVERY == 0)
    published_us = publications * (1_000_000 // PUBLICATIONS_PER_S)
    return [
        pc.if_else(is_update, "update", ids),
        pc.if_else(is_update, "update", "publish"),
        _NAMES.take(_broker(publications, 0, 0)),
        _NAMES.take(_broker(publications, branch, depth - 1)),
        _NAMES.take(_broker(publications, branch, depth)),
        _constant(depth, count),
        1 + (publications + branch) % 7 * (DEPTH - depth) // 2,
        _constant(49, count),
        _constant(130, count),
        (published_us + _delay_us(publications, branch, depth - 1) + 400) / 1e6,
        (published_us + _delay_us(publications, branch, depth)) / 1e6,
    ]


def _deliveries(publications: Numbers, ids: Any, branch: int, depth: int) -> list[Any]:
    at = _broker(publications, branch, depth)
    published_us = publications * (1_000_000 // PUBLICATIONS_PER_S)
    delivered_s = (published_us + _delay_us(publications, branch, depth) + 500) / 1e6
    client = _CLIENTS.take((at + branch * 10) % BROKERS)
    return [ids, _NAMES.take(at), client, _constant(depth, len(at)), publications / PUBLICATIONS_PER_S, delivered_s]


def _matches(publications: Numbers, ids: Any, branch: int, depth: int) -> list[Any]:
    at = _broker(publications, branch, depth)
    started_s = publications / PUBLICATIONS_PER_S + (_delay_us(publications, branch, depth) + 100) / 1e6
    table = pa.repeat("L-PRT" if depth else "R-PRT", len(at))
    counts = [_constant(count, len(at)) for count in (800, 40, 40, 5)]
    return [_NAMES.take(at), ids, table, *counts, started_s, np.full(len(at), 0.0003)]


def _constant(value: int, count: int) -> Any:
    return pa.repeat(value, count)


def _join(parts: Sequence[Sequence[Any]]) -> list[Any]:
    return [pa.chunked_array([pa.array(each) for each in column]) for column in zip(*parts, strict=True)]


def _write(folder: Path, table: str, number: int, columns: Sequence[Any]) -> None:
    schema = arrow_schema(TABLES[table])
    arrays = [pa.repeat("synthetic", len(columns[0]))]
    for field, values in zip(list(schema)[1:], columns, strict=True):
        arrays.append(values.cast(field.type) if isinstance(values, pa.ChunkedArray) else pa.array(values, field.type))
    path = folder / "trace" / table / f"part-{number:05}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    repeating = [column.name for column in TABLES[table].columns if column.type != "float"]
    rows = pa.Table.from_arrays(arrays, schema=schema)
    pq.write_table(rows, path, compression="zstd", use_dictionary=repeating, write_page_checksum=True)
