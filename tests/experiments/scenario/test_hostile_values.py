"""Any value in any key of a scenario is read or refused with the file and the key, and never fails in another way."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.errors import ScenarioError
from experiments.scenario.load import load, to_toml
from experiments.scenario.model import (
    WORKLOAD_KINDS,
    BrokerSetup,
    Churn,
    ClientSetup,
    Clusters,
    CommonKeys,
    Fault,
    FaultRates,
    FilterRouting,
    OverlayKeys,
    Reorganise,
    RunPlan,
    Scenario,
    ScenarioFile,
    WorkloadKeys,
)
from tests.harness.hostile_toml import hostile_values, is_readable
from topologies.files.typed_tables import key_names
from topologies.registry import MODELS

SECTIONS = {
    "brokers": key_names(BrokerSetup),
    "clients": key_names(ClientSetup),
    "clients.churn": key_names(Churn),
    "reorganise": key_names(Reorganise),
    "fbr": key_names(FilterRouting),
    "fault_rates": key_names(FaultRates),
    "run": key_names(RunPlan),
    "overlay": key_names(OverlayKeys),
    "overlay.clusters": key_names(Clusters),
    "workload": key_names(WorkloadKeys),
}
MAIN = [("", key) for key in key_names(ScenarioFile)]
PLACES = MAIN + [(section, key) for section, keys in SECTIONS.items() for key in keys]
PARAMETERS = [(model, key) for model, found in MODELS.items() for key in key_names(found.parameters_type)]
CONTENT = [(kind, key) for kind, parameters in WORKLOAD_KINDS.items() for key in key_names(parameters)]


def document(section: str, key: str, value: str, model: str = "random", kind: str = "stock-quotes") -> str:
    """Returns a valid scenario with one key changed."""
    tables = {
        "": {"protocols": '["d-dbr"]'},
        "overlay": {"model": f'"{model}"', "brokers": "10"},
        "workload": {"kind": f'"{kind}"', "publications": "10"},
    }
    if (section, key) in (("", "overlay"), ("", "workload")):
        del tables[key]
    tables.setdefault(section, {})[key] = value
    return "\n".join(
        (f"[{name}]\n" if name else "") + "\n".join(f"{key} = {value}" for key, value in keys.items())
        for name, keys in tables.items()
    )


def check(path: Path, text: str, key: str) -> None:
    """Loads the scenario. It must load and survive writing, or be refused with the file and the key."""
    path.write_text(text, encoding="utf-8")
    loaded = load_or_refusal(path)
    if isinstance(loaded, ScenarioError):
        assert str(loaded).startswith(str(path))
        assert key in str(loaded) or not is_readable(text)
    else:
        path.write_text(to_toml(loaded), encoding="utf-8")
        assert load(path) == loaded


def load_or_refusal(source: str | Path, overrides: dict[str, str] | None = None) -> Scenario | ScenarioError:
    try:
        return load(source, overrides)
    except ScenarioError as refusal:
        return refusal


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hostile") / "scenario.toml"


@given(st.sampled_from(PLACES), hostile_values)
def test_any_value_of_any_key_is_read_or_refused_by_its_key(path: Path, place: tuple[str, str], value: str) -> None:
    check(path, document(*place, value), place[1])


@given(st.sampled_from(key_names(Fault)), hostile_values)
def test_any_value_of_any_key_of_a_fault_is_read_or_refused_by_its_key(path: Path, key: str, value: str) -> None:
    fault = {"at_s": "1", "kind": '"crash"', "brokers": '["b001"]', key: value}
    keys = "\n".join(f"{key} = {value}" for key, value in fault.items())
    check(path, f"{document('run', 'drain_s', '1')}\n[[fault]]\n{keys}\n", f"fault.1.{key}")


@given(st.sampled_from(PARAMETERS), hostile_values)
def test_any_parameter_of_any_model_is_read_or_refused_by_its_key(
    path: Path, place: tuple[str, str], value: str
) -> None:
    model, key = place
    check(path, document("overlay", key, value, model=model), f"overlay.{key}")


@given(st.sampled_from(CONTENT), hostile_values)
def test_any_parameter_of_any_workload_is_read_or_refused_by_its_key(
    path: Path, place: tuple[str, str], value: str
) -> None:
    kind, key = place
    check(path, document("workload", key, value, kind=kind), key)


@given(st.sampled_from([*PLACES, ("", "no key")]), st.text() | st.text(st.characters(categories=["Cs", "L"])))
def test_any_text_on_the_command_line_is_read_or_refused_by_its_key(place: tuple[str, str], text: str) -> None:
    section, key = place
    loaded = load_or_refusal("line", {f"{section}.{key}" if section else key: text})
    assert isinstance(loaded, Scenario) or key in str(loaded)


def test_every_key_of_a_scenario_is_tried() -> None:
    assert {key for section, key in PLACES if not section} == {*key_names(CommonKeys), "overlay", "workload", "fault"}
    assert set(key_names(CommonKeys)) - {"name", "title", "protocols", "matcher", "advertise", "seed"} <= set(SECTIONS)
