"""Any value in any key of an overlay file, an access list or a cost file is read or refused with file and key."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.config.gateway_config import GatewayTable
from broker.config.overlay_config import ConfigError, read_config
from broker.config.tables import (
    AdminTable,
    BrokerTable,
    DeliveryTable,
    HeartbeatTable,
    LimitsTable,
    OverlayTable,
    ReorganiseTable,
    StoreTable,
)
from broker.security.access import Rule, read_access_list
from broker.security.security_config import AclTable, TlsTable, load_security
from broker.simulation.cost_file import CostFileError, FrameCosts, IndexCosts, read_costs
from tests.harness.hostile_toml import hostile_values, is_readable
from topologies.errors import OverlayError, TopologyError
from topologies.files.toml import BrokerKeys, LinkKeys, OverlayDocument, OverlayKeys, TablesOfOthers
from topologies.files.typed_tables import Table, key_names

TABLES: dict[str, type[Table]] = {
    "heartbeat": HeartbeatTable,
    "store": StoreTable,
    "delivery": DeliveryTable,
    "limits": LimitsTable,
    "reorganise": ReorganiseTable,
    "mqtt": GatewayTable,
    "tls": TlsTable,
    "acl": AclTable,
    "admin": AdminTable,
    "overlay": OverlayKeys,
    "broker": BrokerKeys,
    "link": LinkKeys,
}
PLACES = [("", key) for key in key_names(OverlayDocument)]
PLACES += [(name, key) for name, table in TABLES.items() for key in key_names(table)]
CHECKED_TOGETHER = ("id", "clusters", "edge", "between", "broker", "link")
"""Keys whose values are checked together. The error names brokers and links."""


def document(section: str, key: str, value: str) -> str:
    """Returns a valid overlay file with one key changed."""
    tables = {
        "": {"schema": "1"},
        "overlay": {"name": '"demo"'},
        "broker": {"id": '"b1"', "listen": '"127.0.0.1:7001"', "mqtt": '"127.0.0.1:1883"'},
        "broker ": {"id": '"b2"'},
        "link": {"between": '["b1", "b2"]'},
    }
    if not section:
        tables = {name: keys for name, keys in tables.items() if name.strip() != key}
    tables.setdefault(section, {})[key] = value
    heads = {"": "", "broker": "[[broker]]", "broker ": "[[broker]]", "link": "[[link]]"}
    return "\n".join(
        "\n".join([heads.get(name, f"[{name}]"), *(f"{key} = {value}" for key, value in keys.items())])
        for name, keys in tables.items()
    )


def check(path: Path, text: str, key: str, read: Callable[[Path], object]) -> None:
    """Reads the file. It must be read, or be refused with its path and the key."""
    path.write_text(text, encoding="utf-8")
    refusal = refusal_of(path, read)
    if refusal is not None:
        names_key = key in str(refusal) or not is_readable(text)
        assert names_key or (isinstance(refusal, OverlayError) and key in CHECKED_TOGETHER)
        assert str(path) in str(refusal)
        assert refusal.exit_code == 3


def refusal_of(path: Path, read: Callable[[Path], object]) -> ConfigError | TopologyError | CostFileError | None:
    try:
        read(path)
    except (ConfigError, TopologyError, CostFileError) as refusal:
        return refusal
    return None


def read_all(path: Path) -> None:
    config = read_config(path)
    for broker in config.overlay.ids:
        if config.brokers[broker].listen is not None:
            load_security(config.broker(broker))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hostile") / "overlay.toml"


@given(st.sampled_from(PLACES), hostile_values)
def test_any_value_of_an_overlay_file_is_read_or_refused_by_its_key(
    path: Path, place: tuple[str, str], value: str
) -> None:
    section, key = place
    # Files that a security table names are missing here. The error names the table.
    check(path, document(section, key, value), section if section in ("tls", "acl") else key, read_all)


@given(st.sampled_from(key_names(GatewayTable)), hostile_values)
def test_any_value_of_a_gateway_is_read_or_refused_by_its_key(path: Path, key: str, value: str) -> None:
    check(path, document("broker", "mqtt", f"{{{key} = {value}}}"), key, read_config)


@given(st.sampled_from(key_names(Rule)), hostile_values)
def test_any_value_of_an_access_list_is_read_or_refused_by_its_key(path: Path, key: str, value: str) -> None:
    keys = {"name": '"*"', "anonymous": "true", key: value}
    text = "[[client]]\n" + "\n".join(f"{key} = {value}" for key, value in keys.items())
    check(path, text, "client.1", read_access_list)


@given(st.sampled_from([("frames", *key_names(FrameCosts)), ("index.auto", *key_names(IndexCosts))]), hostile_values)
def test_any_value_of_a_cost_file_is_read_or_refused_by_its_key(path: Path, place: tuple[str, ...], value: str) -> None:
    section, key, *_ = place
    tables = {
        "frames": {"in_ns": "1", "out_ns": "1"},
        "index.auto": {"asked_ns": "1", "stored_ns": "1", "matched_ns": "1"},
        "machine": {},
    }
    tables[section][key] = value
    text = "\n".join(
        "\n".join([f"[{name}]", *(f"{key} = {value}" for key, value in keys.items())]) for name, keys in tables.items()
    )
    check(path, text, f"{section}.{key}", read_costs)


def test_the_keys_that_topologies_leaves_to_others_are_the_ones_that_they_read() -> None:
    assert set(key_names(OverlayTable)) == set(key_names(OverlayKeys)) - {"name", "unshared_links"}
    assert set(key_names(BrokerTable)) == set(key_names(BrokerKeys)) - {"id", "clusters", "edge", "position", "label"}
    assert set(key_names(TablesOfOthers)) == set(TABLES) - {"overlay", "broker", "link"}
