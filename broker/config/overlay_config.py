"""The configuration of an overlay and its brokers: addresses, store, deliveries and limits.

    schema = 1
    [overlay]
    protocol = "merc"
    [heartbeat]
    every = "500ms"
    [store]
    data_dir = "data"
    [[broker]]
    id = "b1"
    listen = "127.0.0.1:7001"
    admin = "127.0.0.1:7101"

`topologies` reads ids, clusters and links. This module reads the other tables, each into a struct.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from broker.config.address import Address
from broker.config.gateway_config import GATEWAY_PARSERS, GatewayConfig, read_gateways
from broker.config.tables import (
    AdminTable,
    BrokerTable,
    ConfigError,
    DeliveryTable,
    HeartbeatTable,
    LimitsTable,
    OverlayTable,
    ReorganiseTable,
    StoreTable,
)
from broker.core.settings import Settings
from broker.wire.limits import Limits
from matching.registry import names as matcher_names
from routing.registry import default_name
from routing.registry import info as protocol_info
from routing.registry import names as protocol_names
from topologies.errors import nearest
from topologies.files.toml import OverlayFile, read_overlay_file
from topologies.files.typed_tables import TableReader
from topologies.overlay import Overlay

__all__ = ["BrokerConfig", "ConfigError", "NeighbourConfig", "OverlayConfig", "build_config", "read_config"]


@dataclass(frozen=True, slots=True)
class NeighbourConfig:
    id: str
    address: Address | None
    """None if only the neighbour can open the link."""
    cost: int = 1


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """The configuration of one broker, with the tables that the whole overlay shares."""

    id: str
    overlay: OverlayConfig
    clusters: tuple[str, ...]
    listen: Address
    address: Address | None
    """The address that others connect to, if it differs from `listen`."""
    admin: Address | None
    data_dir: Path | None
    neighbours: tuple[NeighbourConfig, ...]

    def settings(self, *, is_traced: bool = False) -> Settings:
        """The settings of the broker core. `is_traced` says whether a trace is recorded."""
        shared = self.overlay
        return Settings(
            is_durable=self.data_dir is not None,
            is_open=shared.general.advertise == "open",
            tick=shared.heartbeat.every,
            dead_after=shared.heartbeat.dead_after,
            clock_skew=shared.heartbeat.clock_skew,
            hold_unreachable=shared.delivery.hold,
            window=shared.limits.window,
            retain_bytes=shared.limits.retained_bytes,
            publish_window=shared.limits.publish_window,
            credit=shared.limits.credit,
            outbox_frames=shared.limits.link_queue,
            publication_bytes=shared.limits.publication_bytes,
            attribute_bytes=shared.limits.attribute_bytes,
            entries_of_client=shared.limits.subscriptions,
            expression_bytes_of_client=shared.limits.expression_bytes,
            patterns_of_client=shared.limits.patterns,
            deliveries_for_absent=shared.delivery.outbox,
            outbox_bytes=shared.delivery.outbox_bytes,
            disconnects_slow=shared.delivery.when_full == "disconnect",
            once=shared.delivery.once,
            once_ids=shared.limits.once_ids,
            records_matches=is_traced,
            reorganise_every=shared.reorganise.every,
            most_links=shared.reorganise.most_links,
        )

    def wire_limits(self) -> Limits:
        """The limits on frames that the broker receives."""
        limits = self.overlay.limits
        return Limits(
            frame_bytes=limits.frame_bytes,
            header_bytes=limits.header_bytes,
            text_bytes=limits.text_bytes,
            destinations=limits.destinations,
        )


@dataclass(frozen=True, slots=True)
class OverlayConfig:
    """An overlay file, checked and with defaults."""

    path: Path
    """The overlay file. Errors name it, and other paths are relative to its folder."""
    overlay: Overlay
    general: OverlayTable = field(default_factory=OverlayTable)
    heartbeat: HeartbeatTable = field(default_factory=HeartbeatTable)
    store: StoreTable = field(default_factory=StoreTable)
    delivery: DeliveryTable = field(default_factory=DeliveryTable)
    limits: LimitsTable = field(default_factory=LimitsTable)
    reorganise: ReorganiseTable = field(default_factory=ReorganiseTable)
    admin: AdminTable = field(default_factory=AdminTable)
    brokers: Mapping[str, BrokerTable] = field(default_factory=dict)
    raw_tables: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    """The file's tables as parsed. Other modules read theirs from here, such as [tls] and [acl]."""
    gateways: Mapping[str, GatewayConfig] = field(default_factory=dict)
    """MQTT gateways by broker id."""

    @property
    def name(self) -> str:
        """The name of the overlay."""
        return self.overlay.name

    @property
    def protocol(self) -> str:
        """The configured protocol, or the default for an overlay with or without clusters."""
        if self.general.protocol is not None:
            return self.general.protocol
        return default_name(has_clusters=bool(self.overlay.clusters))

    def broker(self, id: str) -> BrokerConfig:
        """The configuration of one broker. Raises ConfigError if the broker has no `listen` address."""
        clusters = self.overlay.broker(id).clusters
        table = self.brokers[id]
        if table.listen is None:
            raise ConfigError(
                f'{self.path}: broker {id} has no address; add listen = "127.0.0.1:7001" (host and port) to its table'
            )
        metric = self.general.metric
        neighbours = tuple(
            NeighbourConfig(other, self.brokers[other].contact_address, self.overlay.link(id, other).cost(metric))
            for other in self.overlay.neighbours(id)
        )
        data_dir = self._data_dir(id)
        return BrokerConfig(id, self, clusters, table.listen, table.address, table.admin, data_dir, neighbours)

    def _data_dir(self, id: str) -> Path | None:
        own = self.brokers[id].data_dir
        if own is not None:
            return self.path.parent / own
        return self.path.parent / self.store.data_dir / id if self.store.data_dir else None


