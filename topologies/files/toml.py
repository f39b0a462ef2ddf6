"""Overlays as TOML files. Simulation and deployment use the same file.

    schema = 1
    [overlay]
    name = "demo"
    [[broker]]
    id = "b1"
    clusters = ["west"]
    [[link]]
    between = ["b1", "b2"]
    latency_ms = 2.0

This module reads and writes brokers' ids, clusters, positions and labels, and links. It keeps the keys that other
modules own (OVERLAY_KEYS_OF_OTHERS, BROKER_KEYS_OF_OTHERS, TABLES_OF_OTHERS) unchanged. It refuses any other key, so
that a misspelt key is not ignored.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time
from pathlib import Path

import tomli_w

from topologies.broker_and_link import Broker, Link
from topologies.clustering.clusters import join_unshared_links
from topologies.errors import OverlayError, OverlayFileError, nearest
from topologies.overlay import Overlay

SCHEMA = 1
TOP_KEYS = ("schema", "overlay", "broker", "link")
OVERLAY_KEYS = ("name", "unshared_links")
OVERLAY_KEYS_OF_OTHERS = ("protocol", "advertise", "matcher", "metric", "readvertise", "covering")
BROKER_KEYS = ("id", "clusters", "edge", "position", "label")
BROKER_KEYS_OF_OTHERS = ("listen", "address", "admin", "mqtt", "data_dir", "cores")
TABLES_OF_OTHERS = ("heartbeat", "store", "delivery", "limits", "reorganise", "mqtt", "tls", "acl")
LINK_KEYS = ("between", "latency_ms", "bandwidth_mbit", "policy_weight")
UNSHARED_LINKS = ("refuse", "join")

TomlValue = str | bool | int | float | datetime | date | time | Sequence["TomlValue"] | Mapping[str, "TomlValue"]
_Table = Mapping[str, TomlValue]


@dataclass(frozen=True, slots=True)
class OverlayFile:
    """The content of an overlay file: the overlay, and the keys of [overlay] and [[broker]] and the tables that other
    modules own."""

    overlay: Overlay
    settings: Mapping[str, TomlValue] = field(default_factory=dict)
    broker_settings: Mapping[str, Mapping[str, TomlValue]] = field(default_factory=dict)
    tables: Mapping[str, Mapping[str, TomlValue]] = field(default_factory=dict)


def read_overlay_file(path: Path, *, join_links: bool = False, drop_clusters: bool = False) -> OverlayFile:
    """Reads an overlay file.

    `join_links` has the effect of `unshared_links = "join"` in the file. `drop_clusters` ignores the file's clusters.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise OverlayFileError(f"cannot read overlay file {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise OverlayFileError(f"overlay file {path} is not UTF-8 text: {error.reason}") from error
    return parse_overlay(text, str(path), join_links=join_links, drop_clusters=drop_clusters)


def parse_overlay(text: str, where: str, *, join_links: bool = False, drop_clusters: bool = False) -> OverlayFile:
    """Reads an overlay from TOML text. `where` names its origin in errors."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise OverlayFileError(f"{where} is not TOML: {error}") from error
    try:
        return _overlay_file(document, join_links, drop_clusters)
    except (OverlayError, OverlayFileError) as error:
        raise type(error)(f"{where}: {error}") from error


def format_overlay(file: OverlayFile) -> str:
    """Returns the file's text. Reading it gives an equal overlay and equal settings."""
    overlay = file.overlay
    head = {"schema": SCHEMA, "overlay": {"name": overlay.name, **file.settings}, **file.tables}
    texts = [tomli_w.dumps(head)]
    for broker in overlay.brokers:
        keys: dict[str, TomlValue | None] = {
            "id": broker.id,
            "clusters": broker.clusters or None,
            "edge": broker.edge,
            "position": broker.position,
            "label": broker.label,
            **file.broker_settings.get(broker.id, {}),
        }
        texts.append(format_array_table("broker", keys))
    for link in overlay.links:
        keys = {
            "between": link.ends,
            "latency_ms": float(link.latency_ms),
            "bandwidth_mbit": link.bandwidth_mbit,
            "policy_weight": link.policy_weight,
        }
        texts.append(format_array_table("link", keys))
    return "\n".join(texts)


def format_array_table(name: str, keys: Mapping[str, TomlValue | None]) -> str:
    """Returns the text of one [[name]] table, without the keys whose value is None.

    tomli-w writes an array of short tables inline. A user could not add another [[name]] table to that.
    """
    table = {key: value for key, value in keys.items() if value is not None}
    return f"[[{name}]]\n" + tomli_w.dumps({name: table}).removeprefix(f"[{name}]\n")


def write_overlay_file(path: Path, file: OverlayFile) -> None:
    """Writes an overlay file."""
    try:
        path.write_text(format_overlay(file), encoding="utf-8")
    except OSError as error:
        raise OverlayFileError(f"cannot write overlay file {path}: {error.strerror}") from error


