"""When a running broker's rows can be read by others, and what its trace says of where it comes from."""

from __future__ import annotations

import json
from pathlib import Path

from broker.effects import DroppedRow
from broker.runtime.code_version import code_version
from broker.runtime.recorder import ROLL_EVERY, ROLL_IDLE_EVERY, Recorder
from routing.router import Counts

COUNTS = Counts(1, 2, 3, 4, 5)


class Clock:
    def __init__(self) -> None:
        self.now = 5_000

    def __call__(self) -> int:
        return self.now


def shown(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder / "b1-1" / "trace").as_posix() for path in folder.rglob("[!.]*.parquet"))


def test_what_a_broker_did_is_shown_soon_and_its_state_alone_later(tmp_path: Path) -> None:
    clock = Clock()
    recorder = Recorder(tmp_path, "b1", 1, "demo", "merc", clock)
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
    Recorder(tmp_path, "b1", 7, "demo", "merc", Clock()).close()
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