def read_config(path: Path) -> OverlayConfig:
    """Reads and checks an overlay file."""
    return build_config(read_overlay_file(path), path)


def build_config(file: OverlayFile, path: Path) -> OverlayConfig:
    """Builds the configuration from a parsed overlay file. Errors name `path`."""
    reader = TableReader(str(path), ConfigError, GATEWAY_PARSERS)
    tables = file.tables
    brokers = {
        broker.id: _broker_table(reader, file.broker_settings.get(broker.id, {}), broker.id)
        for broker in file.overlay.brokers
    }
    config = OverlayConfig(
        path,
        file.overlay,
        reader.read(OverlayTable, file.settings, "overlay"),
        reader.read(HeartbeatTable, tables.get("heartbeat", {}), "heartbeat"),
        reader.read(StoreTable, tables.get("store", {}), "store"),
        reader.read(DeliveryTable, tables.get("delivery", {}), "delivery"),
        reader.read(LimitsTable, tables.get("limits", {}), "limits"),
        reader.read(ReorganiseTable, tables.get("reorganise", {}), "reorganise"),
        reader.read(AdminTable, tables.get("admin", {}), "admin"),
        brokers,
        tables,
        read_gateways(
            reader, tables.get("mqtt", {}), {id: table.mqtt for id, table in brokers.items()}, file.overlay.name
        ),
    )
    _check(config, reader)
    return config


def _broker_table(reader: TableReader, settings: Mapping[str, object], id: str) -> BrokerTable:
    # TOML has no value for "none".
    none = {"admin": None} if settings.get("admin") == "off" else {}
    return reader.read(BrokerTable, {**settings, **none}, f"broker.{id}")


def _check(config: OverlayConfig, reader: TableReader) -> None:
    general, limits, protocol = config.general, config.limits, config.protocol
    for key, name, known in (("protocol", protocol, protocol_names()), ("matcher", general.matcher, matcher_names())):
        if name not in known:
            raise reader.refusal(f"overlay.{key}", f"is {name!r}; {nearest(name, known)}")
    if config.heartbeat.dead_after <= config.heartbeat.every:
        raise reader.refusal(
            "heartbeat.dead_after", "must be longer than heartbeat.every, or every neighbour is taken for dead"
        )
    if limits.publication_bytes + limits.text_bytes > limits.frame_bytes:
        raise reader.refusal(
            "limits.frame_bytes",
            f"is {limits.frame_bytes}; it must exceed publication_bytes ({limits.publication_bytes}) by text_bytes "
            f"({limits.text_bytes}) at least",
        )
    if limits.sessions < limits.connections:
        raise reader.refusal(
            "limits.sessions",
            f"is {limits.sessions}; it must not be less than connections ({limits.connections}): every client that is "
            "connected has one",
        )
    if protocol_info(protocol).needs_clusters and not config.overlay.clusters:
        raise reader.refusal(
            "overlay.protocol",
            f"is {protocol!r}; {protocol} routes by clusters and no broker is in one; add clusters, or take d-dbr",
        )
    for option in general.router_options:
        if option not in protocol_info(protocol).options:
            raise reader.refusal(f"overlay.{option}", f"is no option of protocol {protocol}")
    _check_addresses(config, reader)


def _check_addresses(config: OverlayConfig, reader: TableReader) -> None:
    users: dict[tuple[str, Address], str] = {}
    for id, table in config.brokers.items():
        # Brokers on different hosts may use the same address, for example 0.0.0.0:7001.
        host = table.contact_address.host if table.contact_address else ""
        for address, name in ((table.listen, "listen"), (table.admin, "admin")):
            if address is None or not address.port:
                continue
            if (host, address) in users:
                raise reader.refusal(f"broker.{id}.{name}", f"is {str(address)!r}, taken by {users[host, address]}")
            users[host, address] = f"{name} of broker {id}"
