"""The trace of a running broker: when its rows become readable, its provenance, and its end."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from broker.core.effects import DroppedRow
from broker.trace.code_version import code_version
from broker.trace.recorder import ROLL_EVERY, ROLL_IDLE_EVERY, TraceRecorder
from broker.trace.schema import TraceWriteError
from routing.router import Counts

COUNTS = Counts(1, 2, 3, 4, 5)


class Clock:
    def __init__(self) -> None:
        self.now = 5_000

    def __call__(self) -> int:
        return self.now


def _raise(error: Exception) -> None:
    raise error


def shown(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder / "b1-1" / "trace").as_posix() for path in folder.rglob("[!.]*.parquet"))


def test_what_a_broker_did_is_shown_soon_and_its_state_alone_later(tmp_path: Path) -> None:
    clock = Clock()
    recorder = TraceRecorder(tmp_path, "b1", 1, "demo", "merc", clock, _raise)
    clock.now += ROLL_EVERY
    recorder.state(COUNTS, queue=0)
    assert shown(tmp_path) == []
    recorder.dropped(DroppedRow("expired", None, ""))
    recorder.state(COUNTS, queue=0)
    assert shown(tmp_path) == ["brokers/part-00000.parquet", "drops/part-00000.parquet"]
    clock.now += ROLL_IDLE_EVERY - 1
    recorder.state(COUNTS, queue=0)
    assert "brokers/part-00001.parquet" not in shown(tmp_path)
    clock.now += 1
    recorder.state(COUNTS, queue=0)
    assert "brokers/part-00001.parquet" in shown(tmp_path)
    assert "drops/part-00001.parquet" not in shown(tmp_path)
    recorder.close()


def test_a_trace_says_which_broker_protocol_and_code_made_it(tmp_path: Path) -> None:
    TraceRecorder(tmp_path, "b1", 7, "demo", "merc", Clock(), _raise).close()
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


def test_a_trace_that_cannot_be_written_is_told_once_and_takes_no_more_rows(tmp_path: Path) -> None:
    clock = Clock()
    errors: list[Exception] = []
    recorder = TraceRecorder(tmp_path / "out", "b1", 1, "demo", "merc", clock, errors.append)
    recorder.dropped(DroppedRow("expired", None, ""))
    clock.now += ROLL_EVERY
    shutil.rmtree(tmp_path / "out")
    for _ in range(3):
        recorder.state(COUNTS, queue=0)
        recorder.dropped(DroppedRow("expired", None, ""))
        clock.now += ROLL_EVERY
    recorder.close()
    (error,) = errors
    assert isinstance(error, TraceWriteError)
    assert str(tmp_path / "out") in str(error)


def test_what_others_could_read_of_a_trace_that_cannot_be_closed_stays(tmp_path: Path) -> None:
    clock = Clock()
    errors: list[Exception] = []
    recorder = TraceRecorder(tmp_path, "b1", 1, "demo", "merc", clock, errors.append)
    recorder.dropped(DroppedRow("expired", None, ""))
    clock.now += ROLL_EVERY
    recorder.state(COUNTS, queue=0)
    before = shown(tmp_path)
    shutil.rmtree(tmp_path / "b1-1" / "trace" / "hops")
    recorder.close()
    assert len(errors) == 1
    assert shown(tmp_path) == before == ["brokers/part-00000.parquet", "drops/part-00000.parquet"]


def test_what_others_can_read_stays_when_the_file_after_it_cannot_be_made(tmp_path: Path) -> None:
    clock = Clock()
    errors: list[Exception] = []
    recorder = TraceRecorder(tmp_path, "b1", 1, "demo", "merc", clock, errors.append)
    recorder.dropped(DroppedRow("expired", None, ""))
    clock.now += ROLL_EVERY
    (tmp_path / "b1-1" / "trace" / "drops" / ".part-00001.parquet.unfinished").mkdir()
    recorder.state(COUNTS, queue=0)
    assert len(errors) == 1
    assert "drops/part-00000.parquet" in shown(tmp_path)
