"""Parity of the two drivers: one scenario delivers the same pairs, and records the same rows, in both."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Iterable
from contextlib import AsyncExitStack
from pathlib import Path

import msgpack
import pytest

from broker import connect
from broker.client.errors import TimeoutExpiredError
from broker.client.subscription import Subscription
from broker.core.effects import Deliver
from broker.core.inputs import ClientConnected, Published, Subscribed
from broker.core.settings import SECOND, Settings
from broker.simulation.costs import PADRES_2015
from broker.simulation.simulated_overlay import SimulatedOverlay
from broker.trace.files import iter_rows
from broker.trace.schema import DeliveryRow, HopRow, LinkRow, MatchRow, PublicationRow, Row, Trace
from matching.expressions.values import Value
from matching.languages.sql import parse
from matching.matcher import unpack_attributes
from routing.registry import names
from tests.harness.broker_processes import InLoop, OverlayFileMaker, Processes, run
from tests.harness.conditions import until
from topologies import Overlay
from topologies.files.toml import read_overlay_file

CLUSTERS = {"b1": ("x",), "b2": ("x", "y"), "b3": ("y",), "b4": ("x",)}
LINKS = [("b1", "b2"), ("b2", "b3"), ("b2", "b4")]
EXPRESSIONS = {
    "b1-a": "price > 50",
    "b1-b": "symbol = 'IBM' AND price BETWEEN 20 AND 80",
    "b2-a": "symbol IN ('IBM', 'HPQ') OR volume < 10",
    "b3-a": "NOT (symbol = 'IBM')",
    "b3-b": "symbol STARTS WITH 'I' AND volume >= 50",
    "b4-a": "EXISTS rare",
    "b4-b": "price < 30 XOR volume < 30",
}
"""Expressions by client. The first two letters of a client's name are its broker."""

Pairs = set[tuple[Value, str]]
"""Delivered pairs: a publication's attribute `n`, and the client."""


def publications() -> list[dict[str, Value]]:
    generator = random.Random(7)
    made: list[dict[str, Value]] = []
    for n in range(60):
        publication: dict[str, Value] = {
            "n": n,
            "symbol": generator.choice(("IBM", "HPQ", "INTC", "SAP")),
            "price": generator.randrange(100),
            "volume": generator.randrange(100),
        }
        if generator.random() < 0.2:
            publication["rare"] = True
        made.append(publication)
    return made


def expected() -> Pairs:
    return {
        (publication["n"], client)
        for publication in publications()
        for client, text in EXPRESSIONS.items()
        if parse(text).matches(publication)
    }


class RowList:
    def __init__(self) -> None:
        self.rows: list[Row] = []

    def record(self, row: Row) -> None:
        self.rows.append(row)


def simulation_of(overlay: Overlay, trace: Trace, protocol: str, matcher: str) -> SimulatedOverlay:
    return SimulatedOverlay(
        overlay,
        protocol,
        matcher=matcher,
        settings=Settings(),
        profile=PADRES_2015,
        trace=trace,
        random=random.Random(1),
        cores=dict.fromkeys(overlay.ids, 1),
        queue_frames=100_000,
    )


