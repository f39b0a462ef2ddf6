"""Once ids: a client receives a publication once, although several brokers accepted it.

A client that loses its broker does not know whether its last publications were accepted. It publishes them again at
another broker, which cannot know either. Both publications carry the same once id: the client's name, and an id that is
unique among the client's publications. The broker of each subscriber recognises the second one.

An id is known for a stated time after its first delivery here, and while no more than a stated number are newer. A
durable broker stores it in one transaction with the deliveries.
"""

from __future__ import annotations

from broker.core.client import Client
from broker.core.context import CoreContext
from broker.core.effects import Forget, Persist
from routing.messages import OnceId

Key = tuple[str, ...]

RECORD = "once"
"""The kind of an id's record in the store."""


class _Recipients:
    """The clients that received a publication, each with the time of its delivery."""

    __slots__ = ("clients", "is_stored", "since")

    def __init__(self, since: int, clients: dict[str, int]) -> None:
        self.since = since
        self.clients = clients
        self.is_stored = False


class OnceIds:
    def __init__(self, context: CoreContext) -> None:
        self._context = context
        self._known: dict[OnceId, _Recipients] = {}
        """In the order of their first deliveries."""
        self.forgotten = 0
        """The number of ids forgotten before their time, to make room for newer ones."""

    def __len__(self) -> int:
        return len(self._known)

    def add_if_new(self, id: OnceId, client: Client) -> bool:
        """Adds the client to those that received the publication. Returns False if it already did in this session."""
        now = self._context.now
        known = self._known.get(id)
        if known is None:
            known = self._known[id] = _Recipients(now, {})
            if len(self._known) > self._context.settings.once_ids:
                self._forget(next(iter(self._known)))
                self.forgotten += 1
        else:
            received_at = known.clients.get(client.name)
            if received_at is not None and received_at >= client.since:
                return False
        known.clients[client.name] = now
        return True

    def store(self, id: OnceId) -> None:
        """Writes the id's record."""
        known = self._known.get(id)
        if known is not None:
            known.is_stored = True
            record = (known.since, tuple(known.clients.items()))
            self._context.effects.append(Persist(_key(id), record))

    def forget_past(self) -> None:
        """Forgets the ids whose time is over."""
        end = self._context.now - self._context.settings.once
        past: list[OnceId] = []
        for id, known in self._known.items():
            if known.since > end:
                break
            past.append(id)
        for id in past:
            self._forget(id)

    def _forget(self, id: OnceId) -> None:
        if self._known.pop(id).is_stored:
            self._context.effects.append(Forget(_key(id)))

    def restore(self, records: dict[Key, object]) -> None:
        """Restores the ids from the records of their kind. The store returns them in another order."""
        for key, record in records.items():
            assert isinstance(record, tuple)
            since, clients = record
            known = self._known[OnceId(key[1], key[2])] = _Recipients(since, dict(clients))
            known.is_stored = True
        self._known = dict(sorted(self._known.items(), key=lambda item: item[1].since))


def _key(id: OnceId) -> Key:
    return (RECORD, *id)
