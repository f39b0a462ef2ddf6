"""Proves that runs deliver what the oracle expects, and that a run's folder is complete or absent."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import mercast
from broker.core.publications import Publications
from broker.trace.files import iter_rows
from broker.trace.schema import BrokerRow, DeliveryRow, Digest, ExpectationRow, HopRow, MatchRow
from experiments.errors import ScenarioError
from experiments.scenario.load import Scenario, load
from experiments.simulate.run import Run, simulate
from routing.registry import names
from tests.matching.native.test_backend import HIDES_THE_MODULE

SMALL = {"workload.publications": "60"}


def small(name: str, **overrides: str) -> Scenario:
    return load(name, {**SMALL, **{key.replace("__", "."): value for key, value in overrides.items()}})


def no_progress(what: str, done: int, total: int) -> None:
    assert what
    assert done <= total


@pytest.mark.parametrize("protocol", names())
def test_every_protocol_delivers_the_pairs_that_the_oracle_expects(protocol: str) -> None:
    summary = simulate(small("gtitm-20", protocols=f'["{protocol}"]'), protocol, no_progress)
    assert summary.published == 60
    assert summary.expected == summary.owed == summary.delivered > 100
    assert (summary.missed, summary.duplicated, summary.unexpected) == (0, 0, 0)


@pytest.mark.parametrize("protocol", ["fbr", "d-dbr", "merc"])
def test_with_subscribers_that_connect_and_leave_nothing_owed_is_missed(protocol: str) -> None:
    summary = simulate(load("churn", {"workload.publications": "200"}), protocol, no_progress)
    assert summary.owed + summary.withdrawn == summary.expected > 700
    assert (summary.missed, summary.duplicated, summary.held) == (0, 0, 0)


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["fbr", "d-dbr", "merc"])
def test_a_subscription_that_is_confirmed_while_a_publication_is_matched_receives_it(protocol: str) -> None:
    # Matching takes longer than confirming: the input came before the subscription's, and its answer after.
    summary = simulate(load("churn"), protocol, no_progress)
    assert (summary.seed, summary.published) == (1, 1_000)
    assert (summary.missed, summary.duplicated, summary.held) == (0, 0, 0)


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["d-dbr", "merc"])
def test_through_a_partition_a_crash_and_a_lossy_link_nothing_owed_is_missed(protocol: str) -> None:
    summary = simulate(load("partition"), protocol, no_progress)
    assert summary.owed + summary.lost_with_broker == summary.expected
    assert summary.lost_with_broker > 0
    assert (summary.missed, summary.duplicated, summary.held) == (0, 0, 0)


@pytest.mark.slow
def test_when_half_of_the_links_fail_undelivered_publications_of_fbr_are_dropped_by_name() -> None:
    share = {}
    for protocol in ("fbr", "d-dbr"):
        overrides = {"overlay.brokers": "40", "workload.publications": "40", "overlay.degree": "6"}
        summary = simulate(load("failures", overrides), protocol, no_progress)
        assert (summary.missed, summary.duplicated) == (0, 0)
        assert summary.delivered + summary.dropped == summary.expected
        share[protocol] = summary.delivered / summary.expected
    assert share["fbr"] < 0.4 < 0.6 < share["d-dbr"]


def test_a_long_run_keeps_the_publications_of_its_last_minute_only() -> None:
    unevaluated_counts: list[int] = []
    digest = Digest()
    scenario = small("line", workload__publications="1500", workload__rate="600", clients__subscriptions_each="1")

    def observe(what: str, done: int, total: int) -> None:
        no_progress(what, done, total)
        unevaluated_counts.append(run.unevaluated)

    run = Run(scenario, "d-dbr", digest, observe)
    summary = run.complete(digest.hexdigest)
    assert summary.published == 1_500
    assert summary.expected == summary.owed == summary.delivered > 1_000
    # Ten a second for a minute, and up to ten more or fewer within the slice of a second.
    assert 590 <= max(unevaluated_counts) <= 610


def test_a_line_shows_which_brokers_match() -> None:
    matches = {
        protocol: simulate(small("line"), protocol, no_progress).matches_mean for protocol in ("fbr", "d-dbr", "merc")
    }
    assert matches["fbr"] > 4.9
    assert matches["d-dbr"] == pytest.approx(2, abs=0.1)
    assert matches["merc"] == pytest.approx(3, abs=0.1)


def test_the_folder_of_a_run_has_everything_to_read_and_repeat_it(tmp_path: Path) -> None:
    scenario = small("line")
    summary = simulate(scenario, "d-dbr", no_progress, tmp_path / "run")
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [
        "provenance.json",
        "scenario.toml",
        "summary.json",
        "trace",
    ]
    assert load(tmp_path / "run" / "scenario.toml").workload == scenario.workload
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["digest"] == summary.digest
    assert len(list(iter_rows(tmp_path / "run", DeliveryRow))) == summary.delivered
    assert list(iter_rows(tmp_path / "run", HopRow))
    assert {row.table for row in iter_rows(tmp_path / "run", MatchRow)} == {"L-PRT", "R-PRT"}
    brokers = list(iter_rows(tmp_path / "run", BrokerRow))
    # Routing tables by n² + 8n; 3,800 bytes for each of 800 subscriptions, 1,300 for the publisher's advertisement.
    assert {row.routing_table_bytes for row in brokers} == {65}
    assert brokers[-1].memory_bytes == 65 + 800 * 3_800 + 1_300
    assert simulate(scenario, "d-dbr", no_progress).digest == summary.digest


def test_an_existing_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    with pytest.raises(ScenarioError, match="exists"):
        simulate(small("line"), "d-dbr", no_progress, tmp_path / "run")
    assert list(tmp_path.iterdir()) == [tmp_path / "run"]


def test_a_run_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    def interrupt(what: str, done: int, total: int) -> None:
        no_progress(what, done, total)
        if done > 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate(small("line"), "d-dbr", interrupt, tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_another_process_with_another_hash_seed_makes_the_same_run() -> None:
    script = (
        "from experiments.simulate.run import simulate; from experiments.scenario.load import load\n"
        "scenario = load('gtitm-20', {'workload.publications': '40', 'seed': '%s'})\n"
        "print(simulate(scenario, 'merc', lambda *_: None).digest)"
    )

    def digest(seed: int, hash_seed: str) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        command = [sys.executable, "-c", script % seed]
        return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout

    assert digest(5, "1") == digest(5, "2")
    assert digest(6, "1") != digest(5, "1")


def test_a_run_is_the_same_with_and_without_the_native_core() -> None:
    script = (
        "from experiments.simulate.run import simulate; from experiments.scenario.load import load\n"
        "print(simulate(load('gtitm-20', {'workload.publications': '40'}), 'd-dbr', lambda *_: None).digest)"
    )

    def digest(before: str) -> str:
        command = [sys.executable, "-c", before + script]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert digest("") == digest(HIDES_THE_MODULE)


def test_publications_in_flight_when_an_overloaded_run_ends_are_named_and_not_owed() -> None:
    heavy = {"workload.publications": "1500", "workload.rate": "60000", "run.drain_s": "1"}
    summary = simulate(load("line", heavy), "d-dbr", no_progress)
    assert summary.published < 1500
    assert summary.drops == {"under way when the run ended": summary.drops["under way when the run ended"]}
    assert summary.missed == 0
    assert summary.owed == summary.delivered < summary.expected


def test_publications_in_service_when_the_run_ends_are_not_owed_although_nothing_waits() -> None:
    # 49 ms of work at the first broker and at the last, a publication every 75 ms.
    brief = {"clients.subscriptions_each": "80", "workload.publications": "20", "workload.rate": "800"}
    summary = simulate(load("line", {**brief, "run.drain_s": "0"}), "d-dbr", no_progress)
    assert summary.drops == {"under way when the run ended": 1}
    assert summary.missed == 0
    assert summary.owed == summary.delivered < summary.expected


@pytest.mark.parametrize("name", ["line", "churn"])
def test_pending_publications_of_an_idle_overlay_are_missed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Publications, "arrive", lambda *_: None)
    summary = simulate(small(name), "d-dbr", no_progress)
    assert summary.missed > 0
    assert summary.missed == summary.owed - summary.delivered


def run_command(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["mercast", *words])
    with pytest.raises(SystemExit) as stop:
        mercast.main()
    code = stop.value.code
    assert code is None or isinstance(code, int)
    return code or 0


def test_the_command_compares_protocols_and_checks_that_runs_repeat(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = "simulate line -p d-dbr -p fbr --set workload.publications=20 --seed 3 --check-determinism --json"
    assert run_command(monkeypatch, *words.split()) == 0
    summaries = json.loads(capsys.readouterr().out)
    assert [(each["protocol"], each["seed"], each["published"]) for each in summaries] == [
        ("d-dbr", 3, 20),
        ("fbr", 3, 20),
    ]


def test_the_command_reports_that_a_run_is_weak_and_a_trace_shows_why_a_client_was_not_owed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    few = ["--set", "overlay.brokers=20", "--set", "overlay.degree=4", "--set", "workload.publications=5"]
    assert run_command(monkeypatch, "simulate", "failures", "-p", "fbr", "--json", *few, "--out", str(tmp_path)) == 0
    shown = capsys.readouterr()
    (summary,) = json.loads(shown.out)
    assert summary["is_weak"]
    assert f"fbr: a weak run; of 100 expected deliveries {summary['owed']} are owed" in shown.err
    row = next(row for row in iter_rows(tmp_path / "fbr", ExpectationRow) if not row.owed)
    assert run_command(monkeypatch, "trace", str(tmp_path / "fbr"), row.publication, "--subscriber", row.client) == 0
    assert "its subscription matches, but it was dropped (unreachable)" in capsys.readouterr().out


def test_the_trace_command_follows_a_publication(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    simulate(small("line"), "merc", no_progress, tmp_path / "run")
    first = next(iter(iter_rows(tmp_path / "run", DeliveryRow)))
    words = ["trace", str(tmp_path / "run"), first.publication]
    assert run_command(monkeypatch, *words, "--subscriber", first.client) == 0
    printed = capsys.readouterr().out
    assert "publishes at b001" in printed
    assert "b003 asks its R-PRT" in printed
    assert f"b005 delivers to {first.client}" in printed
    assert f"{first.client} got it after" in printed
    assert run_command(monkeypatch, "trace", str(tmp_path / "run"), "b001/1/9999") == 3
    assert "has no publication b001/1/9999" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["gtitm-21"], "gtitm-20"),
        (["line", "--set", "workload.rat=3"], "rate"),
        (["line", "--set", "workload.rate='fast'"], "workload.rate"),
        (["line", "-p", "ddbr"], "d-dbr"),
        (["gtitm-20", "--set", "overlay.degree=30"], "degree"),
        (["./nowhere.toml"], "nowhere.toml"),
        (["line", "--set", "rate"], "key=value"),
    ],
)
def test_bad_input_is_named_and_leaves_no_run(
    words: list[str],
    named: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    assert run_command(monkeypatch, "simulate", *words, "--out", str(tmp_path / "runs")) == 3
    assert named in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_filter_based_routing_that_advertises_again_delivers_where_it_otherwise_does_not() -> None:
    few = {"overlay.brokers": "30", "overlay.degree": "4", "workload.publications": "30"}
    plain = simulate(load("failures", few), "fbr", no_progress)
    mending = simulate(load("failures", {**few, "fbr.readvertise": "true"}), "fbr", no_progress)
    assert plain.missed == mending.missed == 0
    assert mending.duplicated == 0
    assert mending.delivered == mending.owed > 2 * plain.delivered
    assert (plain.is_weak, mending.is_weak) == (True, False)


def test_with_one_folder_there_already_nothing_is_simulated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "d-dbr").mkdir()
    words = ["simulate", "line", "-p", "fbr", "-p", "d-dbr", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["mercast", *words, "--set", "workload.publications=10"])
    with pytest.raises(SystemExit) as stop:
        mercast.main()
    assert stop.value.code == 3
    assert f"{tmp_path / 'd-dbr'} exists; give another folder" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["d-dbr"]
