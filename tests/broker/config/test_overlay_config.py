"""The configuration of brokers: defaults, units, and errors that name the place and the nearest key."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.config.address import Address, AddressError, parse_address
from broker.config.duration import DurationError, format_duration, parse_duration
from broker.config.overlay_config import ConfigError, OverlayConfig, read_config
from broker.core.settings import MILLISECOND, SECOND
from topologies.errors import OverlayError, OverlayFileError

GOOD = """
schema = 1
[overlay]
name = "demo"
protocol = "d-dbr"
advertise = "strict"
matcher = "pst-bloom"
metric = "latency"
[heartbeat]
every = "250ms"
dead_after = "1s"
[store]
data_dir = "data"
fsync = "checkpoint"
[delivery]
session = "2m"
when_full = "disconnect"
[limits]
attributes = 12
[reorganise]
every = "30s"
[[broker]]
id = "b1"
listen = "127.0.0.1:7001"
admin = "off"
[[broker]]
id = "b2"
listen = "0.0.0.0:7002"
address = "b2.example.org:7002"
data_dir = "/var/lib/mercast/b2"
[[link]]
between = ["b1", "b2"]
latency_ms = 2.5
"""


def read(tmp_path: Path, text: str) -> OverlayConfig:
    path = tmp_path / "overlay.toml"
    path.write_text(text)
    return read_config(path)


def test_a_file_configures_each_broker(tmp_path: Path) -> None:
    config = read(tmp_path, GOOD)
    first, second = config.broker("b1"), config.broker("b2")
    assert first.listen == Address("127.0.0.1", 7001)
    assert first.admin is None
    assert first.data_dir == tmp_path / "data" / "b1"
    (neighbour,) = first.neighbours
    assert (neighbour.id, neighbour.address, neighbour.cost) == ("b2", Address("b2.example.org", 7002), 2500)
    assert second.data_dir == Path("/var/lib/mercast/b2")
    assert second.admin == Address("127.0.0.1", 0)
    settings = first.settings()
    assert (settings.tick, settings.dead_after) == (250 * MILLISECOND, SECOND)
    assert (settings.is_durable, settings.is_open, settings.disconnects_slow) == (True, False, True)
    assert settings.reorganise_every == 30 * SECOND
    assert config.delivery.session == 120 * SECOND


def test_missing_keys_have_defaults(tmp_path: Path) -> None:
    config = read(tmp_path, 'schema = 1\n[[broker]]\nid = "b1"\nlisten = "127.0.0.1:7001"\n')
    broker = config.broker("b1")
    assert config.protocol == "d-dbr"
    assert broker.data_dir is None
    assert broker.settings().is_open
    assert broker.settings().reorganise_every == 0


def test_an_overlay_with_clusters_is_routed_by_merc(tmp_path: Path) -> None:
    text = 'schema = 1\n[[broker]]\nid = "b1"\nclusters = ["west"]\nlisten = "127.0.0.1:7001"\n'
    assert read(tmp_path, text).protocol == "merc"


WRONG = {
    "[limits]\nattribute = 3": "limits.attribute is unknown; did you mean 'attributes'?",
    "[limts]\nattributes = 3": "limts is unknown; did you mean 'limits'?",
    "[limits]\nattributes = 0": "limits.attributes is 0; it must be at least 1",
    '[heartbeat]\nevery = "fast"': "heartbeat.every: 'fast' is not a duration",
    '[heartbeat]\nevery = "0s"': "heartbeat.every: '0s' is too short; it must be longer",
    "[heartbeat]\nevery = 5": "heartbeat.every is 5; it must be text in quotes",
    '[heartbeat]\nevery = "5s"': "heartbeat.dead_after must be longer than heartbeat.every",
    '[store]\nfsync = "batched"': "store.fsync is 'batched'; did you mean 'batch'?",
    '[overlay]\nprotocol = "ddbr"': "overlay.protocol is 'ddbr'; did you mean 'd-dbr'?",
    '[overlay]\nprotocol = "merc"': "overlay.protocol is 'merc'; merc routes by clusters and no broker is in one",
    '[overlay]\nprotocol = "d-dbr"\ncovering = true': "overlay.covering is no option of protocol d-dbr",
    '[overlay]\nmatcher = "pst-blom"': "overlay.matcher is 'pst-blom'; did you mean 'pst-bloom'?",
    "[limits]\nsessions = 0": "limits.sessions is 0; it must be at least 1",
    "[limits]\nsessions = 999": "limits.sessions is 999; it must not be less than connections (1000)",
    "[limits]\nframe_bytes = 2000": "limits.frame_bytes is 2000; it must exceed publication_bytes (524288) by",
}


@pytest.mark.parametrize("addition", WRONG)
def test_a_mistake_is_named_with_its_place(tmp_path: Path, addition: str) -> None:
    text = f'schema = 1\n{addition}\n[[broker]]\nid = "b1"\nlisten = "127.0.0.1:7001"\n'
    with pytest.raises((ConfigError, OverlayFileError)) as error:
        read(tmp_path, text)
    assert WRONG[addition] in str(error.value)
    assert "overlay.toml" in str(error.value)
    assert getattr(error.value, "exit_code", None) == 3


def test_an_address_is_used_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"broker\.b1\.admin is '127.0.0.1:7001', taken by listen of broker b1"):
        read(tmp_path, GOOD.replace('admin = "off"', 'admin = "127.0.0.1:7001"'))


def test_a_broker_must_listen_somewhere_and_be_in_the_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="broker b1 has no address; add listen"):
        read(tmp_path, 'schema = 1\n[[broker]]\nid = "b1"\n').broker("b1")
    with pytest.raises(OverlayError, match="no broker 'b3'"):
        read(tmp_path, GOOD).broker("b3")


@pytest.mark.parametrize(
    ("text", "ns"),
    [("500ms", 500 * MILLISECOND), ("20s", 20 * SECOND), ("1.5m", 90 * SECOND), ("0s", 0), ("3us", 3000)],
)
def test_durations_are_read_and_written(text: str, ns: int) -> None:
    assert parse_duration(text) == ns
    assert parse_duration(format_duration(ns)) == ns


@pytest.mark.parametrize("text", ["", "5", "s", "-1s", "1 parsec", "1e3s", "9" * 400 + "h"])
def test_an_invalid_duration_is_refused(text: str) -> None:
    with pytest.raises(DurationError, match=r"is not a duration|is too long"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["127.0.0.1:7001", "[::1]:7001", "broker.example.org:80", "localhost:0"])
def test_addresses_are_read_and_written(text: str) -> None:
    assert str(parse_address(text)) == text


@pytest.mark.parametrize(
    "text", ["", ":1", "host", "host:", "host:x", "::1:7", "host:70000", "[::1]", "[host]:5x", "h:" + "9" * 5000]
)
def test_an_invalid_address_is_refused(text: str) -> None:
    with pytest.raises(AddressError):
        parse_address(text)


@pytest.mark.parametrize(
    ("text", "is_loopback"), [("127.0.0.1:1", True), ("localhost:1", True), ("[::1]:1", True), ("0.0.0.0:1", False)]
)
def test_loopback_is_recognised(text: str, is_loopback: bool) -> None:
    assert parse_address(text).is_loopback is is_loopback
