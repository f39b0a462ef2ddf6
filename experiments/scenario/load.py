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

from collections.abc import Mapping
from importlib import resources
from pathlib import Path

from experiments.errors import ScenarioError
from experiments.scenario.clients import ClientPlan, Publisher, Subscriber, place_clients
from experiments.scenario.faults import FaultAction, FaultStep, check_fault, fault_steps
from experiments.scenario.model import (
    BrokerSetup,
    Churn,
    ClientSetup,
    Clusters,
    CommonKeys,
    Fault,
    FaultRates,
    FilterRouting,
    OverlaySetup,
    Reorganise,
    RunPlan,
    Scenario,
    ScenarioFile,
    WorkloadSetup,
)
from experiments.scenario.output import to_toml
from experiments.scenario.overlay import build_overlay, check_clusters, cores_of, metric_of, read_overlays
from experiments.scenario.overrides import Document, with_overrides
from experiments.scenario.publications import TimedPublication, publications
from experiments.scenario.workload import FILES, publishing_window_ns, read_workload
from matching import registry as indexes
from routing import registry as routers
from topologies.errors import nearest
from topologies.files.typed_tables import TableReader, key_names, parse_toml, read_text

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

NAME_LISTS = (("protocols",), ("clients", "publishers_at"), ("clients", "subscribers_at"), ("fault", "brokers"))
"""Lists of names for which a file may have a single name."""


def shipped_names() -> tuple[str, ...]:
    """The names of the scenarios that come with the package."""
    folder = resources.files("experiments.scenario") / "shipped"
    return tuple(sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml")))


def load(name_or_path: str | Path, overrides: Mapping[str, str] | None = None) -> Scenario:
    """The scenario of this name or in this file, with the values of `overrides` (see the module `overrides`).

    Paths in the scenario are relative to its folder; paths in overrides are relative to the current folder.
    """
    text, source, folder = _read_text(name_or_path)
    document = parse_toml(text, source, ScenarioError)
    override_texts = dict(overrides or {})
    reader = TableReader(source, ScenarioError, typed_keys=tuple(override_texts))
    _make_absolute(document, folder)
    document = with_overrides(document, override_texts, reader)
    _make_absolute(document, Path.cwd())
    _make_lists(document)
    return _scenario({"name": Path(source).stem, **document}, reader)


def _read_text(name_or_path: str | Path) -> tuple[str, str, Path]:
    """The text of the scenario, its name in messages, and the folder that its paths are relative to."""
    wanted = str(name_or_path)
    is_path = isinstance(name_or_path, Path) or wanted.endswith(".toml") or "/" in wanted
    if is_path:
        path = Path(wanted)
        return read_text(path, "scenario", ScenarioError), wanted, path.absolute().parent
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


def _make_lists(document: Document) -> None:
    """Replaces a single name by a list of one, where a list of names is expected."""
    for *section, name in NAME_LISTS:
        tables = document.get(section[0]) if section else document
        for table in tables if isinstance(tables, list) else [tables]:
            if isinstance(table, dict) and isinstance(table.get(name), str):
                table[name] = [table[name]]


def _scenario(document: Document, reader: TableReader) -> Scenario:
    file = reader.read(ScenarioFile, document)
    overlay, by_protocol = read_overlays(file.overlay, reader)
    for number, fault in enumerate(file.fault, start=1):
        check_fault(fault, f"fault.{number}", reader)
    scenario = Scenario(
        **{name: getattr(file, name) for name in key_names(CommonKeys)},
        overlay=overlay,
        overlay_by_protocol=by_protocol,
        workload=read_workload(file.workload, reader),
        faults=file.fault,
        source=reader.source,
    )
    _check(scenario, reader)
    return scenario


def _check(scenario: Scenario, reader: TableReader) -> None:
    """Checks conditions on several keys, and names of matchers and protocols."""
    if scenario.matcher not in indexes.names():
        raise reader.refusal("matcher", f"is {scenario.matcher!r}; {nearest(scenario.matcher, indexes.names())}")
    if not scenario.protocols or len(set(scenario.protocols)) < len(scenario.protocols):
        raise reader.refusal("protocols", f"is {list(scenario.protocols)}; it must name one or more, each once")
    for protocol in scenario.protocols:
        if protocol not in routers.names():
            raise reader.refusal("protocols", f"names {protocol!r}; {nearest(protocol, routers.names())}")
        check_clusters(scenario, protocol)
    if scenario.brokers.costs_file is not None and scenario.brokers.profile != "native":
        raise reader.refusal(
            "brokers.costs_file",
            f"is given, and brokers.profile is {scenario.brokers.profile!r}; only 'native' has one",
        )
    if scenario.advertise == "open" and scenario.clients.advertised_share < 1:
        raise reader.refusal(
            "clients.advertised_share",
            f"is {scenario.clients.advertised_share:g}, and with advertise = 'open' every broker stands for everything",
        )
