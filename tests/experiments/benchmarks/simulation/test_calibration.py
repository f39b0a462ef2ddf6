"""Proves that coefficients of the cost profile `native` are fitted, written and read, and determine a run's costs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from broker.simulation.cost_file import CostFileError, IndexCosts, MeasuredCosts, read_costs
from experiments.benchmarks.simulation.calibration import Observation, calibrate, fit_costs, to_toml
from experiments.errors import ScenarioError
from experiments.scenario.load import Scenario, load
from experiments.simulate.run import simulate
from matching import registry
from routing.tables import TableWork


def no_progress(what: str, done: int, total: int) -> None:
    assert done <= total, what


def observations(constant: float, stored: float, matched: float) -> list[Observation]:
    return [
        Observation(size, share * size, constant + stored * size + matched * share * size)
        for size in (500, 1_000, 4_000)
        for share in (0.01, 0.1)
    ]


def test_the_coefficients_behind_observations_are_found_again() -> None:
    assert fit_costs(observations(9_000, 3, 700)) == IndexCosts(9_000, 3, 700)
    assert fit_costs(observations(0, 950, 0)) == IndexCosts(0, 950, 0)


def test_no_coefficient_is_below_zero() -> None:
    """These three coefficients cannot express a cost that shrinks as tables grow, because none is negative."""
    costs = fit_costs([Observation(size, 1, 1e6 - 100 * size) for size in (500, 1_000, 4_000)])
    assert min(costs.asked_ns, costs.stored_ns, costs.matched_ns) >= 0


def test_costs_are_read_as_they_were_written(tmp_path: Path) -> None:
    measured = MeasuredCosts(
        7_000, 8_000, {"scan": IndexCosts(1.5, 900.25, 3.0), "auto": IndexCosts(2, 3, 4)}, {"python": "3.11"}, "here"
    )
    (tmp_path / "costs.toml").write_text(to_toml(measured))
    again = read_costs(tmp_path / "costs.toml")
    assert (again.frame_in_ns, again.frame_out_ns) == (7_000, 8_000)
    assert (again.indexes, again.machine) == (measured.indexes, measured.machine)
    profile = again.profile("scan")
    assert profile.match_cost(TableWork("L-PRT", 10, 0, 0, 2)) == 1.5 + 10 * 900.25 + 2 * 3.0


def test_this_machine_can_be_calibrated() -> None:
    costs = calibrate(["scan"], no_progress, sizes=(50, 200), publications=10)
    assert costs.frame_in_ns > 0
    assert costs.indexes["scan"].stored_ns > 0


def test_every_index_of_pure_python_has_coefficients_that_ship() -> None:
    shipped = read_costs()
    assert shipped.machine["python"]
    assert {"auto", "scan", "a-tree", "pst-bloom", "pst-hash", "be-tree", "op-index"} <= set(shipped.indexes)
    assert set(shipped.indexes) <= set(registry.INDEXES)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("frames =", "not TOML"),
        ("[index.scan]", "frames is missing; it must be a table, as in the file that `mercast calibrate FILE` writes"),
        ("[frames]\nin_ns = 'a'\nout_ns = 1\n[index]\n[machine]", "frames.in_ns is 'a'"),
        (
            "[frames]\nin_ns = 1\nout_ns = 1\n[machine]\n[index.scan]\nasked_ns = 1\nstored_ns = -1\nmatched_ns = 1",
            "index.scan.stored_ns is -1",
        ),
    ],
)
def test_a_bad_file_is_refused_by_its_name_and_key(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "costs.toml"
    path.write_text(text)
    with pytest.raises(CostFileError, match=words) as refusal:
        read_costs(path)
    assert str(path) in str(refusal.value)
    assert refusal.value.exit_code == 3


def native(**overrides: str) -> Scenario:
    settings = {"workload.publications": "20", "clients.subscriptions_each": "1", "brokers.profile": "native"}
    return load("line", {**settings, **{key.replace("__", "."): value for key, value in overrides.items()}})


def test_a_run_reads_coefficients_and_records_them(tmp_path: Path) -> None:
    costs = MeasuredCosts(1_000, 1_000, {"auto": IndexCosts(0, 0, 0)}, {"python": "3.11"}, "here")
    (tmp_path / "costs.toml").write_text(to_toml(costs))
    cheap = simulate(native(brokers__costs_file=str(tmp_path / "costs.toml")), "d-dbr", no_progress, tmp_path / "run")
    shipped = simulate(native(), "d-dbr", no_progress)
    # Four links of a millisecond; a frame in at five brokers and a frame out at four, a microsecond each.
    assert cheap.latency_ms_mean == pytest.approx(4.009)
    assert shipped.latency_ms_mean > cheap.latency_ms_mean
    assert cheap.delivered == shipped.delivered
    provenance = json.loads((tmp_path / "run" / "provenance.json").read_text())
    assert provenance["costs_ns"] == {
        "name": "native",
        "stored": 0.0,
        "matched": 0.0,
        "frame_in": 1_000,
        "frame_out": 1_000,
        "asked": 0.0,
    }


def test_a_run_without_the_file_or_the_index_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "costs.toml").write_text(
        to_toml(MeasuredCosts(1, 1, {"scan": IndexCosts(0, 0, 0)}, {"python": "3.11"}, "here"))
    )
    for file, words in (("missing.toml", "cannot read cost file"), ("costs.toml", r"no \[index.auto\]")):
        with pytest.raises(ScenarioError, match=f"line: brokers.costs_file: .*{words}"):
            simulate(
                native(brokers__costs_file=str(tmp_path / file)), "d-dbr", no_progress, tmp_path / "runs" / "d-dbr"
            )
    assert not (tmp_path / "runs").exists()


def test_a_file_of_costs_belongs_to_the_profile_native(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"brokers\.costs_file"):
        load("line", {"brokers.costs_file": str(tmp_path / "costs.toml")})
