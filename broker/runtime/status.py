"""The status of a broker, as JSON for its admin pages and as metrics for Prometheus."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from broker.config.address import Address
from broker.config.overlay_config import BrokerConfig
from broker.process_memory import memory_bytes
from broker.runtime.client_registry import ClientRegistry
from broker.runtime.core_driver import CoreDriver
from broker.runtime.housekeeping import Housekeeping
from broker.runtime.internal_errors import InternalErrors
from broker.runtime.neighbours import Neighbours
from broker.runtime.process_parts import ProcessParts
from broker.runtime.rights_enforcement import RightsEnforcement
from broker.runtime.store import Store
from broker.runtime.violations import Violations

CLIENTS_SHOWN = 200


@dataclass(frozen=True, slots=True)
class NeighbourStatus:
    id: str
    is_up: bool
    address: str
    up_s: float
    """Seconds since the link came up."""
    waiting: int
    """Publications that wait for the link."""
    in_flight: int
    bytes_in: int
    bytes_out: int
    clock_offset_s: float | None = None
    """The neighbour's clock minus this one. None: unknown."""


@dataclass(frozen=True, slots=True)
class ClientStatus:
    name: str
    is_connected: bool
    is_reliable: bool
    is_durable: bool
    subscriptions: int
    advertisements: int
    waiting: int
    """Deliveries that are not sent yet."""
    on_the_way: int
    """Deliveries that are sent and not acknowledged."""


@dataclass(frozen=True, slots=True)
class Tables:
    advertisements: int
    local_subscriptions: int
    remote_subscriptions: int
    routing_table_bytes: int
    unacknowledged_changes: int


@dataclass(frozen=True, slots=True)
class Queues:
    in_custody: int
    """Publications that this broker is responsible for."""
    unsettled: int
    """Those of them that clients of this broker published."""
    held: int
    """Clients with publications that wait until the broker accepts publications."""
    store: int
    """Pending writes."""
    postponed: int
    """Publications that wait for the end of recovery, when the broker knows again which brokers want them."""
    retained: int
    """Publications kept for subscriptions that this broker learns of late."""


@dataclass(frozen=True, slots=True)
class Status:
    broker: str
    overlay: str
    protocol: str
    matcher: str
    incarnation: int
    uptime_s: float
    listen: str
    admin: str
    is_durable: bool
    memory_bytes: int
    neighbours: tuple[NeighbourStatus, ...]
    client_count: int
    clients: tuple[ClientStatus, ...]
    """The first clients by name, at most CLIENTS_SHOWN."""
    tables: Tables
    queues: Queues
    rates: dict[str, float]
    """Publications per second since the last housekeeping: published, received, sent, delivered."""
    totals: dict[str, int]
    drops: dict[str, int]
    violations: dict[str, int]
    parts: dict[str, dict[str, object]]
    """The status of parts that run with the broker, such as a gateway, by name."""
    errors: dict[str, int] = field(default_factory=dict)
    """Internal errors by kind."""
    withdrawn: int = 0
    """Revoked subscriptions and advertisements since the start."""
    longest_pause_s: float = 0.0
    """The longest time since the start in which the broker served nothing."""
    recent_pause_s: float = 0.0
    """The longest such time in the last one to two minutes."""
    once_ids: int = 0
    """Known once ids of publications that clients received."""
    once_ids_forgotten: int = 0
    """Once ids forgotten before their time since the start, to make room for newer ones."""
    trace: str = ""
    """The word `recording`, or the reason why recording ended. Empty without a trace."""

    def as_json(self) -> dict[str, object]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class StatusSources:
    """The parts of a broker that its status shows."""

    config: BrokerConfig
    driver: CoreDriver
    neighbours: Neighbours
    clients: ClientRegistry
    rights: RightsEnforcement
    store: Store | None
    housekeeping: Housekeeping
    parts: ProcessParts
    violations: Violations
    errors: InternalErrors
    started: float = field(default_factory=time.time)


def status_of(sources: StatusSources, listen: Address, admin: Address | None) -> Status:
    """The status of a broker that listens at `listen` and has its admin pages, if any, at `admin`."""
    config, core = sources.config, sources.driver.core
    counts = core.router.counts()
    clients = sorted(core.clients, key=lambda client: client.name)
    return Status(
        broker=config.id,
        overlay=config.overlay.name,
        protocol=config.overlay.protocol,
        matcher=config.overlay.general.matcher,
        incarnation=core.incarnation,
        uptime_s=round(time.time() - sources.started, 3),
        listen=str(listen),
        admin=str(admin or ""),
        is_durable=sources.store is not None,
        memory_bytes=memory_bytes(),
        neighbours=_neighbours(sources),
        client_count=len(clients),
        clients=tuple(
            ClientStatus(
                client.name,
                client.is_connected,
                client.is_reliable,
                client.keep is None,
                len(client.subscriptions),
                len(client.advertisements),
                len(client.waiting),
                len(client.in_flight),
            )
            for client in clients[:CLIENTS_SHOWN]
        ),
        tables=Tables(
            counts.advertisements,
            counts.local_subscriptions,
            counts.remote_subscriptions,
            counts.routing_table_bytes,
            counts.unacknowledged_changes,
        ),
        queues=Queues(
            core.in_custody,
            core.unsettled,
            len(sources.clients.waiting_publishers),
            sources.store.pending_count if sources.store else 0,
            core.postponed,
            core.retained,
        ),
        rates=dict(sources.housekeeping.rates),
        totals=sources.driver.totals(),
        drops=dict(core.drops),
        violations=dict(sources.violations.counts),
        parts=sources.parts.statuses(),
        errors=dict(sources.errors.counts),
        withdrawn=sources.rights.revoked_count,
        longest_pause_s=round(sources.housekeeping.pauses.longest_s, 4),
        recent_pause_s=round(sources.housekeeping.pauses.longest_recent_s, 4),
        once_ids=len(core.once_ids),
        once_ids_forgotten=core.once_ids.forgotten,
        trace=sources.driver.trace_state,
    )