def _overlay_file(document: _Table, join_links: bool, drop_clusters: bool) -> OverlayFile:
    _check_keys(document, TOP_KEYS + TABLES_OF_OTHERS, "the file", "table")
    if document.get("schema") != SCHEMA:
        found = f"not {document['schema']!r}" if "schema" in document else "and there is none"
        raise OverlayFileError(f"the file must say schema = {SCHEMA} at its top, {found}")
    head = document.get("overlay", {})
    if not isinstance(head, Mapping):
        raise OverlayFileError("[overlay] must be a table")
    _check_keys(head, OVERLAY_KEYS + OVERLAY_KEYS_OF_OTHERS, "[overlay]", "key")
    name = _text(head.get("name", "overlay"), "[overlay] name")
    unshared = _text(head.get("unshared_links", "refuse"), "[overlay] unshared_links")
    if unshared not in UNSHARED_LINKS:
        raise OverlayFileError(f"[overlay] unshared_links is {unshared!r}; {nearest(unshared, UNSHARED_LINKS)}")
    tables = list(_tables(document, "broker"))
    brokers = tuple(_broker(table, place) for place, table in tables)
    links = tuple(_link(table, place) for place, table in _tables(document, "link"))
    if drop_clusters:
        brokers = tuple(Broker(broker.id, (), broker.position, broker.label) for broker in brokers)
    elif join_links or unshared == "join":
        brokers = join_unshared_links(brokers, links)
    settings = {key: value for key, value in head.items() if key in OVERLAY_KEYS_OF_OTHERS}
    broker_settings: dict[str, _Table] = {}
    for broker, (_, table) in zip(brokers, tables, strict=True):
        others = {key: value for key, value in table.items() if key in BROKER_KEYS_OF_OTHERS}
        if others:
            broker_settings[broker.id] = others
    return OverlayFile(Overlay(name, brokers, links), settings, broker_settings, _tables_of_others(document))


def _tables_of_others(document: _Table) -> dict[str, _Table]:
    tables: dict[str, _Table] = {}
    for name in TABLES_OF_OTHERS:
        table = document.get(name, {})
        if not isinstance(table, Mapping):
            raise OverlayFileError(f"[{name}] must be a table")
        if name in document:
            tables[name] = table
    return tables


def _tables(document: _Table, key: str) -> Iterable[tuple[str, _Table]]:
    tables = document.get(key, [])
    if not isinstance(tables, list):
        raise OverlayFileError(f"{key} must be a list of tables; write [[{key}]] above each")
    for number, table in enumerate(tables, start=1):
        if not isinstance(table, Mapping):
            raise OverlayFileError(f"{key} must be a list of tables; write [[{key}]] above each")
        yield f"[[{key}]] number {number}", table


def _broker(table: _Table, place: str) -> Broker:
    if isinstance(table.get("id"), str):
        place += f" ({table['id']})"
    _check_keys(table, BROKER_KEYS + BROKER_KEYS_OF_OTHERS, place, "key")
    if "id" not in table:
        raise OverlayFileError(f"{place} has no id")
    clusters = table.get("clusters", [])
    if not isinstance(clusters, list):
        raise OverlayFileError(f'{place}: clusters must be a list of names, for example clusters = ["west"]')
    edge = table.get("edge")
    if edge is not None and not isinstance(edge, bool):
        raise OverlayFileError(f"{place}: edge must be true or false, not {edge!r}")
    return Broker(
        id=_text(table["id"], f"{place}: id"),
        clusters=tuple(_text(cluster, f"{place}: clusters") for cluster in clusters),
        position=_position(table["position"], place) if "position" in table else None,
        label=_text(table["label"], f"{place}: label") if "label" in table else None,
        edge=edge,
    )


def _link(table: _Table, place: str) -> Link:
    _check_keys(table, LINK_KEYS, place, "key")
    between = table.get("between")
    if not isinstance(between, list) or len(between) != 2:
        raise OverlayFileError(f'{place} must say which two brokers it joins, for example between = ["b1", "b2"]')
    a, b = (_text(end, f"{place}: between") for end in between)
    place += f" ({a}-{b})"
    weight = table.get("policy_weight")
    if weight is not None and (isinstance(weight, bool) or not isinstance(weight, int)):
        raise OverlayFileError(f"{place}: policy_weight must be a whole number, not {weight!r}")
    return Link(
        a,
        b,
        latency_ms=_number(table.get("latency_ms", 1.0), f"{place}: latency_ms"),
        bandwidth_mbit=_number(table["bandwidth_mbit"], f"{place}: bandwidth_mbit")
        if "bandwidth_mbit" in table
        else None,
        policy_weight=weight,
    )


def _check_keys(table: _Table, known: tuple[str, ...], place: str, what: str) -> None:
    for key in table:
        if key not in known:
            raise OverlayFileError(f"{place} has an unknown {what} {key!r}; {nearest(key, known)}")


def _text(value: TomlValue, place: str) -> str:
    if not isinstance(value, str):
        raise OverlayFileError(f"{place} must be text in quotes, not {value!r}")
    return value


def _number(value: TomlValue, place: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise OverlayFileError(f"{place} must be a number, not {value!r}")
    return float(value)


def _position(value: TomlValue, place: str) -> tuple[float, float]:
    if not isinstance(value, list) or len(value) != 2:
        raise OverlayFileError(f"{place}: position must be two numbers, for example position = [10.0, 4.5]")
    x, y = (_number(number, f"{place}: position") for number in value)
    return x, y
