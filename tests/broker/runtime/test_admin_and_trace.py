"""A running broker reports its state: admin pages, steps of a traced publication, and trace tables."""

from __future__ import annotations

import asyncio
import urllib.error
import urllib.request
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from broker import connect
from broker.runtime.status import as_prometheus
from broker.trace.files import iter_rows
from broker.trace.schema import BrokerRow, DeliveryRow, HopRow, LinkRow, MatchRow, PublicationRow
from broker.wire.client_frames import Ping, Pong, PublishRequest
from tests.harness.broker_processes import InLoop, OverlayFileMaker, run, status_at
from tests.harness.conditions import until
from tests.harness.raw_client import RawClient


def get(port: int, page: str, **options: Any) -> str:
    request = urllib.request.Request(f"http://127.0.0.1:{port}{page}", **options)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return str(answer.read().decode())


def test_admin_pages_show_health_numbers_and_state(tmp_path: Path) -> None:
    file = OverlayFileMaker(tmp_path, ["b1", "b2"], [("b1", "b2")])
    port = file.admin_ports["b1"]

    async def test() -> None:
        async with (
            InLoop(file) as overlay,
            connect(file.url("b1"), name="reader") as client,
            client.subscribe("n = 1") as stream,
        ):
            await overlay.quiet()
            await client.publish({"n": 1})
            await stream.next(40.0)
            assert await asyncio.to_thread(get, port, "/healthz") == "ok\n"
            status = await asyncio.to_thread(status_at, port)
            assert status["broker"] == "b1"
            assert [(each["id"], each["is_up"]) for each in status["neighbours"]] == [("b2", True)]
            assert status["tables"]["local_subscriptions"] == 1
            assert status["totals"] == {"published": 1, "received": 0, "sent": 0, "delivered": 1}
            (session,) = status["clients"]
            assert (session["name"], session["subscriptions"], session["on_the_way"]) == ("reader", 1, 1)
            metrics = await asyncio.to_thread(get, port, "/metrics")
            assert 'mercast_publications_delivered_total{broker="b1"} 1\n' in metrics
            assert 'mercast_link_up{broker="b1",neighbour="b2"} 1\n' in metrics
            for line in metrics.splitlines():
                assert line.startswith("# ") or len(line.rsplit(" ", 1)) == 2

    run(test)


def test_counters_for_prometheus_are_exact_however_large(tmp_path: Path) -> None:
    file = OverlayFileMaker(tmp_path, ["b1"])

    async def test() -> None:
        async with InLoop(file) as overlay:
            overlay["b1"].driver.published_here = 12_345_678_901
            overlay["b1"].violations.counts["idle"] = 7_654_321
            status = replace(overlay["b1"].status(), uptime_s=1_234_567.125)
            lines = as_prometheus(status).splitlines()
            assert 'mercast_publications_published_total{broker="b1"} 12345678901' in lines
            assert 'mercast_violations_total{broker="b1",limit="idle"} 7654321' in lines
            assert 'mercast_uptime_seconds{broker="b1"} 1234567.125' in lines

    run(test)


def test_a_post_without_the_header_is_refused(tmp_path: Path) -> None:
    file = OverlayFileMaker(tmp_path, ["b1"])

    async def test() -> None:
        async with InLoop(file) as overlay:
            with pytest.raises(urllib.error.HTTPError, match="403"):
                await asyncio.to_thread(get, file.admin_ports["b1"], "/leave", method="POST")
            assert not overlay["b1"].leave_requested.is_set()
            await asyncio.to_thread(
                get, file.admin_ports["b1"], "/leave", method="POST", headers={"X-Mercast": "leave"}
            )
            assert overlay["b1"].leave_requested.is_set()

    run(test)


