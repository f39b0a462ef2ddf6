"""Proves the order of a publication's steps, and that there is no verdict on a client that the trace does not name."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import mercast
from broker.trace.schema import DeliveryRow, HopRow, MatchRow, PublicationRow
from experiments.scenario.load import load
from experiments.simulate.publication_trace import PublicationTrace
from experiments.simulate.run import simulate


def hop(sender: str, receiver: str, number: int) -> HopRow:
    return HopRow("b9/1/1", "Publish", "b9", sender, receiver, number, 1, 10, 10, 5.0, 5.0)


def match(broker: str) -> MatchRow:
    return MatchRow(broker, "b9/1/1", "PRT", 3, 1, 1, 1, 5.0, 0.0)


def test_at_equal_times_causes_are_first() -> None:
    trace = PublicationTrace(
        PublicationRow("b9/1/1", "b9", "p1", 5.0, 1, 10),
        hops=(hop("b5", "b1", 2), hop("b9", "b5", 1)),
        matches=(match("b1"), match("b5"), match("b9")),
        deliveries=(DeliveryRow("b9/1/1", "b1", "a1", 2, 5.0, 5.0),),
        expectations=(),
        drops=(),
    )
    assert [line.split("  ")[-1].split(":")[0].split(",")[0] for line in trace.lines()] == [
        "p1 publishes at b9",
        "b9 asks its PRT",
        "b9 -> b5",
        "b5 asks its PRT",
        "b5 -> b1",
        "b1 asks its PRT",
        "b1 delivers to a1",
    ]


def test_a_client_without_rows_is_distinguished_from_one_whose_subscriptions_did_not_match(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "fbr"
    simulate(load("line", {"workload.publications": "20"}), "fbr", lambda *_: None, run)
    shown = {}
    for name in ("p001", "nosuch"):
        monkeypatch.setattr(sys, "argv", ["mercast", "trace", str(run), "b001/1/1", "--subscriber", name])
        with pytest.raises(SystemExit) as stop:
            mercast.main()
        assert not stop.value.code
        shown[name] = capsys.readouterr().out.splitlines()[-1]
    assert shown["p001"] == "p001 did not get it: none of its subscriptions matched when it was accepted"
    assert shown["nosuch"].startswith("no client nosuch is in this run's trace: the name is wrong, or nothing")
