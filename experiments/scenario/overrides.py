"""`--set workload.rate=3000`: values from the command line that replace values of a scenario file.

A value is read as TOML (`3000`, `[1, 2]`, `{size = 10}`), and as plain text if it is not TOML, so that text needs no
quotes. An empty value removes the key, which restores its default. Setting one of two keys that exclude each other
removes the other. Setting another model or kind of workload removes the parameters that it does not have.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping

from experiments.scenario.model import WORKLOAD_KINDS, OverlayKeys
from topologies.files.typed_tables import TableReader, key_names, parse_toml
from topologies.registry import MODELS

Document = dict[str, object]
EXCLUDING = {"publications": "duration_s", "duration_s": "publications"}
OVERLAY_NAMES = key_names(OverlayKeys)


def with_overrides(document: Mapping[str, object], overrides: Mapping[str, str], reader: TableReader) -> Document:
    result = copy.deepcopy(dict(document))
    for key, text in overrides.items():
        reader.check_unicode(key, text)
        *path, name = key.split(".")
        if not name or not all(path):
            raise reader.refusal(key, "is no key; write section.key=value, as --set workload.rate=3000")
        table = _table_at(result, path, reader)
        table.pop(name, None)
        if text.strip():
            _remove_excluded(table, path, name, _value(text))
            table[name] = _value(text)
    return result


def _table_at(document: Document, path: list[str], reader: TableReader) -> Document:
    table = document
    for depth, name in enumerate(path, start=1):
        inner = table.setdefault(name, {})
        if not isinstance(inner, dict):
            raise reader.refusal(".".join(path[:depth]), "is not a table, so it has no keys to set")
        table = inner
    return table


def _value(text: str) -> object:
    try:
        document = parse_toml(f"value = {text}", "--set", ValueError)
    except ValueError:
        return text
    return document["value"] if len(document) == 1 else text


def _remove_excluded(table: Document, path: list[str], name: str, value: object) -> None:
    """Removes keys that the new value excludes."""
    section = path[0] if path else ""
    if section == "workload" and name in EXCLUDING:
        table.pop(EXCLUDING[name], None)
    elif section == "workload" and name == "kind" and value in WORKLOAD_KINDS:
        others = {other for kind in WORKLOAD_KINDS.values() for other in key_names(kind)}
        _remove_keys(table, others - set(key_names(WORKLOAD_KINDS[str(value)])))
    elif section == "overlay" and name == "file":
        _remove_keys(table, {"model"} | {parameter for model in MODELS for parameter in parameter_names(model)})
    elif section == "overlay" and name == "model" and value in MODELS:
        others = {parameter for model in MODELS for parameter in parameter_names(model)}
        _remove_keys(table, {"file"} | others - set(parameter_names(str(value))))


def _remove_keys(table: Document, names: set[str]) -> None:
    for name in [name for name in table if name in names]:
        del table[name]


def parameter_names(model: str) -> tuple[str, ...]:
    """The model's own keys, without keys of every overlay such as `latency_ms`."""
    return tuple(name for name in key_names(MODELS[model].parameters_type) if name not in OVERLAY_NAMES)