def test_each_broker_reports_its_steps_of_a_traced_publication(tmp_path: Path) -> None:
    file = OverlayFileMaker(tmp_path, ["b1", "b2"], [("b1", "b2")])

    async def test() -> None:
        async with (
            InLoop(file) as overlay,
            connect(file.url("b1"), name="source") as publisher,
            connect(file.url("b2"), name="reader") as reader,
            reader.subscribe("n = 1", name="ones") as stream,
        ):
            await overlay.quiet()
            await publisher.publish({"n": 1})
            id = await publisher.publish({"n": 1}, is_traced=True)
            assert id is not None
            await stream.next(40.0)
            await stream.next(40.0)
            first = (await publisher.trace_steps(id)).steps
            assert [step.what for step in first] == ["accepted", "matched", "matched", "sent"]
            assert first[-1].peer == "b2"
            assert first[-1].address == f"127.0.0.1:{file.ports['b2']}"
            second = (await reader.trace_steps(id)).steps
            assert [step.what for step in second] == ["received", "matched", "delivered"]
            assert second[-1].text == "for ones"

    run(test)


def test_a_trace_has_the_times_that_neighbours_sent(tmp_path: Path) -> None:
    file = OverlayFileMaker(tmp_path, ["b1", "b2"], [("b1", "b2")])
    out = tmp_path / "out"

    async def test() -> None:
        async with (
            InLoop(file, trace=out) as overlay,
            connect(file.url("b1"), name="source") as publisher,
            connect(file.url("b2"), name="reader") as reader,
            reader.subscribe("n >= 0") as stream,
        ):
            await overlay.quiet()
            for n in range(3):
                await publisher.publish({"n": n}, b"body")
                await stream.next(40.0)
            recorder = overlay["b2"].driver.recorder
            assert recorder is not None
            await until(lambda: overlay["b1"].drain.is_settled)
            # Brokers record their state once a second.
            await asyncio.sleep(1.1)

    run(test)
    (first,) = out.glob("b1-*")
    (second,) = out.glob("b2-*")
    published = list(iter_rows(first, PublicationRow))
    assert [(row.client, row.attribute_count, row.bytes) for row in published] == [("source", 1, 8)] * 3
    hops = [row for row in iter_rows(second, HopRow) if row.kind == "publish"]
    assert [row.message for row in hops] == [row.publication for row in published]
    for hop, row in zip(hops, published, strict=True):
        assert row.published_s <= hop.sent_s <= hop.received_s
        assert (hop.sender, hop.receiver, hop.hop, hop.destinations, hop.body_bytes) == ("b1", "b2", 1, 1, 8)
    deliveries = list(iter_rows(second, DeliveryRow))
    assert [(row.publication, row.client, row.hops) for row in deliveries] == [
        (row.publication, "reader", 1) for row in published
    ]
    assert [row.published_s for row in deliveries] == [row.published_s for row in published]
    assert [row.matched for row in iter_rows(second, MatchRow)] == [1, 1, 1]
    assert [(row.a, row.b, row.down_s) for row in iter_rows(first, LinkRow)] == [("b1", "b2", None)]
    assert all(row.memory_bytes for row in iter_rows(second, BrokerRow))


def test_no_state_is_kept_for_publications_that_are_sent_again_after_their_answer(tmp_path: Path) -> None:
    file = OverlayFileMaker(tmp_path, ["b1"])

    async def test() -> None:
        overlay = InLoop(file)
        await overlay.start("b1", trace=tmp_path / "out")
        b1 = overlay["b1"]
        try:
            async with RawClient(file.ports["b1"]) as raw:
                await raw.greet()
                frames = [PublishRequest(reference, b"\x80", is_traced=True) for reference in range(1, 6)]
                await raw.send(*frames, *frames, Ping(1))
                while not isinstance(await raw.frame(), Pong):
                    pass
                assert b1.driver.published_here == 5
                assert not b1.driver._traced_requests
                assert b1.driver.recorder is not None
                assert not b1.driver.recorder._recorder._requests
        finally:
            await overlay.stop("b1")

    run(test)
