"""Loads scenarios by name or by path.

    scenario = load("gtitm-20", {"workload.rate": "3000"})
    overlay = build_overlay(scenario, "merc")
    plan = place_clients(scenario, overlay)
    for publication in publications(scenario, plan): …

The scenarios that come with the package are in the folder `shipped`. Sections and keys of a file are the classes and
fields of `model`, which explains each of them. An invalid scenario raises `ScenarioError`, which names the file and the
key.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

from experiments.errors import ScenarioError
from experiments.scenario.clients import ClientPlan, Publisher, Subscriber, place_clients
from experiments.scenario.faults import FaultAction, FaultStep, fault_steps, read_fault
from experiments.scenario.model import (
    BrokerSetup,
    Churn,
    ClientSetup,
    Clusters,
    Fault,
    FaultRates,
    FilterRouting,
    OverlaySetup,
    Reorganise,
    RunPlan,
    Scenario,
    WorkloadSetup,
)
from experiments.scenario.output import to_toml
from experiments.scenario.overlay import build_overlay, check_clusters, cores_of, metric_of, read_overlays
from experiments.scenario.overrides import Document, with_overrides
from experiments.scenario.publications import TimedPublication, publications
from experiments.scenario.table import Origin, Table
from experiments.scenario.workload import FILES, publishing_window_ns, read_workload
from matching import registry as indexes
from routing import registry as routers
from topologies.errors import nearest

__all__ = [
    "BrokerSetup",
    "Churn",
    "ClientPlan",
    "ClientSetup",
    "Clusters",
    "Fault",
    "FaultAction",
    "FaultRates",
    "FaultStep",
    "FilterRouting",
    "OverlaySetup",
    "Publisher",
    "Reorganise",
    "RunPlan",
    "Scenario",
    "ScenarioError",
    "Subscriber",
    "TimedPublication",
    "WorkloadSetup",
    "build_overlay",
    "cores_of",
    "fault_steps",
    "load",
    "metric_of",
    "place_clients",
    "publications",
    "publishing_window_ns",
    "shipped_names",
    "to_toml",
]

_PLAIN = ("name", "title", "protocols", "matcher", "advertise", "seed")
_SECTIONS = {
    "brokers": BrokerSetup,
    "clients": ClientSetup,
    "reorganise": Reorganise,
    "fbr": FilterRouting,
    "fault_rates": FaultRates,
    "run": RunPlan,
}
_OWN_READERS = ("overlay", "workload", "fault")


def shipped_names() -> tuple[str, ...]:
    """The names of the scenarios that come with the package."""
    folder = resources.files("experiments.scenario") / "shipped"
    return tuple(sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml")))


def load(name_or_path: str | Path, overrides: Mapping[str, str] | None = None) -> Scenario:
    """The scenario of this name or in this file, with the values of `overrides` (see the module `overrides`).

    Paths in the scenario are relative to its folder; paths in overrides are relative to the current folder.
    """
    text, source, folder = _read_text(name_or_path)
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(f"{source} is not TOML: {error}") from error
    override_texts = dict(overrides or {})
    origin = Origin(source, tuple(override_texts))
    _make_absolute(document, folder)
    document = with_overrides(document, override_texts, origin)
    _make_absolute(document, Path.cwd())
    return _scenario(Table(document, "", origin), source)


def _read_text(name_or_path: str | Path) -> tuple[str, str, Path]:
    """The text of the scenario, its name in messages, and the folder that its paths are relative to."""
    wanted = str(name_or_path)
    is_path = isinstance(name_or_path, Path) or wanted.endswith(".toml") or "/" in wanted
    if is_path:
        path = Path(wanted)
        try:
            return path.read_text(encoding="utf-8"), wanted, path.absolute().parent
        except OSError as error:
            raise ScenarioError(f"cannot read scenario {wanted}: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise ScenarioError(f"scenario {wanted} is not UTF-8 text: {error.reason}") from error
    if wanted not in shipped_names():
        raise ScenarioError(
            f"no scenario is called {wanted!r} (for a file, give its path, as ./my.toml); "
            f"{nearest(wanted, shipped_names())}"
        )
    text = (resources.files("experiments.scenario") / "shipped" / f"{wanted}.toml").read_text(encoding="utf-8")
    return text, wanted, Path.cwd()


def _make_absolute(document: Document, folder: Path) -> None:
    """Makes the relative paths of the document absolute."""
    overlay, workload = document.get("overlay"), document.get("workload")
    places: list[tuple[object, str]] = [(workload, name) for name in FILES]
    places.append((document.get("brokers"), "costs_file"))
    if isinstance(overlay, dict):
        places += [(table, "file") for table in (overlay, *(overlay.get(name) for name in routers.names()))]
    for table, name in places:
        if isinstance(table, dict) and isinstance(path := table.get(name), str) and path:
            table[name] = str(folder / path)


def _scenario(table: Table, source: str) -> Scenario:
    table.check_keys((*_PLAIN, *_OWN_READERS, *_SECTIONS))
    plain = {"name": Path(source).stem, **table.fields(Scenario, [name for name in _PLAIN if name in table.values])}
    overlay, by_protocol = read_overlays(table.table("overlay"))
    scenario = Scenario(
        **plain,
        overlay=overlay,
        overlay_by_protocol=by_protocol,
        workload=read_workload(table.table("workload")),
        faults=tuple(read_fault(fault) for fault in table.tables("fault")),
        **{name: table.table(name).read(section_type) for name, section_type in _SECTIONS.items()},
        source=source,
    )
    _check(scenario, table)
    return scenario


def _check(scenario: Scenario, table: Table) -> None:
    """Checks conditions on several keys, and names of matchers and protocols."""
    if scenario.matcher not in indexes.names():
        raise table.refusal("matcher", f"is {scenario.matcher!r}; {nearest(scenario.matcher, indexes.names())}")
    if not scenario.protocols or len(set(scenario.protocols)) < len(scenario.protocols):
        raise table.refusal("protocols", f"is {list(scenario.protocols)}; it must name one or more, each once")
    for protocol in scenario.protocols:
        if protocol not in routers.names():
            raise table.refusal("protocols", f"names {protocol!r}; {nearest(protocol, routers.names())}")
        check_clusters(scenario, protocol)
    if scenario.brokers.costs_file is not None and scenario.brokers.profile != "native":
        raise table.refusal(
            "brokers.costs_file",
            f"is given, and brokers.profile is {scenario.brokers.profile!r}; only 'native' has one",
        )
    if scenario.advertise == "open" and scenario.clients.advertised_share < 1:
        raise table.refusal(
            "clients.advertised_share",
            f"is {scenario.clients.advertised_share:g}, and with advertise = 'open' every broker stands for everything",
        )
