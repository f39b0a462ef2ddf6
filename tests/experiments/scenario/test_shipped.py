"""Proves that shortened shipped scenarios deliver all owed pairs once and no others, under every protocol they compare.

Also proves the papers' numbers for destination lists, and for the load at which filter-based routing is saturated.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.simulation.cost_file import IndexCosts, MeasuredCosts
from experiments.benchmarks.simulation.calibration import to_toml
from experiments.scenario.load import load, shipped_names
from experiments.simulate.run import simulate
from experiments.simulate.summary import RunSummary

SHORTER: dict[str, dict[str, str]] = {
    "churn": {"workload.publications": "100"},
    "failures": {"overlay.brokers": "24", "workload.publications": "24"},
    "gtitm-100": {
        "overlay.brokers": "24",
        "overlay.merc.transit_nodes": "4",
        "overlay.merc.stub_nodes": "5",
        "overlay.merc.degree": "3",
    },
    "gtitm-20": {"clients.subscriptions_each": "4", "workload.publications": "60"},
    "line": {"workload.publications": "40"},
    "line-10": {"workload.publications": "20", "clients.subscriptions_each": "2"},
    "partition": {},
    "reorganise": {"overlay.brokers": "20", "workload.publications": "200"},
    "transit-stub-100": {"overlay.transit_nodes": "4", "overlay.stub_nodes": "5", "overlay.degree": "3"},
}
"""Settings that shorten each scenario. A new scenario must be added here."""
WITH_FAULTS = ("failures", "partition")


def no_progress(what: str, done: int, total: int) -> None:
    assert done <= total, what


def protocols_of(name: str) -> list[tuple[str, str]]:
    return [(name, protocol) for protocol in load(name).protocols]


def test_every_shipped_scenario_is_tried() -> None:
    assert sorted(SHORTER) == sorted(shipped_names())


@pytest.mark.slow
@pytest.mark.parametrize(("name", "protocol"), [pair for name in SHORTER for pair in protocols_of(name)])
def test_what_is_owed_arrives_once_and_nothing_else_arrives(name: str, protocol: str) -> None:
    run = simulate(load(name, SHORTER[name]), protocol, no_progress)
    assert run.owed > 0
    assert (run.missed, run.duplicated) == (0, 0)
    # A client that arrives while a publication is in flight may receive it, but is not owed it.
    assert run.unexpected == 0 or name == "churn"
    assert run.drops == {} or name in WITH_FAULTS
    if name not in (*WITH_FAULTS, "churn"):
        assert run.expected == run.owed == run.delivered


@pytest.mark.slow
def test_what_fbr_does_not_deliver_when_links_fail_is_dropped_by_name() -> None:
    run = simulate(load("failures", SHORTER["failures"]), "fbr", no_progress)
    assert run.missed == 0
    assert 0 < run.owed == run.delivered < run.expected
    assert run.dropped == run.expected - run.owed


def everybody_interested(**overrides: str) -> RunSummary:
    settings = {
        "protocols": '["d-dbr"]',
        "workload.kind": "everything",
        "workload.rate": "600",
        "clients.subscriptions_each": "1",
        "clients.advertised_share": "1.0",
        **{key.replace("__", "."): value for key, value in overrides.items()},
    }
    return simulate(load("gtitm-100", settings), "d-dbr", no_progress)


@pytest.mark.slow
def test_with_700_brokers_of_degree_6_all_interested_a_message_has_3_8_destinations() -> None:
    """[THESIS Fig. 10.1.13]."""
    run = everybody_interested(overlay__brokers="700", clients__publishers="2", workload__publications="2")
    assert run.delivered == run.owed == 1_400
    assert run.destinations_mean == pytest.approx(3.8, rel=0.15)


def test_with_70_brokers_of_degree_3_and_35_interested_a_message_has_about_2_5_destinations() -> None:
    """[THESIS 1.3]."""
    few = {"overlay__brokers": "70", "overlay__degree": "3", "clients__subscribers": "35"}
    run = everybody_interested(**few, clients__publishers="12", workload__publications="12")
    assert run.delivered == run.owed == 420
    assert run.destinations_mean == pytest.approx(2.51, rel=0.25)


@pytest.mark.slow
def test_fbr_gives_in_between_1500_and_3000_publications_a_minute_and_d_dbr_does_not(tmp_path: Path) -> None:
    """[THESIS Fig. 10.1.9]: 100 brokers of degree 6 with 3,000 subscriptions, under `padres-2015`.

    Each subscription represents thirty, so that the set-up is quick: there are 100, each at thirty times the cost.
    """
    costs = MeasuredCosts(200_000, 200_000, {"auto": IndexCosts(0, 30 * 6_100, 0)}, {"as": "padres-2015"}, "test")
    (tmp_path / "costs.toml").write_text(to_toml(costs))
    latency_ms = {}
    for protocol, rate in (("fbr", 1_500), ("fbr", 3_000), ("d-dbr", 3_000)):
        settings = {
            "workload.rate": str(rate),
            "workload.duration_s": "6",
            "workload.symbols": "2",
            "clients.subscriptions_each": "1",
            "brokers.profile": "native",
            "brokers.costs_file": str(tmp_path / "costs.toml"),
        }
        run = simulate(load("gtitm-100", settings), protocol, no_progress)
        assert (run.missed, run.duplicated) == (0, 0)
        latency_ms[protocol, rate] = run.latency_ms_mean
    assert latency_ms["fbr", 3_000] > 2 * latency_ms["fbr", 1_500]
    assert latency_ms["d-dbr", 3_000] < latency_ms["fbr", 1_500] / 5
