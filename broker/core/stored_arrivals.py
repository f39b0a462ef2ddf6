"""Publications whose deliveries a durable broker has stored.

The record of an arrival lists the deliveries that clients have not acknowledged. It stays, empty, while a copy of the
publication may still arrive. So a restart does not deliver the publication twice.
"""

from __future__ import annotations

from collections.abc import Iterable

from broker.core.context import CoreContext
from broker.core.deduplication import SeenPublications
from broker.core.effects import Deliver, Forget, Persist
from routing.messages import PublicationId

Key = tuple[str, ...]


def arrival_key(publication: PublicationId) -> Key:
    """The key of an arrival's record in the store."""
    return ("arrival", *map(str, publication))


class StoredArrivals:
    def __init__(self, context: CoreContext, served: SeenPublications) -> None:
        self._context = context
        self._served = served
        self._clients: dict[PublicationId, set[str]] = {}
        """For each publication, the clients that have not acknowledged it."""

    def __contains__(self, publication: object) -> bool:
        return publication in self._clients

    def add(self, publication: PublicationId, clients: Iterable[str]) -> None:
        self._clients[publication] = set(clients)

    def forget_delivery(self, delivery: Deliver) -> None:
        """Removes a delivery that need not be repeated. With the last one, the record becomes empty."""
        waiting = self._clients.get(delivery.publication)
        if waiting is None or delivery.client not in waiting:
            return
        waiting.discard(delivery.client)
        if not waiting:
            self._context.effects.append(Persist(arrival_key(delivery.publication), ()))

    def forget_past(self) -> None:
        """Forgets empty records of publications of which no copy can arrive any more."""
        is_past = self._served.is_before_window
        for past in [each for each, clients in self._clients.items() if not clients and is_past(each)]:
            del self._clients[past]
            self._context.effects.append(Forget(arrival_key(past)))
