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
modules read (SettingsOfOthers, BrokerKeysOfOthers, TablesOfOthers) unchanged. It refuses any other key, so that a
misspelt key is not ignored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time
from pathlib import Path
from typing import Annotated, Any, Literal

import tomli_w

from topologies.broker_and_link import Broker, Link
from topologies.clustering.clusters import join_unshared_links
from topologies.errors import OverlayError, OverlayFileError
from topologies.files.typed_tables import (
    Count,
    Finite,
    Number,
    Positive,
    Table,
    TableReader,
    expecting,
    key_names,
    parse_toml,
    read_text,
)
from topologies.overlay import Overlay

SCHEMA = 1

TomlValue = str | bool | int | float | datetime | date | time | Sequence["TomlValue"] | Mapping[str, "TomlValue"]
_TableOfOthers = dict[str, Any] | None


class SettingsOfOthers(Table, frozen=True, kw_only=True):
    """The keys of [overlay] that other modules read."""

    protocol: Any = None
    advertise: Any = None
    matcher: Any = None
    metric: Any = None
    readvertise: Any = None
    covering: Any = None


class BrokerKeysOfOthers(Table, frozen=True, kw_only=True):
    """The keys of [[broker]] that other modules read."""

    listen: Any = None
    address: Any = None
    admin: Any = None
    mqtt: Any = None
    data_dir: Any = None
    cores: Any = None


class TablesOfOthers(Table, frozen=True, kw_only=True):
    """The tables that other modules read."""

    heartbeat: _TableOfOthers = None
    store: _TableOfOthers = None
    delivery: _TableOfOthers = None
    limits: _TableOfOthers = None
    reorganise: _TableOfOthers = None
    mqtt: _TableOfOthers = None
    tls: _TableOfOthers = None
    acl: _TableOfOthers = None
    admin: _TableOfOthers = None


class OverlayKeys(SettingsOfOthers, frozen=True, kw_only=True):
    name: str = "overlay"
    unshared_links: Literal["refuse", "join"] = "refuse"


class BrokerKeys(BrokerKeysOfOthers, frozen=True, kw_only=True):
    id: str
    clusters: Annotated[tuple[str, ...], expecting('a list of names, for example ["west"]')] = ()
    edge: bool | None = None
    position: Annotated[tuple[Finite, Finite] | None, expecting("two numbers, for example [10.0, 4.5]")] = None
    label: str | None = None


class LinkKeys(Table, frozen=True, kw_only=True):
    between: Annotated[tuple[str, str], expecting('the ids of two brokers, for example ["b1", "b2"]')]
    latency_ms: Number = 1.0
    bandwidth_mbit: Positive | None = None
    policy_weight: Count | None = None


class OverlayDocument(TablesOfOthers, frozen=True, kw_only=True):
    schema: Annotated[Literal[1], expecting("1, at the top of the file")]
    overlay: OverlayKeys = OverlayKeys()
    broker: tuple[BrokerKeys, ...] = ()
    link: tuple[LinkKeys, ...] = ()


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
    text = read_text(path, "overlay file", OverlayFileError)
    return parse_overlay(text, str(path), join_links=join_links, drop_clusters=drop_clusters)


def parse_overlay(text: str, where: str, *, join_links: bool = False, drop_clusters: bool = False) -> OverlayFile:
    """Reads an overlay from TOML text. `where` names its origin in errors."""
    document = parse_toml(text, where, OverlayFileError)
    keys = TableReader(where, OverlayFileError).read(OverlayDocument, document)
    brokers = tuple(Broker(each.id, each.clusters, each.position, each.label, each.edge) for each in keys.broker)
    links = tuple(Link(*each.between, each.latency_ms, each.bandwidth_mbit, each.policy_weight) for each in keys.link)
    try:
        if drop_clusters:
            brokers = tuple(Broker(broker.id, (), broker.position, broker.label) for broker in brokers)
        elif join_links or keys.overlay.unshared_links == "join":
            brokers = join_unshared_links(brokers, links)
        overlay = Overlay(keys.overlay.name, brokers, links)
    except OverlayError as error:
        raise OverlayError(f"{where}: {error}") from error
    settings = [_keys_of(BrokerKeysOfOthers, table) for table in document.get("broker", [])]
    return OverlayFile(
        overlay,
        _keys_of(SettingsOfOthers, document.get("overlay", {})),
        {broker.id: own for broker, own in zip(brokers, settings, strict=True) if own},
        _keys_of(TablesOfOthers, document),
    )


def _keys_of(table_type: type[Table], table: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the table's keys that the struct declares, unchanged and in the order of the file."""
    names = key_names(table_type)
    return {name: value for name, value in table.items() if name in names}


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
