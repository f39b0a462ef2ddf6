"""The configuration of MQTT gateways: which brokers have one, and its settings.

    [mqtt]                                     # settings that all gateways of the overlay share
    topics = ["devices/{room}/{sensor}"]

    [[broker]]
    id = "b1"
    mqtt = "127.0.0.1:1883"                    # this broker has a gateway to the MQTT broker at that address

    [[broker]]
    id = "b2"
    mqtt = { host = "mqtt.example.org", port = 1883, qos = 0 }

A broker's own `mqtt` table may set every key and overrides [mqtt]. A broker without `mqtt` has no gateway.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from broker.config.address import AddressError, parse_address
from broker.config.gateway_topics import TopicPrefixes
from broker.config.tables import (
    ConfigError,
    Reader,
    at_least,
    boolean,
    duration,
    key,
    one_of,
    positive_duration,
    read_table,
    text,
)
from broker.config.topic_template import TopicTemplate, check_topic
from broker.core.settings import MILLISECOND, SECOND

VERSION_5 = "5"
VERSION_3_1_1 = "3.1.1"
INTAKE_MAX = 65_535
"""The number of packet identifiers in MQTT, and so of messages that are not acknowledged."""
IN_FLIGHT_MAX = 32_767
"""Half of the packet identifiers. The other half is reserved for subscribe and unsubscribe requests."""
PORT_MAX = 65_535


class PropertyReading(StrEnum):
    """How the gateway converts the text of a user property to a value."""

    TYPED = "typed"
    """A JSON number, boolean or quoted string becomes that value. Any other text stays a string."""
    TEXT = "text"
    OFF = "off"


def _version(value: object, place: str) -> str:
    if value == 5 and not isinstance(value, bool):
        return VERSION_5
    if value not in (VERSION_5, VERSION_3_1_1):
        raise ConfigError(f'{place} is {value!r}; take 5 or "3.1.1"')
    return str(value)


def _templates(value: object, place: str) -> tuple[TopicTemplate, ...]:
    if not isinstance(value, list | tuple):
        raise ConfigError(f'{place} must be a list of topics, for example ["devices/{{room}}/{{sensor}}"]')
    try:
        return tuple(TopicTemplate(text(each, place)) for each in value)
    except ConfigError as error:
        raise ConfigError(f"{place}: {error}") from None


def _prefix(value: object, place: str) -> str:
    topic = text(value, place)
    check_topic(topic, topic)
    if "+" in topic or "#" in topic or topic.startswith(("/", "$")) or topic.endswith("/"):
        raise ConfigError(f"{place} is {topic!r}; write plain levels with slashes between, for example mercast/deliver")
    return topic


def _at_most(largest: int) -> Reader:
    def read(value: object, place: str) -> int:
        count = at_least(1)(value, place)
        assert isinstance(count, int)
        if count > largest:
            raise ConfigError(f"{place} is {count}; MQTT has numbers for {largest} at most")
        return count

    return read


def _qos(value: object, place: str) -> int:
    if value not in (0, 1) or isinstance(value, bool):
        raise ConfigError(f"{place} is {value!r}; take 0 (at most once) or 1 (at least once)")
    return 1 if value else 0


def _port(value: object, place: str) -> int:
    port = at_least(1)(value, place)
    assert isinstance(port, int)
    if port > PORT_MAX:
        raise ConfigError(f"{place} is {port}; a port is at most 65535")
    return port


def _property_reading(value: object, place: str) -> PropertyReading:
    return PropertyReading(str(one_of(*PropertyReading)(value, place)))


@dataclass(frozen=True, slots=True)
class GatewayTable:
    """The keys of [mqtt] and of a broker's `mqtt` table."""

    host: str = key("127.0.0.1", text, "the host of the MQTT broker")
    port: int = key(1883, _port, "the port of the MQTT broker")
    version: str = key(VERSION_5, _version, 'the MQTT version: 5, or "3.1.1" for brokers without MQTT 5')
    topics: tuple[TopicTemplate, ...] = key((), _templates, "templates of topics whose messages become publications")
    exclude: tuple[TopicTemplate, ...] = key((), _templates, "templates of topics that the gateway ignores")
    qos: int = key(1, _qos, "the QoS of messages from devices: with 1 none is lost while either side is away")
    deliver_qos: int = key(1, _qos, "the QoS of deliveries to MQTT clients")
    subscribe: str = key(
        "mercast/subscribe", _prefix, "topic prefix of a subscription's name; the retained message is its expression"
    )
    deliver: str = key("mercast/deliver", _prefix, "topic prefix of a subscription's name, for its deliveries")
    error: str = key("mercast/error", _prefix, "topic prefix of a subscription's name, for its errors")
    user_properties: PropertyReading = key(  # noqa: RUF009
        PropertyReading.TYPED,
        _property_reading,
        "typed: properties with a JSON number or boolean become that value; text: all are strings; off: ignored",
    )
    topic_attribute: str = key("mqtt_topic", text, "the attribute for a message's topic; empty: none")
    deliver_attributes: bool = key(True, boolean, "MQTT 5: deliveries carry attributes as user properties")
    identifier: str = key("", text, "the gateway's client identifier, which names its session at the MQTT broker")
    username: str = key("", text, "the user name at the MQTT broker")
    password_file: str = key("", text, "a file that holds only the password")
    ca_file: str = key("", text, "CA certificates that verify the MQTT broker; enables TLS")
    session: int = key(3600 * SECOND, duration, "MQTT 5: how long the MQTT broker keeps messages for an absent gateway")
    keep_alive: int = key(20 * SECOND, positive_duration, "the keep-alive interval, which detects a dead connection")
    intake: int = key(
        2_000, _at_most(INTAKE_MAX), "received messages that the Mercast broker has not accepted or refused yet"
    )
    in_flight: int = key(
        1_000,
        _at_most(IN_FLIGHT_MAX),
        "deliveries that the MQTT broker has not acknowledged; fewer if the MQTT broker announces a lower limit",
    )
    names: int = key(10_000, at_least(1), "the largest number of subscriptions of MQTT clients")
    fast_path: bool = key(
        True,
        boolean,
        "messages bypass aiomqtt, by its private members; false: its public interface, which acknowledges on arrival",
    )
    redial_first: int = key(100 * MILLISECOND, positive_duration, "the first wait before reconnecting")
    redial_at_most: int = key(5 * SECOND, positive_duration, "the longest wait; waits double up to it and vary by half")

    @property
    def is_version_5(self) -> bool:
        return self.version == VERSION_5

    @property
    def prefixes(self) -> TopicPrefixes:
        return TopicPrefixes(self.subscribe, self.deliver, self.error)


