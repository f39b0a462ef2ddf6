"""Writes a scenario as TOML, with all defaults. Loading that text gives an equal scenario."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from experiments.scenario.model import OverlaySetup, Scenario, WorkloadSetup
from topologies.files.toml_writer import toml_line

_PLAIN = ("name", "title", "protocols", "matcher", "advertise", "seed")
_SECTIONS = ("brokers", "clients", "reorganise", "fbr", "fault_rates", "run")


def to_toml(scenario: Scenario) -> str:
    lines = [toml_line(name, getattr(scenario, name)) for name in _PLAIN]
    lines += _section("overlay", _flat(scenario.overlay))
    for protocol, setup in scenario.overlay_by_protocol.items():
        lines += _section(f"overlay.{protocol}", _flat(setup))
    lines += _section("workload", _flat(scenario.workload))
    for name in _SECTIONS:
        lines += _section(name, _keys(getattr(scenario, name)))
    for fault in scenario.faults:
        lines += ["", "[[fault]]", *_lines(_keys(fault))]
    return "\n".join(lines) + "\n"


def _section(name: str, keys: Mapping[str, Any]) -> list[str]:
    return ["", f"[{name}]", *_lines(keys)]


def _lines(keys: Mapping[str, Any]) -> list[str]:
    return [toml_line(key, value) for key, value in keys.items()]


def _flat(setup: OverlaySetup | WorkloadSetup) -> dict[str, Any]:
    """The setup's keys and its parameters, which share a section in a file."""
    keys = _keys(setup)
    parameters = keys.pop("parameters")
    return {**keys, **parameters}


def _keys(section: Any) -> dict[str, Any]:
    """The section's keys that have a value."""
    return {
        field.name: _keys(value) if dataclasses.is_dataclass(value) else value
        for field in dataclasses.fields(section)
        if (value := getattr(section, field.name)) is not None
    }