def simulated(file: OverlayFileMaker, protocol: str, matcher: str) -> Pairs:
    overlay = read_overlay_file(file.path).overlay
    world = simulation_of(overlay, RowList(), protocol, matcher)
    pairs: list[tuple[Value, str]] = []

    def delivered(effect: Deliver, _at: int) -> None:
        pairs.append((unpack_attributes(effect.attributes)["n"], effect.client))

    world.on_delivered = delivered
    for client, text in EXPRESSIONS.items():
        world.submit(client[:2], ClientConnected(client))
        world.submit(client[:2], Subscribed(client, "all", text))
    world.run_until(20 * SECOND)
    for reference, publication in enumerate(publications()):
        broker = overlay.ids[reference % len(overlay.ids)]
        world.submit(broker, Published(f"{broker}-p", reference, msgpack.packb(publication)))
        world.run_until(world.now + SECOND // 10)
    world.run_until(world.now + 100 * SECOND)
    assert len(pairs) == len(set(pairs)), "none twice"
    return set(pairs)


async def _receive_exactly(client: str, stream: Subscription, count: int) -> list[tuple[Value, str]]:
    """Receives `count` publications, then waits 0.3 s and fails if another one arrives."""
    pairs = [((await stream.next(60.0))["n"], client) for _ in range(count)]
    try:
        pairs.append(((await stream.next(0.3))["n"], client))
    except TimeoutExpiredError:
        return pairs
    raise AssertionError(f"{client} got more than the {count} publications that match")


def real(file: OverlayFileMaker) -> Pairs:
    pairs: list[tuple[Value, str]] = []
    wanted = expected()

    async def test() -> None:
        async with AsyncExitStack() as stack:
            streams = {}
            for client, text in EXPRESSIONS.items():
                connection = await stack.enter_async_context(connect(file.url(client[:2]), name=client))
                streams[client] = await stack.enter_async_context(connection.subscribe(text))
            await asyncio.to_thread(processes.linked)
            publishers = [await stack.enter_async_context(connect(file.url(id))) for id in file.ids]
            for reference, publication in enumerate(publications()):
                await publishers[reference % len(publishers)].publish(publication)
            for client, stream in streams.items():
                count = sum(other == client for _, other in wanted)
                pairs.extend(await _receive_exactly(client, stream, count))

    with Processes(file) as processes:
        processes.linked()
        run(test)
    assert len(pairs) == len(set(pairs)), "none twice"
    return set(pairs)


@pytest.mark.slow
@pytest.mark.parametrize("matcher", ["auto", "pst-bloom", "be-tree"])
@pytest.mark.parametrize("protocol", ["fbr", "d-dbr", "merc"])
def test_simulation_and_processes_deliver_the_same_pairs(tmp_path: Path, protocol: str, matcher: str) -> None:
    file = OverlayFileMaker(
        tmp_path, CLUSTERS, LINKS, clusters=CLUSTERS, overlay={"protocol": protocol, "matcher": matcher}
    )
    in_simulation = simulated(file, protocol, matcher)
    assert in_simulation == expected()
    assert real(file) == in_simulation


def timeless(rows: Iterable[Row]) -> list[tuple[object, ...]]:
    """Sorted rows of the tables that both drivers fill, without times, incarnations and the size of headers, which
    contain incarnations."""
    return sorted(
        (
            type(row).__name__,
            *(
                re.sub(r"/\d+/", "/", value) if isinstance(value, str) else value
                for name, value in row._asdict().items()
                if not name.endswith("_s") and name != "header_bytes"
            ),
        )
        for row in rows
        if isinstance(row, DeliveryRow | LinkRow | MatchRow | PublicationRow)
        or (isinstance(row, HopRow) and row.kind == "publish")
    )


@pytest.mark.parametrize("protocol", names())
def test_both_drivers_record_the_same_rows(tmp_path: Path, protocol: str) -> None:
    clusters = {"b1": ("x",), "b2": ("x", "y"), "b3": ("y",)}
    file = OverlayFileMaker(
        tmp_path, clusters, [("b1", "b2"), ("b2", "b3")], clusters=clusters, overlay={"protocol": protocol}
    )
    trace = RowList()
    world = simulation_of(read_overlay_file(file.path).overlay, trace, protocol, "auto")
    world.submit("b3", ClientConnected("reader"))
    world.submit("b3", Subscribed("reader", "all", "n >= 1"))
    world.run_until(20 * SECOND)
    for n in range(3):
        world.submit("b1", Published("source", n + 1, msgpack.packb({"n": n}), b"body"))
        world.run_until(world.now + SECOND)
    world.run_until(world.now + 20 * SECOND)
    world.finish()
    out = tmp_path / "out"

    async def test() -> None:
        async with (
            InLoop(file, trace=out) as overlay,
            connect(file.url("b1"), name="source") as publisher,
            connect(file.url("b3"), name="reader") as reader,
            reader.subscribe("n >= 1") as stream,
        ):
            await overlay.quiet()
            for n in range(3):
                await publisher.publish({"n": n}, b"body")
            for _ in range(2):
                await stream.next(40.0)
            await until(lambda: all(overlay[id].drain.is_settled for id in file.ids))

    run(test)
    tables = (DeliveryRow, HopRow, LinkRow, MatchRow, PublicationRow)
    recorded = [row for folder in out.iterdir() for table in tables for row in iter_rows(folder, table)]
    assert timeless(recorded) == timeless(trace.rows)
    assert {type(row) for row in recorded} == set(tables)
