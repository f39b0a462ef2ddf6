"""Proves by counters that a publication's cost grows with its destinations, and not with the brokers of the overlay."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import mercast
import topologies
from experiments.benchmarks.simulation.run import HEAP_HOPS, heap_loop, publication_cost


def line(brokers: int) -> topologies.Overlay:
    return topologies.generate("line", {"brokers": brokers})


def test_a_publication_costs_the_same_work_however_many_brokers_there_are(tmp_path: Path) -> None:
    costs = [publication_cost(line(brokers), 8, 10, tmp_path / str(brokers)) for brokers in (10, 20, 40)]
    assert [cost.hops for cost in costs] == [8, 8, 8]
    assert len({(cost.inputs, cost.evaluated) for cost in costs}) == 1


def test_a_publication_costs_work_in_proportion_to_its_destinations(tmp_path: Path) -> None:
    few, many = (publication_cost(line(20), number, 10, tmp_path / str(number)) for number in (4, 16))
    assert many.hops == 4 * few.hops
    assert many.evaluated == 4 * few.evaluated
    assert many.inputs > 2 * few.inputs


def test_the_bare_loop_makes_all_its_hops() -> None:
    assert heap_loop(100) == 100 * HEAP_HOPS


@pytest.mark.slow
def test_the_command_shows_hops_a_second_and_the_bare_loop(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["simulate-bench", "--no-set-up", "--publications", "10", "--rounds", "2", "--json"]
    monkeypatch.setattr(sys, "argv", ["mercast", *words])
    with pytest.raises(SystemExit) as stop:
        mercast.main()
    assert not stop.value.code
    result = json.loads(capsys.readouterr().out)
    assert result["forwarding"]["hops"] == 2 * 10 * 49
    assert 0 < result["forwarding"]["hops_per_s"] < result["forwarding"]["heap_hops_per_s"]
    assert result["set_up"] is None
    assert {row["destinations"] for row in result["publications"]} == {5, 20, 80}
