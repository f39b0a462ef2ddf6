"""Writes a scenario as TOML, with all defaults. Loading that text gives an equal scenario."""

from __future__ import annotations

from dataclasses import is_dataclass
from typing import Any

import tomli_w

from experiments.scenario.model import OverlaySetup, Scenario, WorkloadSetup
from topologies.files.toml import format_array_table
from topologies.files.typed_tables import Table, key_names

_PLAIN = ("name", "title", "protocols", "matcher", "advertise", "seed")
_SECTIONS = ("brokers", "clients", "reorganise", "fbr", "fault_rates", "run")


def to_toml(scenario: Scenario) -> str:
    document = to_document(scenario)
    faults = [format_array_table("fault", keys) for keys in document.pop("fault")]
    return "\n".join([tomli_w.dumps(document), *faults])


def to_document(scenario: Scenario) -> dict[str, Any]:
    """Returns the sections and keys of the scenario's file."""
    document: dict[str, Any] = {name: getattr(scenario, name) for name in _PLAIN}
    by_protocol = {protocol: _flat(setup) for protocol, setup in scenario.overlay_by_protocol.items()}
    document["overlay"] = {**_flat(scenario.overlay), **by_protocol}
    document["workload"] = _flat(scenario.workload)
    document |= {name: _keys(getattr(scenario, name)) for name in _SECTIONS}
    document["fault"] = [_keys(fault) for fault in scenario.faults]
    return document


def _flat(setup: OverlaySetup | WorkloadSetup) -> dict[str, Any]:
    """The setup's keys and its parameters, which share a section in a file."""
    keys = _keys(setup)
    parameters = keys.pop("parameters")
    return {**keys, **parameters}


def _keys(section: Any) -> dict[str, Any]:
    """The section's keys that have a value."""
    return {
        name: _keys(value) if isinstance(value, Table) or is_dataclass(value) else value
        for name in key_names(type(section))
        if (value := getattr(section, name)) is not None
    }
