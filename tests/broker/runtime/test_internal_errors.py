"""A broker reports its internal errors, and continues to serve as long as it can."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from broker import connect
from broker.runtime.server import BrokerServer
from broker.runtime.status import as_prometheus
from broker.trace import rolling_trace
from broker.trace.files import TraceWriter
from broker.trace.schema import Row, TraceWriteError
from tests.harness.broker_processes import InLoop, OverlayFileMaker, run
from tests.harness.conditions import until


class FullDisk(TraceWriter):
    """A trace writer that fails every row after `is_full` is set."""

    is_full = False

    def record(self, row: Row) -> None:
        if FullDisk.is_full:
            raise TraceWriteError(f"cannot write a {type(row).__name__}: no space left on device")
        super().record(row)


def test_publications_are_answered_and_delivered_while_the_trace_has_no_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(rolling_trace, "TraceWriter", FullDisk)
    monkeypatch.setattr(FullDisk, "is_full", False)
    file = OverlayFileMaker(tmp_path, ["b1", "b2"], [("b1", "b2")])

    async def test() -> None:
        async with (
            InLoop(file, trace=tmp_path / "out") as overlay,
            connect(file.url("b1")) as publisher,
            connect(file.url("b2")) as reader,
            reader.subscribe("n >= 0") as stream,
        ):
            await overlay.quiet()
            assert overlay["b1"].status().trace == "recording"
            FullDisk.is_full = True
            for n in range(5):
                await publisher.publish({"n": n})
            assert [(await stream.next(20.0))["n"] for _ in range(5)] == list(range(5))
            assert publisher.reconnects == reader.reconnects == 0
            for server in overlay.servers.values():
                assert server.driver.recorder is None
                assert server.errors.counts == {"trace not written": 1}
                status = server.status()
                assert status.trace.startswith("ended: cannot write")
                assert 'what="trace not written"} 1' in as_prometheus(status)

    run(test)
    assert [record.message for record in caplog.records].count("trace not written") == 2


def test_a_trace_folder_that_is_gone_ends_the_trace_and_not_the_housekeeping(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rolling_trace, "ROLL_EVERY", 1)
    monkeypatch.setattr(rolling_trace, "ROLL_IDLE_EVERY", 1)
    file = OverlayFileMaker(tmp_path, ["b1"], tables={"limits": {"hello": "200ms"}})

    async def test() -> None:
        server = BrokerServer(file.broker("b1"), trace=tmp_path / "out")
        await server.start()
        async with connect(file.url("b1")) as client:
            await client.publish({"n": 1})
            shutil.rmtree(tmp_path / "out")
            await until(lambda: server.driver.trace_state.startswith("ended: "))
            reader, writer = await asyncio.open_connection("127.0.0.1", file.ports["b1"])
            assert await asyncio.wait_for(reader.read(), 10.0), "a silent connection still gets a Goodbye"
            writer.close()
            assert not server.failed.done()
        await server.stop()

    run(test)


def test_housekeeping_that_breaks_down_ends_the_broker_with_its_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = OverlayFileMaker(tmp_path, ["b1"], tables={"limits": {"hello": "200ms"}})

    def break_down() -> None:
        raise RuntimeError("nobody expected this")

    async def test() -> None:
        async with InLoop(file) as overlay:
            server = overlay["b1"]
            server.driver.tracer.remove_expired = break_down  # type: ignore[method-assign]
            with pytest.raises(RuntimeError, match="nobody expected this"):
                await asyncio.wait_for(server.failed, 10.0)
            assert server.errors.counts == {"task ended": 1}

    run(test)
    (line,) = [record for record in caplog.records if record.message == "task ended"]
    assert line.fields["task"] == "housekeeping"  # type: ignore[attr-defined]


def test_a_task_that_dials_and_breaks_down_is_counted_and_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = OverlayFileMaker(tmp_path, ["b1", "b2"], [("b1", "b2")])

    async def break_down(*_: object) -> None:
        raise RuntimeError("nobody expected this")

    async def test() -> None:
        server = BrokerServer(file.broker("b1"))
        await server.start()
        server.neighbours._dial = break_down  # type: ignore[assignment, method-assign]
        await until(lambda: server.errors.counts == {"task ended": 1})
        assert not server.failed.done()
        await server.stop()

    run(test)
    (line,) = [record for record in caplog.records if record.message == "task ended"]
    assert line.fields["task"] == "link to b2"  # type: ignore[attr-defined]
