"""Which brokers have an MQTT gateway, and how it works.

    [mqtt]                                     # what all gateways of the overlay share
    topics = ["devices/{room}/{sensor}"]

    [[broker]]
    id = "b1"
    mqtt = "127.0.0.1:1883"                    # this broker has one, at the MQTT broker there

    [[broker]]
    id = "b2"
    mqtt = { host = "mqtt.example.org", port = 1883, qos = 0 }

A broker's own table may hold every key, and wins over [mqtt]. A broker without `mqtt` has no gateway.
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
MOST_TAKEN_IN = 65_535
"""The protocol has no more numbers for messages under way."""
MOST_DELIVERED = 32_767
"""The other half of the numbers is for requests."""
LAST_PORT = 65_535


class PropertyReading(StrEnum):
    """How the text of a user property is read."""

    TYPED = "typed"
    """A JSON number, boolean or quoted string is that value; any other text is itself."""
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


def _at_most(most: int) -> Reader:
    def read(value: object, place: str) -> int:
        count = at_least(1)(value, place)
        assert isinstance(count, int)
        if count > most:
            raise ConfigError(f"{place} is {count}; MQTT has numbers for {most} at most")
        return count

    return read


def _qos(value: object, place: str) -> int:
    if value not in (0, 1) or isinstance(value, bool):
        raise ConfigError(f"{place} is {value!r}; take 0 (at most once) or 1 (at least once)")
    return 1 if value else 0


def _port(value: object, place: str) -> int:
    port = at_least(1)(value, place)
    assert isinstance(port, int)
    if port > LAST_PORT:
        raise ConfigError(f"{place} is {port}; a port is at most 65535")
    return port


def _property_reading(value: object, place: str) -> PropertyReading:
    return PropertyReading(str(one_of(*PropertyReading)(value, place)))


@dataclass(frozen=True, slots=True)
class GatewayTable:
    host: str = key("127.0.0.1", text, "the MQTT broker")
    port: int = key(1883, _port, "its port")
    version: str = key(VERSION_5, _version, 'of the MQTT protocol: 5, or "3.1.1" for brokers that know no other')
    topics: tuple[TopicTemplate, ...] = key((), _templates, "messages under these become publications")
    exclude: tuple[TopicTemplate, ...] = key((), _templates, "but never those under these")
    qos: int = key(1, _qos, "for messages of devices: 1 loses none while either side is away")
    deliver_qos: int = key(1, _qos, "for what is delivered to MQTT clients")
    subscribe: str = key("mercast/subscribe", _prefix, "before the name of a subscription: its expression, retained")
    deliver: str = key("mercast/deliver", _prefix, "before the name: where its publications appear")
    error: str = key("mercast/error", _prefix, "before the name: why it is not in place")
    user_properties: PropertyReading = key(  # noqa: RUF009
        PropertyReading.TYPED,
        _property_reading,
        "typed: a property that reads as a JSON number or boolean is one; text: all are strings; off: none is read",
    )
    topic_attribute: str = key("mqtt_topic", text, "the attribute that holds a message's topic; empty: none does")
    deliver_attributes: bool = key(True, boolean, "MQTT 5: attributes go along as user properties")
    identifier: str = key("", text, "the client's name at the MQTT broker, which knows its session by it")
    username: str = key("", text, "for the MQTT broker")
    password_file: str = key("", text, "a file that holds the password alone")
    ca_file: str = key("", text, "certificates that the MQTT broker's is checked with; given: TLS is used")
    session: int = key(3600 * SECOND, duration, "MQTT 5: how long the MQTT broker keeps messages for an absent gateway")
    keep_alive: int = key(20 * SECOND, positive_duration, "how soon a silent connection is noticed")
    intake: int = key(
        2_000, _at_most(MOST_TAKEN_IN), "messages that were taken in and are not answered for by the broker"
    )
    in_flight: int = key(
        1_000,
        _at_most(MOST_DELIVERED),
        "deliveries that the MQTT broker has not acknowledged; less where it says that it takes less",
    )
    names: int = key(10_000, at_least(1), "subscriptions of MQTT clients")
    redial_first: int = key(100 * MILLISECOND, positive_duration, "the wait before the MQTT broker is dialled again")
    redial_at_most: int = key(5 * SECOND, positive_duration, "that wait doubles up to this, and varies by half")

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
    """Topics that no gateway of the overlay takes in: those that one of them publishes to or is told by."""


def read_gateways(
    shared: Mapping[str, object], of_brokers: Mapping[str, object], overlay: str
) -> dict[str, GatewayConfig]:
    """By broker. `of_brokers` has what each broker's table says under `mqtt`, where it says something."""
    read_table(GatewayTable, shared, "[mqtt]")
    tables = {broker: _table(shared, own, broker) for broker, own in of_brokers.items() if own not in ("", {}, None)}
    never = tuple(
        TopicTemplate(f"{prefix}/#")
        for prefix in dict.fromkeys(prefix for table in tables.values() for prefix in table.prefixes.all)
    )
    configs = {
        broker: GatewayConfig(broker, table.identifier or f"mercast-{overlay}-{broker}", table, table.exclude + never)
        for broker, table in tables.items()
    }
    _check_apart(configs.values())
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


def _check_apart(configs: Iterable[GatewayConfig]) -> None:
    """Two gateways at one MQTT broker must not answer to the same names, or everything would be delivered twice."""
    users: dict[tuple[str, int, str], str] = {}
    for config in configs:
        table = config.table
        for what in (table.subscribe, table.deliver, f"identifier {config.identifier}"):
            other = users.setdefault((table.host, table.port, what), config.broker)
            if other != config.broker:
                raise ConfigError(
                    f"the gateways of brokers {other} and {config.broker} are both at {table.host}:{table.port} with "
                    f"{what!r}; give one of them other topics for subscribe, deliver and error"
                )
