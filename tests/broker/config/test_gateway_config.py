"""The configuration of gateways: valid tables are read, and every mistake is refused with the name of its key."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.config.gateway_topics import TopicPrefixes
from broker.config.overlay_config import OverlayConfig, build_config
from broker.config.tables import ConfigError
from broker.config.topic_template import TopicTemplate
from broker.mqtt.mqtt_client import check_files
from topologies.files.toml import format_overlay, parse_overlay

BROKERS = """
schema = 1
[mqtt]
topics = ["devices/{room}/{sensor}"]
qos = 0
%s
[[broker]]
id = "b1"
mqtt = %s
[[broker]]
id = "b2"
mqtt = %s
[[broker]]
id = "b3"
[[link]]
between = ["b1", "b2"]
[[link]]
between = ["b2", "b3"]
"""


def config(shared: str = "", one: str = '"127.0.0.1:1883"', other: str = '"127.0.0.1:1884"') -> OverlayConfig:
    return build_config(parse_overlay(BROKERS % (shared, one, other), "here"), Path("here"))


def test_a_broker_has_a_gateway_where_it_says_so_and_its_own_keys_win() -> None:
    gateways = config("deliver_qos = 0", other='{ host = "h", qos = 1, version = "3.1.1" }').gateways
    assert list(gateways) == ["b1", "b2"]
    one, other = gateways["b1"].table, gateways["b2"].table
    assert (one.host, one.port, one.qos, one.deliver_qos, one.is_version_5) == ("127.0.0.1", 1883, 0, 0, True)
    assert (other.host, other.port, other.qos, other.version) == ("h", 1883, 1, "3.1.1")
    assert other.topics == (TopicTemplate("devices/{room}/{sensor}"),)
    assert gateways["b1"].identifier == "mercast-overlay-b1"


@pytest.mark.parametrize(("version", "is_5"), [("5", True), ('"5"', True), ('"3.1.1"', False)])
def test_the_mqtt_version_is_a_number_or_a_text(version: str, is_5: bool) -> None:
    assert config(one=f"{{ version = {version} }}").gateways["b1"].table.is_version_5 is is_5


def test_topics_of_all_gateways_are_excluded() -> None:
    gateways = config(other='{ port = 1884, deliver = "x/d" }').gateways
    excluded = [template.text for template in gateways["b1"].excluded]
    assert {"mercast/subscribe/#", "mercast/deliver/#", "mercast/error/#", "x/d/#"} <= set(excluded)


def test_the_configuration_survives_being_written() -> None:
    file = parse_overlay(BROKERS % ("", '{ port = 1, topics = ["{a}"] }', '"h:2"'), "here")
    again = build_config(parse_overlay(format_overlay(file), "there"), Path("there"))
    assert again.gateways == build_config(file, Path("here")).gateways


@pytest.mark.parametrize(
    ("shared", "one", "message"),
    [
        ("topic = 1", '"h:1"', r"here: mqtt\.topic is unknown; .*topics"),
        ("", '{ hots = "h" }', r"here: broker\.b1\.mqtt\.hots is unknown; .*host"),
        ("", "5", r"broker\.b1\.mqtt is 5; it must be an address"),
        ("", '"h"', r"broker\.b1\.mqtt .*'h' is not an address"),
        ("", '{ topics = "a" }', r"mqtt\.topics is 'a'; it must be a list of topics"),
        ("", '{ topics = ["a/{b"] }', r"mqtt\.topics\.1: .*one {name} alone"),
        ("", "{ version = 4 }", 'mqtt.version is 4; it must be 5 or "3.1.1"'),
        ("", "{ version = true }", 'mqtt.version is true; it must be 5 or "3.1.1"'),
        ("", "{ qos = 2 }", "mqtt.qos is 2; it must be 0 .* or 1"),
        ("", "{ port = 70000 }", "mqtt.port is 70000; it must be at least 1 and at most 65535"),
        ("", "{ intake = 70000 }", "mqtt.intake is 70000; .*MQTT has numbers for 65535"),
        ("", "{ in_flight = 40000 }", "mqtt.in_flight is 40000; .*MQTT has numbers for 32767"),
        ("", '{ deliver = "a/#" }', "mqtt.deliver: 'a/#' .*plain levels"),
        ("", '{ deliver = "mercast/subscribe/x" }', "none within another"),
        ("", '{ user_properties = "type" }', "mqtt.user_properties is 'type'; did you mean 'typed'"),
        ("", '{ session = "5" }', "mqtt.session: '5' is not a duration"),
        ("", '"127.0.0.1:1884"', "both at 127.0.0.1:1884"),
        (
            "",
            '{ port = 1884, subscribe = "s", deliver = "d", error = "e", identifier = "mercast-overlay-b2" }',
            "identif",
        ),
    ],
)
def test_an_invalid_value_is_refused_by_name(shared: str, one: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        config(shared, one)


def test_files_that_are_missing_are_named_before_anything_starts(tmp_path: Path) -> None:
    for key in ("password_file", "ca_file"):
        table = config(one=f'{{ port = 1, {key} = "{tmp_path}/none" }}').gateways["b1"].table
        with pytest.raises(ConfigError, match=f"{key} {tmp_path}/none"):
            check_files(table)


def test_a_subscription_name_follows_the_prefix() -> None:
    prefixes = TopicPrefixes("m/s", "m/d", "m/e")
    assert prefixes.subscription_name("m/s/a/b") == "a/b"
    assert prefixes.subscription_name("m/s") == ""
    assert prefixes.subscription_name("m/s/") == ""
    assert prefixes.subscription_name("m/sub/a") is None
    assert prefixes.subscription_name("m/d/a") is None
