"""The clients of a broker: what they advertised and subscribed to, and what waits for those that are away."""

from __future__ import annotations

from dataclasses import dataclass, field

from broker.effects import Deliver
from routing.messages import EntryId, PublicationId


@dataclass(slots=True)
class Client:
    name: str
    is_connected: bool = True
    advertisements: dict[str, EntryId] = field(default_factory=dict)
    subscriptions: dict[str, EntryId] = field(default_factory=dict)
    unacknowledged: dict[PublicationId, Deliver] = field(default_factory=dict)
    """Deliveries of a durable broker that the client has not acknowledged."""


class Clients:
    def __init__(self) -> None:
        self._clients: dict[str, Client] = {}
        self._names: dict[EntryId, str] = {}

    def get(self, name: str) -> Client:
        if name not in self._clients:
            self._clients[name] = Client(name)
        return self._clients[name]

    def find(self, name: str) -> Client | None:
        return self._clients.get(name)

    def remove(self, name: str) -> None:
        client = self._clients.pop(name)
        for entry in client.subscriptions.values():
            del self._names[entry]

    def add_subscription(self, client: Client, name: str, entry: EntryId) -> None:
        client.subscriptions[name] = entry
        self._names[entry] = name

    def drop_subscription(self, client: Client, name: str) -> EntryId:
        entry = client.subscriptions.pop(name)
        del self._names[entry]
        return entry

    def names_of(self, entries: tuple[EntryId, ...]) -> tuple[str, ...]:
        return tuple(sorted(self._names[entry] for entry in entries))

    def __len__(self) -> int:
        return len(self._clients)
