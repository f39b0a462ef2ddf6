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
from typing import Annotated, Literal, TypeAlias

from msgspec import Meta

from broker.config.address import PORT_MAX, AddressError, parse_address
from broker.config.duration import Duration, PositiveDuration
from broker.config.gateway_topics import TopicPrefixes
from broker.config.tables import PARSERS, ConfigError
from broker.config.topic_template import TopicTemplate, check_topic
from broker.core.settings import MILLISECOND, SECOND
from topologies.files.typed_tables import Count, Parser, Table, TableReader, expecting, shown_value

INTAKE_MAX = 65_535
"""The number of packet identifiers in MQTT, and so of messages that are not acknowledged."""
IN_FLIGHT_MAX = 32_767
"""Half of the packet identifiers. The other half is reserved for subscribe and unsubscribe requests."""


class PropertyReading(StrEnum):
    """How the gateway converts the text of a user property to a value."""

    TYPED = "typed"
    """A JSON number, boolean or quoted string becomes that value. Any other text stays a string."""
    TEXT = "text"
    OFF = "off"


class TopicPrefix(str):
    """A topic of plain levels, without wildcards."""

    __slots__ = ()


def _topic_prefix(text: str) -> TopicPrefix:
    check_topic(text, text)
    if "+" in text or "#" in text or text.startswith(("/", "$")) or text.endswith("/"):
        raise ConfigError(
            f"{text!r} is no prefix; write plain levels with slashes between, for example mercast/deliver"
        )
    return TopicPrefix(text)


def _numbered(largest: int) -> Meta:
    return expecting(f"a whole number from 1 to {largest}, because MQTT has numbers for {largest} at most")


Port: TypeAlias = Annotated[int, Meta(ge=1, le=PORT_MAX)]
Version: TypeAlias = Annotated[Literal[5, "5", "3.1.1"], expecting('5 or "3.1.1"')]
Qos: TypeAlias = Annotated[Literal[0, 1], expecting("0 (at most once) or 1 (at least once)")]
Templates: TypeAlias = Annotated[
    tuple[TopicTemplate, ...], expecting('a list of topics, for example ["devices/{room}/{sensor}"]')
]
GATEWAY_PARSERS: Mapping[type, Parser] = {**PARSERS, TopicTemplate: TopicTemplate, TopicPrefix: _topic_prefix}


class GatewayTable(Table, frozen=True, kw_only=True):
    """The keys of [mqtt] and of a broker's `mqtt` table."""

    host: str = "127.0.0.1"
    """The host of the MQTT broker."""
    port: Port = 1883
    """The port of the MQTT broker."""
    version: Version = 5
    """The MQTT version: 5, or "3.1.1" for brokers without MQTT 5."""
    topics: Templates = ()
    """Templates of topics whose messages become publications."""
    exclude: Templates = ()
    """Templates of topics that the gateway ignores."""
    qos: Qos = 1
    """The QoS of messages from devices: with 1 none is lost while either side is away."""
    deliver_qos: Qos = 1
    """The QoS of deliveries to MQTT clients."""
    subscribe: TopicPrefix = TopicPrefix("mercast/subscribe")
    """Topic prefix of a subscription's name; the retained message is its expression."""
    deliver: TopicPrefix = TopicPrefix("mercast/deliver")
    """Topic prefix of a subscription's name, for its deliveries."""
    error: TopicPrefix = TopicPrefix("mercast/error")
    """Topic prefix of a subscription's name, for its errors."""
    user_properties: PropertyReading = PropertyReading.TYPED
    """typed: properties with a JSON number or boolean become that value; text: all are strings; off: ignored."""
    topic_attribute: str = "mqtt_topic"
    """The attribute for a message's topic; empty: none."""
    deliver_attributes: bool = True
    """MQTT 5: deliveries carry attributes as user properties."""
    identifier: str = ""
    """The gateway's client identifier, which names its session at the MQTT broker."""
    username: str = ""
    """The user name at the MQTT broker."""
    password_file: str = ""
    """A file that holds only the password."""
    ca_file: str = ""
    """CA certificates that verify the MQTT broker; enables TLS."""
    session: Duration = Duration(3600 * SECOND)
    """MQTT 5: how long the MQTT broker keeps messages for an absent gateway."""
    keep_alive: PositiveDuration = PositiveDuration(20 * SECOND)
    """The keep-alive interval, which detects a dead connection."""
    intake: Annotated[int, Meta(ge=1, le=INTAKE_MAX), _numbered(INTAKE_MAX)] = 2_000
    """Received messages that the Mercast broker has not accepted or refused yet."""
    in_flight: Annotated[int, Meta(ge=1, le=IN_FLIGHT_MAX), _numbered(IN_FLIGHT_MAX)] = 1_000
    """Deliveries that the MQTT broker has not acknowledged; fewer if the MQTT broker announces a lower limit."""
    names: Count = 10_000
    """The largest number of subscriptions of MQTT clients."""
    fast_path: bool = True
    """Messages bypass aiomqtt, by its private members; false: its public interface, which acknowledges on arrival."""
    redial_first: PositiveDuration = PositiveDuration(100 * MILLISECOND)
    """The first wait before reconnecting."""
    redial_at_most: PositiveDuration = PositiveDuration(5 * SECOND)
    """The longest wait; waits double up to it and vary by half."""

    @property
    def is_version_5(self) -> bool:
        return self.version != "3.1.1"

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