def _neighbours(sources: StatusSources) -> tuple[NeighbourStatus, ...]:
    links = sources.neighbours.links
    queues = sources.driver.core.links.queues()
    shown = []
    for id in sorted({*links, *sources.neighbours.required_peers()}):
        link = links.get(id)
        if link is None:
            shown.append(NeighbourStatus(id, False, "", 0.0, 0, 0, 0, 0))
            continue
        waiting, in_flight = queues.get(id, (0, 0))
        up_s = round((sources.driver.now() - link.up_since) / 1e9, 3)
        offset = link.clocks.offset
        offset_s = None if offset is None else round(offset / 1e9, 6)
        traffic = (link.connection.bytes_in, link.connection.bytes_out)
        shown.append(NeighbourStatus(id, True, link.hello.address, up_s, waiting, in_flight, *traffic, offset_s))
    return tuple(shown)


def as_prometheus(status: Status) -> str:
    """The text format of Prometheus. Every broker is its own target; the label `broker` has its id."""
    lines: list[str] = []
    own = f'broker="{_escape(status.broker)}"'

    def family(name: str, kind: str, help: str, values: dict[str, float]) -> None:
        lines.append(f"# HELP mercast_{name} {help}")
        lines.append(f"# TYPE mercast_{name} {kind}")
        lines.extend(f"mercast_{name}{{{labels}}} {_format_number(value)}" for labels, value in values.items())

    def labelled(label: str, values: Mapping[str, float]) -> dict[str, float]:
        return {f'{own},{label}="{_escape(key)}"': value for key, value in sorted(values.items())}

    for key in ("published", "received", "sent", "delivered"):
        total = status.totals.get(key, 0)
        family(f"publications_{key}_total", "counter", f"Publications {key}.", {own: total})
    family("drops_total", "counter", "Publications dropped or refused, by reason.", labelled("reason", status.drops))
    family("violations_total", "counter", "Limits that were violated, by name.", labelled("limit", status.violations))
    withdrawn_help = "Subscriptions and advertisements that clients lost with their rights."
    family("withdrawn_total", "counter", withdrawn_help, {own: status.withdrawn})
    family("errors_total", "counter", "Errors of the broker's own, by what failed.", labelled("what", status.errors))
    family("clients", "gauge", "Sessions, connected or not.", {own: status.client_count})
    family("memory_bytes", "gauge", "Resident memory.", {own: status.memory_bytes})
    pause_help = "The longest time in which the broker served nothing, in the last one to two minutes."
    family("recent_pause_seconds", "gauge", pause_help, {own: status.recent_pause_s})
    longest_help = "The longest time in which the broker served nothing, since its start."
    family("longest_pause_seconds", "gauge", longest_help, {own: status.longest_pause_s})
    family("once_ids", "gauge", "Known once ids of publications.", {own: status.once_ids})
    forgotten_help = "Once ids forgotten before their time, to make room for newer ones."
    family("once_ids_forgotten_total", "counter", forgotten_help, {own: status.once_ids_forgotten})
    family("uptime_seconds", "gauge", "Since the broker started.", {own: status.uptime_s})
    for key, value in asdict(status.tables).items():
        family(f"table_{key}", "gauge", "What the routing tables hold.", {own: value})
    for key, value in asdict(status.queues).items():
        family(f"queue_{key}", "gauge", "What waits.", {own: value})
    up = {each.id: int(each.is_up) for each in status.neighbours}
    family("link_up", "gauge", "1 if the link to the neighbour is up, otherwise 0.", labelled("neighbour", up))
    waiting = {each.id: each.waiting for each in status.neighbours}
    family("link_waiting", "gauge", "Publications that wait for the link.", labelled("neighbour", waiting))
    offsets = {each.id: each.clock_offset_s for each in status.neighbours if each.clock_offset_s is not None}
    offset_help = "The neighbour's clock minus this broker's clock."
    family("link_clock_offset_seconds", "gauge", offset_help, labelled("neighbour", offsets))
    for part, fields in status.parts.items():
        for key, number in fields.items():
            if isinstance(number, int):
                family(f"{part}_{key}", "gauge", f"Of the part {part}.", {own: number})
            elif isinstance(number, dict):
                family(f"{part}_{key}", "gauge", f"Of the part {part}, by reason.", labelled("reason", number))
    return "\n".join(lines) + "\n"


def _format_number(value: float) -> str:
    """The exact value: a rounded counter may not change between two scrapes."""
    return str(int(value)) if isinstance(value, int) else repr(value)


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
