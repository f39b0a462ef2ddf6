"""The clients of a broker: their entries, and their deliveries in flight or waiting."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from broker.core.deduplication import PublishLedger
from broker.core.effects import Deliver
from matching.expressions.model import PATTERN_OPERATORS, Expression
from routing.messages import EntryId

UNBOUNDED = 1 << 62


class EntrySize(NamedTuple):
    """What an entry costs the broker."""

    expression_bytes: int
    patterns: int

    @classmethod
    def of(cls, expression: Expression, text: str) -> EntrySize:
        return cls(len(text), sum(each.operator in PATTERN_OPERATORS for each in expression.predicates()))

    def plus(self, other: EntrySize) -> EntrySize:
        return EntrySize(self.expression_bytes + other.expression_bytes, self.patterns + other.patterns)

    def minus(self, other: EntrySize) -> EntrySize:
        return EntrySize(self.expression_bytes - other.expression_bytes, self.patterns - other.patterns)


NO_SIZE = EntrySize(0, 0)


@dataclass(slots=True)
class Client:
    """A client's session: it may outlive the client's connections."""

    name: str
    is_reliable: bool
    """Whether deliveries are acknowledged, and sent again after a reconnect until they are."""
    keep: int | None
    """Nanoseconds for which the session outlives a lost connection; None: for ever."""
    session: str = ""
    """The id that the client's process chose. Another process under the same client name starts another session."""
    window: int = UNBOUNDED
    """The largest number of deliveries in flight."""
    is_connected: bool = True
    has_room: bool = True
    """Whether its connection has room for more deliveries."""
    is_held: bool = False
    """Whether its deliveries wait until the store would not repeat them after a crash."""
    since: int = 0
    """When the session began."""
    disconnected_at: int = 0
    ledger: PublishLedger | None = None
    """The answers to its publications. None if it does not wait for answers."""
    last_number: int = 0
    """The number of its latest delivery."""
    acknowledged: int = 0
    """The number of the last delivery that it acknowledged."""
    advertisements: dict[str, EntryId] = field(default_factory=dict)
    subscriptions: dict[str, EntryId] = field(default_factory=dict)
    expressions: dict[EntryId, str] = field(default_factory=dict)
    sizes: dict[EntryId, EntrySize] = field(default_factory=dict)
    total_size: EntrySize = NO_SIZE
    """The size of all active and pending entries."""
    confirmed: dict[EntryId, int] = field(default_factory=dict)
    """When each entry was confirmed. 0: before a restart, at an unknown time."""
    pending_entries: dict[tuple[str, ...], tuple[str, int]] = field(default_factory=dict)
    """Records of entries that become active when the store has committed them, by the store's key."""
    pending_new_names: Counter[str] = field(default_factory=Counter)
    """How many of the pending entries have a name without an active entry, by kind."""
    in_flight: deque[Deliver] = field(default_factory=deque)
    """Deliveries sent over the present connection and not acknowledged."""
    waiting: deque[Deliver] = field(default_factory=deque)
    undelivered_bytes: int = 0
    """Attributes and payloads of deliveries that are in flight or waiting."""

    def disconnect(self, now: int) -> None:
        """Marks the client as disconnected. Deliveries in flight may be lost: they wait again, before the others."""
        self.is_connected = False
        self.disconnected_at = now
        self.waiting.extendleft(reversed(self.in_flight))
        self.in_flight.clear()

    def connect(self) -> None:
        self.disconnect(self.disconnected_at)
        self.is_connected = self.has_room = True

    def undelivered(self) -> Iterator[Deliver]:
        yield from self.in_flight
        yield from self.waiting


class Clients:
    def __init__(self, is_durable: bool) -> None:
        """A new client's session lasts for ever at a durable broker, otherwise while the client is connected."""
        self._is_durable = is_durable
        self.by_name: dict[str, Client] = {}
        self.subscription_names: dict[EntryId, str] = {}
        """The name that a client gave to each active subscription."""

    def get_or_create(self, name: str) -> Client:
        if name not in self.by_name:
            self.by_name[name] = Client(name, self._is_durable, None if self._is_durable else 0)
        return self.by_name[name]

    def remove(self, name: str) -> None:
        client = self.by_name.pop(name)
        for entry in client.subscriptions.values():
            del self.subscription_names[entry]

    def expired(self, now: int) -> list[Client]:
        """Clients that did not reconnect in time."""
        return [
            client
            for client in self.by_name.values()
            if not client.is_connected and client.keep is not None and now - client.disconnected_at >= client.keep
        ]

    @property
    def has_ending_sessions(self) -> bool:
        """Whether a session of a disconnected client ends after some time."""
        return any(not client.is_connected and client.keep is not None for client in self.by_name.values())

    def add_subscription(self, client: Client, name: str, entry: EntryId) -> None:
        client.subscriptions[name] = entry
        self.subscription_names[entry] = name

    def remove_subscription(self, client: Client, name: str) -> EntryId:
        entry = client.subscriptions.pop(name)
        del self.subscription_names[entry]
        return entry

    def __iter__(self) -> Iterator[Client]:
        return iter(self.by_name.values())

    def __len__(self) -> int:
        return len(self.by_name)
