"""Proves that scenario and seed determine overlays, clients, publications and faults."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from statistics import mean

import pytest

from experiments.scenario.load import (
    ClientPlan,
    FaultAction,
    FaultStep,
    Scenario,
    TimedPublication,
    build_overlay,
    cores_of,
    fault_steps,
    load,
    metric_of,
    place_clients,
    publications,
    publishing_window_ns,
    shipped_names,
)
from matching import parse
from matching.expressions.intersection import intersects
from topologies import Overlay, generate

ROOT = Path(__file__).resolve().parents[3]
SECOND = 1_000_000_000


def planned(name: str, overrides: dict[str, str] | None = None, protocol: str = "d-dbr") -> tuple[Scenario, ClientPlan]:
    scenario = load(name, overrides)
    return scenario, place_clients(scenario, build_overlay(scenario, protocol))


def published(name: str, overrides: dict[str, str] | None = None) -> list[TimedPublication]:
    return list(publications(*planned(name, overrides)))


def fault_plan(name: str, overrides: dict[str, str] | None = None) -> tuple[tuple[FaultStep, ...], Overlay]:
    scenario = load(name, overrides)
    overlay = build_overlay(scenario, "d-dbr")
    return fault_steps(scenario, overlay), overlay


def digest(name: str, seed: int) -> str:
    scenario = load(name, {"seed": str(seed), "fault_rates.cuts_per_minute": "20", "clients.churn.per_minute": "20"})
    parts: list[object] = []
    for protocol in scenario.protocols:
        overlay = build_overlay(scenario, protocol)
        plan = place_clients(scenario, overlay)
        parts += [overlay, plan, fault_steps(scenario, overlay), list(publications(scenario, plan))]
    return hashlib.sha256(repr(parts).encode()).hexdigest()


@pytest.mark.parametrize("name", shipped_names())
def test_a_shipped_scenario_is_small_and_can_be_built_for_its_protocols(name: str) -> None:
    scenario = load(name)
    for protocol in scenario.protocols:
        overlay = build_overlay(scenario, protocol)
        plan = place_clients(scenario, overlay)
        timed = list(publications(scenario, plan))
        assert len(overlay.ids) <= 100
        assert sum(len(subscriber.subscriptions) for subscriber in plan.subscribers) <= 2_000
        assert 100 <= len(timed) <= 2_000
        assert [publication.at_ns for publication in timed] == sorted(publication.at_ns for publication in timed)
        assert set(cores_of(scenario, protocol, overlay)) == set(overlay.ids)
        fault_steps(scenario, overlay)


@pytest.mark.parametrize("name", shipped_names())
def test_a_publication_satisfies_its_publishers_advertisement_and_some_subscription(name: str) -> None:
    scenario, plan = planned(name)
    advertised = {publisher.name: parse(publisher.advertisement or "FALSE") for publisher in plan.publishers}
    brokers = {publisher.name: publisher.broker for publisher in plan.publishers}
    wanted = [parse(text) for subscriber in plan.subscribers for text in subscriber.subscriptions]
    sample = list(publications(scenario, plan))[::40]
    assert all(advertised[each.publisher].matches(each.attributes) for each in sample)
    assert all(brokers[each.publisher] == each.broker for each in sample)
    assert any(expression.matches(each.attributes) for each in sample for expression in wanted)


def test_the_same_seed_gives_the_same_plan_and_another_seed_another() -> None:
    assert digest("gtitm-20", 1) == digest("gtitm-20", 1) != digest("gtitm-20", 2)


def test_plans_do_not_depend_on_the_hash_seed() -> None:
    names = ("gtitm-20", "churn", "partition", "gtitm-100")
    program = f"from tests.experiments.scenario.test_plan import *; print([digest(name, 3) for name in {names}])"
    digests = [
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env=os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    ]
    assert digests[0] == digests[1] == f"{[digest(name, 3) for name in names]}\n"


def test_parts_of_a_plan_draw_from_their_own_streams() -> None:
    """More random numbers for one part do not change the others."""
    _, plan = planned("gtitm-20")
    _, with_churn = planned("gtitm-20", {"clients.churn.per_minute": "60"})
    assert with_churn.publishers == plan.publishers
    assert with_churn.subscribers[:30] == plan.subscribers
    assert len(with_churn.subscribers) > 30
    assert published("gtitm-20", {"clients.churn.per_minute": "60"}) == published("gtitm-20")


def test_protocols_on_different_overlays_have_the_same_clients() -> None:
    assert planned("gtitm-100", protocol="merc")[1] == planned("gtitm-100", protocol="fbr")[1]


def test_a_generated_overlay_is_what_topology_generate_makes_of_the_seed() -> None:
    scenario = load("transit-stub-100", {"seed": "7"})
    assert build_overlay(scenario, "d-dbr") == generate("transit-stub", {"degree": 6}, seed=7)


def test_only_merc_gets_clusters_and_its_edge_brokers_their_cores() -> None:
    scenario = load("gtitm-100")
    flat, clustered = build_overlay(scenario, "d-dbr"), build_overlay(scenario, "merc")
    assert (len(flat.clusters), len(clustered.clusters)) == (0, 11)
    assert len(clustered.edge_brokers) == 10
    assert Counter(cores_of(scenario, "merc", clustered).values()) == {1: 90, 8: 10}
    assert set(cores_of(scenario, "d-dbr", flat).values()) == {1}


@pytest.mark.parametrize("brokers", range(1, 11))
def test_a_line_is_in_two_halves_whose_middle_broker_is_the_edge(brokers: int) -> None:
    overlay = build_overlay(load("line", {"overlay.brokers": str(brokers)}), "merc")
    assert len(overlay.clusters) == min(2, brokers)
    assert len(overlay.edge_brokers) == (brokers > 1)
    assert all(abs(overlay.ids.index(edge) - (brokers - 1) / 2) <= 1 for edge in overlay.edge_brokers)


def test_latency_and_bandwidth_go_for_every_link() -> None:
    overrides = {"overlay.latency_ms": "7", "overlay.bandwidth_mbit": "100"}
    overlay = build_overlay(load("transit-stub-100", overrides), "merc")
    assert {(link.latency_ms, link.bandwidth_mbit) for link in overlay.links} == {(7.0, 100.0)}
    plain = build_overlay(load("transit-stub-100"), "merc")
    assert len({link.latency_ms for link in plain.links}) > 10, "as the generator drew them"


def test_an_overlay_file_brings_its_clusters_and_cores(tmp_path: Path) -> None:
    net = tmp_path / "net.toml"
    net.write_text(
        'schema = 1\n[[broker]]\nid = "a"\nclusters = ["x"]\ncores = 4\n[[broker]]\nid = "b"\nclusters = ["x", "y"]\n'
        '[[broker]]\nid = "c"\nclusters = ["y"]\n[[link]]\nbetween = ["a", "b"]\n[[link]]\nbetween = ["b", "c"]\n'
    )
    scenario = load("line", {"overlay.file": str(net), "overlay.clusters": "", "brokers.edge_cores": "2"})
    overlay = build_overlay(scenario, "merc")
    assert overlay.edge_brokers == ("b",)
    assert cores_of(scenario, "merc", overlay) == {"a": 4, "b": 2, "c": 1}
    assert build_overlay(scenario, "fbr").clusters == ()


def test_paths_are_the_shortest_of_what_the_scenario_says_or_else_the_overlay_file(tmp_path: Path) -> None:
    net = tmp_path / "net.toml"
    net.write_text('schema = 1\n[overlay]\nmetric = "policy"\n[[broker]]\nid = "a"\n')
    assert metric_of(load("line"), "d-dbr") == "hops"
    assert metric_of(load("line", {"overlay.metric": "latency"}), "d-dbr") == "latency"
    assert metric_of(load("line", {"overlay.file": str(net)}), "d-dbr") == "policy"
    assert metric_of(load("line", {"overlay.file": str(net), "overlay.metric": "hops"}), "d-dbr") == "hops"


def test_clients_stand_where_they_are_put() -> None:
    _, line = planned("line")
    assert [publisher.broker for publisher in line.publishers] == ["b001"]
    assert {subscriber.broker for subscriber in line.subscribers} == {"b005"}
    _, each = planned("gtitm-100")
    assert [publisher.broker for publisher in each.publishers] == [f"b{number:03d}" for number in range(1, 101)]
    _, in_turn = planned("gtitm-20", {"clients.placement": "round-robin"})
    assert Counter(subscriber.broker for subscriber in in_turn.subscribers)["b010"] == 2
    assert Counter(subscriber.broker for subscriber in in_turn.subscribers)["b011"] == 1
    _, drawn = planned("gtitm-20")
    assert 8 < len({subscriber.broker for subscriber in drawn.subscribers}) < 20
    _, listed = planned("gtitm-20", {"clients.publishers": "each", "clients.publishers_at": '["first", "b007"]'})
    assert [publisher.broker for publisher in listed.publishers] == ["b001", "b007"]


def test_names_of_clients_are_unique_and_in_order() -> None:
    _, plan = planned("churn")
    names = [publisher.name for publisher in plan.publishers] + [subscriber.name for subscriber in plan.subscribers]
    assert names == sorted(set(names))


@pytest.mark.parametrize("kind", ["stock-quotes", "be-gen", "everything"])
def test_a_share_of_brokers_advertises_what_nobody_asks_for(kind: str) -> None:
    overrides = {"workload.kind": kind, "clients.subscribers": "10", "clients.subscriptions_each": "20"}
    scenario, plan = planned("gtitm-100", overrides)
    wanted = [parse(text) for subscriber in plan.subscribers for text in subscriber.subscriptions]
    assert Counter(publisher.is_publishing for publisher in plan.publishers) == {True: 60, False: 40}
    seen = set()
    for publisher in plan.publishers:
        assert publisher.advertisement is not None
        if (publisher.advertisement, publisher.is_publishing) not in seen:
            seen.add((publisher.advertisement, publisher.is_publishing))
            advertised = parse(publisher.advertisement)
            assert {intersects(advertised, expression) for expression in wanted} == {publisher.is_publishing}
    silent = {publisher.name for publisher in plan.publishers if not publisher.is_publishing}
    assert not silent & {publication.publisher for publication in publications(scenario, plan)}


def test_with_open_advertising_nobody_advertises() -> None:
    _, plan = planned("churn", {"advertise": "open"})
    assert {publisher.advertisement for publisher in plan.publishers} == {None}
    assert all(publisher.is_publishing for publisher in plan.publishers)


def test_with_everything_all_publications_match_all_subscriptions() -> None:
    scenario, plan = planned("failures")
    wanted = {text for subscriber in plan.subscribers for text in subscriber.subscriptions}
    assert all(parse(text).matches(each.attributes) for text in wanted for each in publications(scenario, plan))
    assert sorted(each.publisher for each in publications(scenario, plan)) == sorted(p.name for p in plan.publishers)


def test_about_half_of_the_brokers_are_interested_in_gtitm_100() -> None:
    for overrides in ({}, {"clients.subscriptions_each": "30", "workload.symbols": "25", "workload.rate": "2000"}):
        scenario, plan = planned("gtitm-100", overrides)
        wanted = [[parse(text) for text in subscriber.subscriptions] for subscriber in plan.subscribers]
        sample = list(publications(scenario, plan))[::8]
        interested = mean(
            sum(any(expression.matches(each.attributes) for expression in own) for own in wanted) for each in sample
        )
        assert 40 <= interested <= 60


def test_fixed_arrivals_are_evenly_spread_and_publishers_alternate() -> None:
    timed = published("failures")
    assert timed[0].at_ns == 20 * SECOND, "after settling"
    assert {later.at_ns - earlier.at_ns for earlier, later in pairwise(timed)} == {SECOND // 10}
    assert [each.publisher for each in timed[:2]] == ["p001", "p002"]


def test_rounding_of_fixed_arrivals_does_not_add_up() -> None:
    timed = published("line", {"workload.rate": "7000", "workload.publications": "7001"})
    assert timed[-1].at_ns == 70 * SECOND


def test_random_arrivals_have_the_rate_and_the_spread_of_a_poisson_process() -> None:
    timed = published("churn", {"workload.publications": "20000"})
    gaps = [(later.at_ns - earlier.at_ns) / SECOND for earlier, later in pairwise(timed)]
    assert mean(gaps) == pytest.approx(60 / 3000, rel=0.03)
    assert mean(gap > 0.02 for gap in gaps) == pytest.approx(0.368, abs=0.02)
    counts = Counter(each.publisher for each in timed)
    assert len(counts) == 20
    assert max(counts.values()) < 1.2 * min(counts.values())


def test_publishing_ends_after_the_number_or_the_time_that_is_asked_for() -> None:
    assert len(published("line", {"workload.publications": "17"})) == 17
    timed = published("line", {"workload.duration_s": "2"})
    assert len(timed) == 100
    assert timed[-1].at_ns < publishing_window_ns(load("line", {"workload.duration_s": "2"}))[1] == 12 * SECOND


@pytest.mark.parametrize(
    ("limit", "expected"),
    [({}, [0.25, 0.5, 4.0]), ({"publications": "2"}, [0.25, 0.5]), ({"duration_s": "0.5"}, [0.25])],
)
def test_times_can_come_from_a_file(tmp_path: Path, limit: dict[str, str], expected: list[float]) -> None:
    (tmp_path / "times.txt").write_text("0.25\n0.5\n\n4\n")
    overrides = {"workload.arrivals": "file", "workload.times_file": str(tmp_path / "times.txt")}
    overrides |= {"workload.publications": ""} | {f"workload.{key}": value for key, value in limit.items()}
    assert [each.at_ns / SECOND - 10 for each in published("line", overrides)] == expected
    assert publishing_window_ns(load("line", overrides)) == (10 * SECOND, round((10 + expected[-1]) * SECOND))


def test_publications_carry_the_payload_that_is_asked_for() -> None:
    assert {each.payload_bytes for each in published("line", {"workload.payload_bytes": "512"})} == {512}


def test_quotes_can_come_from_a_file(tmp_path: Path) -> None:
    quotes = tmp_path / "quotes.csv"
    quotes.write_text("date,ticker,open,high,low,close,volume\n2015-01-05,IBM,161.27,161.5,159.19,159.51,4880389\n")
    scenario, plan = planned("line", {"workload.file": str(quotes)})
    assert next(publications(scenario, plan)).attributes["symbol"] == "IBM"
    assert any("IBM" in text for subscriber in plan.subscribers for text in subscriber.subscriptions)


def test_visitors_come_while_publishing_goes_on_and_leave_again() -> None:
    overrides = {"workload.duration_s": "120", "clients.churn.per_minute": "600", "clients.churn.mean_stay_s": "5"}
    scenario, plan = planned("churn", overrides)
    start, end = publishing_window_ns(scenario)
    visitors = [subscriber for subscriber in plan.subscribers if subscriber.arrives_ns]
    assert len(visitors) == pytest.approx(1_200, rel=0.1)
    assert all(start <= visitor.arrives_ns < end for visitor in visitors)
    stays = [visitor.leaves_ns - visitor.arrives_ns for visitor in visitors if visitor.leaves_ns is not None]
    assert mean(stays) / SECOND == pytest.approx(5, rel=0.1)
    assert len({visitor.broker for visitor in visitors}) == 20
    assert all(len(visitor.subscriptions) == 5 for visitor in visitors)
    assert [subscriber.leaves_ns for subscriber in plan.subscribers if not subscriber.arrives_ns] == [None] * 20


def test_a_share_of_links_or_brokers_fails_at_once_and_for_good() -> None:
    steps, overlay = fault_plan("failures")
    assert {(step.at_ns, step.action) for step in steps} == {(10 * SECOND, FaultAction.CUT)}
    assert len({step.link for step in steps}) == len(steps) == len(overlay.links) // 2
    steps, _ = fault_plan("failures", {"fault_rates.share_of_links": "0", "fault_rates.share_of_brokers": "0.3"})
    assert {step.action for step in steps} == {FaultAction.CRASH}
    assert len({step.broker for step in steps}) == 30


def test_a_larger_share_holds_the_smaller_one() -> None:
    """So a sweep over shares fails ever more of the same overlay."""
    smaller, _ = fault_plan("failures", {"fault_rates.share_of_links": "0.2"})
    larger, _ = fault_plan("failures", {"fault_rates.share_of_links": "0.6"})
    assert {step.link for step in smaller} < {step.link for step in larger}


def test_random_faults_happen_while_publishing_goes_on_and_end_with_it() -> None:
    overrides = {
        "workload.duration_s": "600",
        "fault_rates.crashes_per_minute": "30",
        "fault_rates.cuts_per_minute": "12",
        "fault_rates.mean_outage_s": "4",
    }
    steps, _ = fault_plan("churn", overrides)
    actions = Counter(step.action for step in steps)
    assert actions[FaultAction.CRASH] == actions[FaultAction.RESTART] == pytest.approx(300, rel=0.2)
    assert actions[FaultAction.CUT] == actions[FaultAction.REPAIR] == pytest.approx(120, rel=0.3)
    assert all(10 * SECOND <= step.at_ns <= 610 * SECOND for step in steps)
    down_since: dict[str, int] = {}
    outages = []
    for step in steps:
        if step.broker is not None and step.action is FaultAction.CRASH:
            assert step.broker not in down_since, "who is down does not crash"
            down_since[step.broker] = step.at_ns
        elif step.broker is not None:
            outages.append(step.at_ns - down_since.pop(step.broker))
    assert mean(outages) / SECOND == pytest.approx(4, rel=0.2)


def test_a_partition_cuts_the_links_between_its_sides_until_it_heals() -> None:
    fault = "[{kind = 'partition', at_s = 3, until_s = 5, brokers = ['b001', 'b002']}]"
    steps, _ = fault_plan("line", {"fault": fault})
    assert steps == (
        FaultStep(3 * SECOND, FaultAction.CUT, link=("b002", "b003")),
        FaultStep(5 * SECOND, FaultAction.REPAIR, link=("b002", "b003")),
    )


def test_delay_and_loss_go_for_all_links_or_some_and_the_worst_counts() -> None:
    faults = """[
        {kind = 'delay', at_s = 1, until_s = 4, delay_ms = 10},
        {kind = 'delay', at_s = 2, until_s = 3, delay_ms = 30, links = [['b002', 'b001']]},
        {kind = 'loss', at_s = 1, loss = 0.5, links = [['b004', 'b005']]},
    ]"""
    steps, _ = fault_plan("line", {"fault": faults.replace("\n", " ")})
    first = [(step.at_ns // SECOND, step.delay_ns // 1_000_000) for step in steps if step.link == ("b001", "b002")]
    assert first == [(1, 10), (2, 30), (3, 10), (4, 0)]
    assert [(step.at_ns // SECOND, step.loss) for step in steps if step.action is FaultAction.LOSS] == [(1, 0.5)]
    assert len([step for step in steps if step.action is FaultAction.DELAY]) == 2 + 2 * 4


def test_what_two_faults_hold_down_comes_back_when_both_are_over() -> None:
    faults = (
        "[{kind = 'crash', at_s = 1, until_s = 4, brokers = 'b002'}, "
        "{kind = 'crash', at_s = 2, until_s = 6, brokers = 'b002'}]"
    )
    steps, _ = fault_plan("line", {"fault": faults})
    assert [(step.at_ns // SECOND, step.action.value) for step in steps] == [(1, "crash"), (6, "restart")]


def test_a_restart_or_a_repair_ends_whatever_holds_its_subject_down() -> None:
    faults = (
        "[{kind = 'restart', at_s = 5, brokers = ['b003']}, {kind = 'crash', at_s = 1, brokers = ['b003', 'b004']}, "
        "{kind = 'cut', at_s = 2, links = [['b001', 'b002']]}, {kind = 'repair', at_s = 3, links = [['b002', 'b001']]}]"
    )
    steps, _ = fault_plan("line", {"fault": faults})
    assert [(step.at_ns // SECOND, step.action.value, step.broker, step.link) for step in steps] == [
        (1, "crash", "b003", None),
        (1, "crash", "b004", None),
        (2, "cut", None, ("b001", "b002")),
        (3, "repair", None, ("b001", "b002")),
        (5, "restart", "b003", None),
    ]


def test_without_faults_the_agenda_is_empty() -> None:
    assert fault_plan("gtitm-20")[0] == ()
