"""The trace of a running broker: when its rows become readable, its provenance, and its end."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from broker.trace.code_version import code_version
from broker.trace.rolling_trace import ROLL_EVERY, ROLL_IDLE_EVERY, RollingTrace
from broker.trace.schema import BrokerRow, DropRow, TraceWriteError

START = 5_000
DROP = DropRow(0.0, "b1", "expired", None, "")
STATE = BrokerRow("b1", 0.0, 0.0, 0, 1, 2, 3, 4, None)


def record_state(trace: RollingTrace, now: int) -> None:
    trace.record(STATE)
    trace.roll_if_due(now)


def _raise(error: Exception) -> None:
    raise error


def shown(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder / "b1-1" / "trace").as_posix() for path in folder.rglob("[!.]*.parquet"))


def test_what_a_broker_did_is_shown_soon_and_its_state_alone_later(tmp_path: Path) -> None:
    trace = RollingTrace(tmp_path, "b1", 1, "demo", "merc", START, _raise)
    record_state(trace, START + ROLL_EVERY)
    assert shown(tmp_path) == []
    trace.record(DROP)
    record_state(trace, START + ROLL_EVERY)
    assert shown(tmp_path) == ["brokers/part-00000.parquet", "drops/part-00000.parquet"]
    record_state(trace, START + ROLL_EVERY + ROLL_IDLE_EVERY - 1)
    assert "brokers/part-00001.parquet" not in shown(tmp_path)
    record_state(trace, START + ROLL_EVERY + ROLL_IDLE_EVERY)
    assert "brokers/part-00001.parquet" in shown(tmp_path)
    assert "drops/part-00001.parquet" not in shown(tmp_path)
    trace.close()


def test_a_trace_says_which_broker_protocol_and_code_made_it(tmp_path: Path) -> None:
    RollingTrace(tmp_path, "b1", 7, "demo", "merc", START, _raise).close()
    code = code_version()
    assert json.loads((tmp_path / "b1-7" / "provenance.json").read_text()) == {
        "broker": "b1",
        "incarnation": 7,
        "overlay": "demo",
        "protocol": "merc",
        "mercast": code.version,
        "commit": code.commit,
        "is_changed": code.is_changed,
    }


def test_a_trace_that_cannot_be_written_is_reported_once_and_records_no_more_rows(tmp_path: Path) -> None:
    errors: list[Exception] = []
    trace = RollingTrace(tmp_path / "out", "b1", 1, "demo", "merc", START, errors.append)
    trace.record(DROP)
    shutil.rmtree(tmp_path / "out")
    for n in range(1, 4):
        record_state(trace, START + n * ROLL_EVERY)
        trace.record(DROP)
    trace.close()
    (error,) = errors
    assert isinstance(error, TraceWriteError)
    assert str(tmp_path / "out") in str(error)


def test_what_others_could_read_of_a_trace_that_cannot_be_closed_stays(tmp_path: Path) -> None:
    errors: list[Exception] = []
    trace = RollingTrace(tmp_path, "b1", 1, "demo", "merc", START, errors.append)
    trace.record(DROP)
    record_state(trace, START + ROLL_EVERY)
    before = shown(tmp_path)
    shutil.rmtree(tmp_path / "b1-1" / "trace" / "hops")
    trace.close()
    assert len(errors) == 1
    assert shown(tmp_path) == before == ["brokers/part-00000.parquet", "drops/part-00000.parquet"]


def test_what_others_can_read_stays_when_the_file_after_it_cannot_be_made(tmp_path: Path) -> None:
    errors: list[Exception] = []
    trace = RollingTrace(tmp_path, "b1", 1, "demo", "merc", START, errors.append)
    trace.record(DROP)
    (tmp_path / "b1-1" / "trace" / "drops" / ".part-00001.parquet.unfinished").mkdir()
    record_state(trace, START + ROLL_EVERY)
    assert len(errors) == 1
    assert "drops/part-00000.parquet" in shown(tmp_path)
