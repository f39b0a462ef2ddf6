"""`--set workload.rate=3000`: values typed on the command line, put over what a scenario file says.

A value is read as TOML (`3000`, `[1, 2]`, `{size = 10}`), and as plain text if it is not TOML, so that text needs no
quotes. An empty value takes the key out, back to its default. Who sets one of two keys that exclude each other means
it instead of the other; who sets another model or another kind of workload leaves behind the parameters that it does
not have.
"""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Mapping

from experiments.scenario.model import WORKLOAD_KINDS, OverlaySetup
from experiments.scenario.table import Origin, names_of
from topologies.registry import MODELS

Document = dict[str, object]
EXCLUDING = {"publications": "duration_s", "duration_s": "publications"}
OVERLAY_NAMES = tuple(name for name in names_of(OverlaySetup) if name != "parameters")


def with_overrides(document: Mapping[str, object], overrides: Mapping[str, str], origin: Origin) -> Document:
    result = copy.deepcopy(dict(document))
    for key, text in overrides.items():
        *path, name = key.split(".")
        if not name or not all(path):
            raise origin.refusal(key, "is no key; write section.key=value, as --set workload.rate=3000")
        table = _table_at(result, path, origin)
        table.pop(name, None)
        if text.strip():
            _make_room(table, path, name, _value(text))
            table[name] = _value(text)
    return result


def _table_at(document: Document, path: list[str], origin: Origin) -> Document:
    table = document
    for depth, name in enumerate(path, start=1):
        inner = table.setdefault(name, {})
        if not isinstance(inner, dict):
            raise origin.refusal(".".join(path[:depth]), "is not a table, so it has no keys to set")
        table = inner
    return table


def _value(text: str) -> object:
    try:
        document = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    return document["value"] if len(document) == 1 else text


def _make_room(table: Document, path: list[str], name: str, value: object) -> None:
    """Take out what the new value excludes."""
    section = path[0] if path else ""
    if section == "workload" and name in EXCLUDING:
        table.pop(EXCLUDING[name], None)
    elif section == "workload" and name == "kind" and value in WORKLOAD_KINDS:
        others = {other for kind in WORKLOAD_KINDS.values() for other in names_of(kind)}
        _take_out(table, others - set(names_of(WORKLOAD_KINDS[str(value)])))
    elif section == "overlay" and name == "file":
        _take_out(table, {"model"} | {parameter for model in MODELS for parameter in parameter_names(model)})
    elif section == "overlay" and name == "model" and value in MODELS:
        others = {parameter for model in MODELS for parameter in parameter_names(model)}
        _take_out(table, {"file"} | others - set(parameter_names(str(value))))


def _take_out(table: Document, names: set[str]) -> None:
    for name in [name for name in table if name in names]:
        del table[name]


def parameter_names(model: str) -> tuple[str, ...]:
    """The model's keys. `latency_ms` is none of them: it is a key of every overlay."""
    return tuple(parameter.name for parameter in MODELS[model].parameters if parameter.name not in OVERLAY_NAMES)