@dataclass(frozen=True, slots=True)
class GatewayConfig:
    """The gateway of one broker."""

    broker: str
    identifier: str
    table: GatewayTable
    excluded: tuple[TopicTemplate, ...] = field(default=())
    """Topics that this gateway ignores: those of `exclude`, and the prefixes of all gateways of the overlay."""


def read_gateways(
    shared: Mapping[str, object], by_broker: Mapping[str, object], overlay: str
) -> dict[str, GatewayConfig]:
    """Returns the gateways by broker id. `by_broker` has the value of `mqtt` in each broker's table."""
    read_table(GatewayTable, shared, "[mqtt]")
    tables = {broker: _table(shared, own, broker) for broker, own in by_broker.items() if own not in ("", {}, None)}
    prefixes = tuple(
        TopicTemplate(f"{prefix}/#")
        for prefix in dict.fromkeys(prefix for table in tables.values() for prefix in table.prefixes.all)
    )
    configs = {
        broker: GatewayConfig(
            broker, table.identifier or f"mercast-{overlay}-{broker}", table, table.exclude + prefixes
        )
        for broker, table in tables.items()
    }
    _check_distinct(configs.values())
    return configs


def _table(shared: Mapping[str, object], own: object, broker: str) -> GatewayTable:
    place = f"broker {broker}: mqtt"
    if isinstance(own, str):
        try:
            address = parse_address(own)
        except AddressError as error:
            raise ConfigError(f"{place}: {error}") from None
        own = {"host": address.host, "port": address.port}
    if not isinstance(own, Mapping):
        raise ConfigError(f'{place} must be an address, as "127.0.0.1:1883", or a table, as {{ host = "127.0.0.1" }}')
    table = read_table(GatewayTable, {**shared, **own}, place)
    for one, other in ((one, other) for one in table.prefixes.all for other in table.prefixes.all if one is not other):
        if f"{one}/".startswith(f"{other}/"):
            raise ConfigError(f"{place}: subscribe, deliver and error must be different topics, none within another")
    return table


def _check_distinct(configs: Iterable[GatewayConfig]) -> None:
    """Raises if two gateways at one MQTT broker share topics or an identifier: each delivery would happen twice."""
    users: dict[tuple[str, int, str], str] = {}
    for config in configs:
        table = config.table
        for name in (table.subscribe, table.deliver, f"identifier {config.identifier}"):
            other = users.setdefault((table.host, table.port, name), config.broker)
            if other != config.broker:
                raise ConfigError(
                    f"the gateways of brokers {other} and {config.broker} are both at {table.host}:{table.port} with "
                    f"{name!r}; give one of them other topics for subscribe, deliver and error"
                )
