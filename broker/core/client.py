"""The clients of a broker: their entries, and their deliveries in flight or waiting."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from broker.core.effects import Deliver
from broker.core.publish_ledger import PublishLedger
from routing.messages import EntryId

UNBOUNDED = 1 << 62


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

    @property
    def can_send(self) -> bool:
        return self.is_connected and self.has_room and len(self.in_flight) < self.window

    def mark_sent(self, delivery: Deliver) -> None:
        if self.is_reliable:
            self.in_flight.append(delivery)
            self.undelivered_bytes += len(delivery.attributes) + len(delivery.payload)

    def enqueue(self, delivery: Deliver) -> None:
        self.waiting.append(delivery)
        self.undelivered_bytes += len(delivery.attributes) + len(delivery.payload)

    def pop_waiting(self) -> Deliver:
        delivery = self.waiting.popleft()
        self.undelivered_bytes -= len(delivery.attributes) + len(delivery.payload)
        return delivery

    def acknowledge(self, through: int) -> list[Deliver]:
        """Removes the deliveries in flight up to and including this number, and returns them."""
        acknowledged: list[Deliver] = []
        size = 0
        in_flight = self.in_flight
        while in_flight and in_flight[0].number <= through:
            delivery = in_flight.popleft()
            size += len(delivery.attributes) + len(delivery.payload)
            acknowledged.append(delivery)
        self.undelivered_bytes -= size
        return acknowledged

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
        self._clients: dict[str, Client] = {}
        self._names: dict[EntryId, str] = {}

    def get_or_create(self, name: str) -> Client:
        if name not in self._clients:
            self._clients[name] = Client(name, self._is_durable, None if self._is_durable else 0)
        return self._clients[name]

    def find(self, name: str) -> Client | None:
        return self._clients.get(name)

    def remove(self, name: str) -> None:
        client = self._clients.pop(name)
        for entry in client.subscriptions.values():
            del self._names[entry]

    def expired(self, now: int) -> list[Client]:
        """Clients that did not reconnect in time."""
        return [
            client
            for client in self._clients.values()
            if not client.is_connected and client.keep is not None and now - client.disconnected_at >= client.keep
        ]

    def add_subscription(self, client: Client, name: str, entry: EntryId) -> None:
        client.subscriptions[name] = entry
        self._names[entry] = name

    def remove_subscription(self, client: Client, name: str) -> EntryId:
        entry = client.subscriptions.pop(name)
        del self._names[entry]
        return entry

    def names_of(self, entries: tuple[EntryId, ...]) -> tuple[str, ...]:
        """The sorted names of the entries. Leaves out entries that were withdrawn since they matched."""
        names = self._names
        if len(entries) == 1:
            name = names.get(entries[0])
            return () if name is None else (name,)
        return tuple(sorted([names[entry] for entry in entries if entry in names]))

    def __iter__(self) -> Iterator[Client]:
        return iter(self._clients.values())

    def __len__(self) -> int:
        return len(self._clients)
