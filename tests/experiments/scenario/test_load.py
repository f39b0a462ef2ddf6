"""Proves that scenarios load by name or path, that `--set` replaces values, and that a written scenario loads equal."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.errors import ScenarioError
from experiments.scenario.load import Clusters, Fault, OverlaySetup, Scenario, load, shipped_names, to_toml
from experiments.scenario.model import EverythingParameters
from experiments.workloads.be_gen import BeGenParameters
from experiments.workloads.derivation import OperatorClass
from experiments.workloads.stock_quotes import Coverage, StockQuoteParameters
from topologies import generate
from topologies.files.toml import OverlayFile, write_overlay_file

SMALL = """
[overlay]
model = "line"
brokers = 3

[workload]
publications = 10
"""


def scenario(folder: Path, text: str, overrides: dict[str, str] | None = None) -> Scenario:
    path = folder / "small.toml"
    path.write_text(text)
    return load(path, overrides or {"protocols": "d-dbr"})


@pytest.mark.parametrize("name", shipped_names())
def test_a_shipped_scenario_has_its_files_name_and_says_what_it_shows(name: str) -> None:
    loaded = load(name)
    assert loaded.name == name
    assert len(loaded.title) > 30


@pytest.mark.parametrize("name", shipped_names())
def test_a_shipped_scenario_written_out_loads_as_the_same(name: str, tmp_path: Path) -> None:
    path = tmp_path / "resolved.toml"
    path.write_text(to_toml(load(name)))
    assert load(path) == load(name)


def test_the_scenarios_of_the_thesis_are_shipped() -> None:
    wanted = {"line", "line-10", "gtitm-20", "gtitm-100", "transit-stub-100", "failures", "churn", "reorganise"}
    assert wanted <= set(shipped_names())


def test_everything_that_a_file_can_say_survives_writing_and_loading(tmp_path: Path) -> None:
    write_overlay_file(tmp_path / "net.toml", OverlayFile(generate("ring", {"brokers": 4})))
    (tmp_path / "times.txt").write_text("0.5\n1.5\n")
    full = scenario(
        tmp_path,
        """
        title = "with \\"quotes\\""
        protocols = ["fbr", "merc"]
        matcher = "pst-bloom"
        seed = 12
        [overlay]
        file = "net.toml"
        bandwidth_mbit = 10
        metric = "latency"
        [overlay.merc]
        model = "hierarchy"
        levels = [3, 4]
        alpha = [0.6, 0.5]
        clusters = {by = "domain"}
        [brokers]
        cores = 2
        edge_cores = 8
        queue_frames = 50
        profile = "native"
        start = "cold"
        [clients]
        publishers = 3
        subscribers = "each"
        subscriptions_each = 4
        placement = "random"
        publishers_at = "first"
        subscribers_at = ["b002", "last"]
        advertised_share = 0.5
        churn = {per_minute = 30, mean_stay_s = 2}
        [workload]
        kind = "be-gen"
        operators = "high"
        matching_probability = 0.1
        arrivals = "file"
        times_file = "times.txt"
        payload_bytes = 100
        [reorganise]
        period_s = 5
        max_degree = 3
        [fault_rates]
        cuts_per_minute = 6
        share_of_brokers = 0.25
        share_at_s = 3
        [run]
        settle_s = 1
        drain_s = 2.5
        [[fault]]
        kind = "delay"
        at_s = 2
        until_s = 4
        delay_ms = 20
        links = [["b001", "b002"]]
        [[fault]]
        kind = "crash"
        at_s = 1
        brokers = ["b003"]
        """,
        {"seed": "13"},
    )
    assert full.overlay == OverlaySetup(file=str(tmp_path / "net.toml"), bandwidth_mbit=10.0, metric="latency")
    assert full.overlay_for("merc").parameters == {"levels": (3, 4), "alpha": (0.6, 0.5)}
    taken_over = (full.overlay_for("merc").bandwidth_mbit, full.overlay_for("merc").metric)
    assert taken_over == (10.0, "latency"), "from [overlay]"
    assert full.workload.parameters == BeGenParameters(operators=OperatorClass.HIGH, matching_probability=0.1)
    assert full.workload.times_file == str(tmp_path / "times.txt")
    assert full.clients.publishers_at == ("first",)
    assert full.faults[0] == Fault(at_s=2.0, kind="delay", links=(("b001", "b002"),), until_s=4.0, delay_ms=20.0)
    elsewhere = tmp_path / "run"
    elsewhere.mkdir()
    (elsewhere / "scenario.toml").write_text(to_toml(full))
    assert load(elsewhere / "scenario.toml") == full, "files are found from anywhere"


def test_a_scenario_without_a_name_has_its_files(tmp_path: Path) -> None:
    assert scenario(tmp_path, SMALL).name == "small"


def test_a_protocol_may_have_its_own_overlay() -> None:
    loaded = load("gtitm-100")
    assert loaded.overlay_for("fbr") == loaded.overlay_for("d-dbr") == loaded.overlay
    assert loaded.overlay.model == "random"
    assert loaded.overlay_for("merc").model == "transit-stub"
    assert loaded.overlay_for("merc").latency_ms == loaded.overlay.latency_ms


def test_a_protocols_table_without_a_model_changes_single_parameters(tmp_path: Path) -> None:
    loaded = scenario(tmp_path, SMALL + "[overlay.merc]\nclusters = {size = 2}\n")
    assert loaded.overlay_for("merc") == OverlaySetup(
        model="line", parameters={"brokers": 3}, clusters=Clusters(size=2)
    )
    assert loaded.overlay_for("d-dbr").clusters is None


def test_overrides_are_read_as_toml_and_else_as_text() -> None:
    loaded = load(
        "gtitm-20",
        {
            "workload.rate": "3000",
            "matcher": "pst-bloom",
            "protocols": "merc",
            "title": '"quoted"',
            "overlay.clusters": "{size = 5}",
            "clients.publishers_at": '["first", "last"]',
            "workload.kinds": "[1, 0, 0, 0]",
            "clients.churn.per_minute": "12",
        },
    )
    assert loaded.workload.rate == 3000.0
    assert (loaded.matcher, loaded.protocols, loaded.title) == ("pst-bloom", ("merc",), "quoted")
    assert loaded.overlay.clusters == Clusters(size=5)
    assert loaded.clients.publishers_at == ("first", "last")
    assert loaded.clients.churn.per_minute == 12.0
    assert isinstance(loaded.workload.parameters, StockQuoteParameters)
    assert loaded.workload.parameters.kinds == (1.0, 0.0, 0.0, 0.0)


def test_an_override_wins_over_the_key_that_it_excludes() -> None:
    assert load("line").workload.publications == 600
    timed = load("line", {"workload.duration_s": "5"}).workload
    assert (timed.publications, timed.duration_s) == (None, 5.0)


def test_another_model_leaves_behind_what_it_does_not_have() -> None:
    loaded = load("gtitm-20", {"overlay.model": "ring"})
    assert (loaded.overlay.model, loaded.overlay.parameters) == ("ring", {"brokers": 20})
    assert loaded.overlay.latency_ms == 1.0


def test_another_kind_of_workload_leaves_behind_what_it_does_not_have() -> None:
    assert load("gtitm-20", {"workload.kind": "everything"}).workload.parameters == EverythingParameters()
    be_gen = load("gtitm-20", {"workload.kind": "be-gen"}).workload
    assert be_gen.parameters == BeGenParameters(zipf=0.5), "which both kinds have"
    assert be_gen.rate == load("gtitm-20").workload.rate


def test_an_overlay_file_takes_the_place_of_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_overlay_file(tmp_path / "net.toml", OverlayFile(generate("ring", {"brokers": 4})))
    monkeypatch.chdir(tmp_path)
    loaded = load("gtitm-20", {"overlay.file": "net.toml"})
    assert (loaded.overlay.model, loaded.overlay.parameters) == (None, {})
    assert loaded.overlay.file == str(tmp_path / "net.toml"), "relative to where the command was typed"


def test_an_empty_override_brings_back_the_default() -> None:
    assert load("gtitm-100").brokers.edge_cores == 8
    assert load("gtitm-100", {"brokers.edge_cores": ""}).brokers.edge_cores is None


def test_a_value_is_never_read_as_more_than_one_key() -> None:
    assert load("line", {"title": "1\nseed = 5"}).seed == load("line").seed


def test_everything_but_the_faults_is_off_by_default(tmp_path: Path) -> None:
    plain = scenario(tmp_path, SMALL)
    assert plain.faults == ()
    rates = plain.fault_rates
    assert not any([rates.crashes_per_minute, rates.cuts_per_minute, rates.share_of_brokers, rates.share_of_links])
    assert plain.reorganise.period_s == 0
    assert plain.clients.churn.per_minute == 0
    assert plain.advertise == "strict"


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "title": st.text(st.characters(codec="utf-8"), max_size=20).map(lambda text: f"x{text}"),
            "seed": st.integers(0, 2**62),
            "workload.rate": st.floats(0.001, 1e9),
            "workload.payload_bytes": st.integers(0, 10**6),
            "workload.coverage": st.sampled_from(Coverage),
            "workload.duration_s": st.floats(0.001, 1e6),
            "clients.subscribers": st.one_of(st.just("each"), st.integers(0, 1000)),
            "clients.advertised_share": st.floats(0.01, 1),
            "brokers.edge_cores": st.integers(1, 64),
            "run.settle_s": st.floats(0, 1e6),
        },
    )
)
def test_any_resolved_scenario_loads_as_the_same(
    tmp_path_factory: pytest.TempPathFactory, values: dict[str, object]
) -> None:
    loaded = load("gtitm-100", {key: str(value) for key, value in values.items()})
    path = tmp_path_factory.mktemp("scenario") / "resolved.toml"
    path.write_text(to_toml(loaded), encoding="utf-8")
    assert load(path) == loaded


def test_a_written_scenario_leaves_nothing_to_defaults() -> None:
    document = tomllib.loads(to_toml(load("failures")))
    assert document["brokers"]["cores"] == 1
    assert document["workload"]["rate"] == 600.0
    assert document["seed"] == 1


def test_a_scenario_file_that_is_not_there_is_named() -> None:
    with pytest.raises(ScenarioError, match=r"cannot read scenario nowhere/x\.toml: No such file") as refusal:
        load("nowhere/x.toml")
    assert refusal.value.exit_code == 3