def gateway_client(broker: str) -> str:
    """The name of a broker's gateway as a client of the broker."""
    return f"mqtt-gateway-{broker}"


def read_gateways(
    reader: TableReader, shared: Mapping[str, object], by_broker: Mapping[str, object], overlay: str
) -> dict[str, GatewayConfig]:
    """Returns the gateways by broker id. `by_broker` has the value of `mqtt` in each broker's table."""
    reader.read(GatewayTable, shared, "mqtt")
    tables = {
        broker: _table(reader, shared, own, broker) for broker, own in by_broker.items() if own not in ("", {}, None)
    }
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
    _check_distinct(reader, configs.values())
    return configs


def _table(reader: TableReader, shared: Mapping[str, object], own: object, broker: str) -> GatewayTable:
    key = f"broker.{broker}.mqtt"
    if isinstance(own, str):
        try:
            address = parse_address(own)
        except AddressError as error:
            raise reader.refusal(key, f"is no table and no address: {error}") from None
        own = {"host": address.host, "port": address.port}
    if not isinstance(own, Mapping):
        wanted = 'an address, as "127.0.0.1:1883", or a table, as { host = "127.0.0.1" }'
        raise reader.refusal(key, f"is {shown_value(own)}; it must be {wanted}")
    table = reader.read(GatewayTable, {**shared, **own}, key)
    for one, other in ((one, other) for one in table.prefixes.all for other in table.prefixes.all if one is not other):
        if f"{one}/".startswith(f"{other}/"):
            raise reader.refusal(
                key,
                f"has the prefixes {one!r} and {other!r}; subscribe, deliver and error must be different topics, "
                "none within another",
            )
    return table


def _check_distinct(reader: TableReader, configs: Iterable[GatewayConfig]) -> None:
    """Raises if two gateways at one MQTT broker share topics or an identifier: each delivery would happen twice."""
    users: dict[tuple[str, int, str], str] = {}
    for config in configs:
        table = config.table
        for name in (table.subscribe, table.deliver, f"identifier {config.identifier}"):
            other = users.setdefault((table.host, table.port, name), config.broker)
            if other != config.broker:
                raise reader.refusal(
                    f"broker.{config.broker}.mqtt",
                    f"and broker.{other}.mqtt are both at {table.host}:{table.port} with {name!r}; "
                    "give one of them other topics for subscribe, deliver and error",
                )
