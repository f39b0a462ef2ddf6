"""Publications whose deliveries a durable broker has stored.

The record of an arrival lists the deliveries that clients have not acknowledged. It stays, empty, while a copy of the
publication may still arrive. So a restart does not deliver the publication twice.

An acknowledged delivery may stay in a record that other clients still need: the client's own record says up to which
number it has acknowledged. A dropped delivery has no such mark, so the record is written again without it.
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
        self._deliveries: dict[PublicationId, dict[str, Deliver]] = {}
        """For each publication, the deliveries that are not over, by client."""
        self.outdated: dict[PublicationId, None] = {}
        """Publications whose records list dropped deliveries. `store_dropped` writes these records."""

    def __contains__(self, publication: object) -> bool:
        return publication in self._deliveries

    def add(self, publication: PublicationId, deliveries: Iterable[Deliver]) -> None:
        self._deliveries[publication] = {each.client: each for each in deliveries}

    def forget_delivery(self, delivery: Deliver) -> None:
        """Removes a delivery that need not be repeated. With the last one, the record becomes empty."""
        left = self._deliveries.get(delivery.publication)
        if left is not None and left.pop(delivery.client, None) is not None and not left:
            self._context.effects.append(Persist(arrival_key(delivery.publication), ()))

    def drop_delivery(self, delivery: Deliver) -> None:
        """Removes a dropped delivery. `store_dropped` removes it from the record."""
        self.forget_delivery(delivery)
        if self._deliveries.get(delivery.publication):
            self.outdated[delivery.publication] = None

    def store_dropped(self) -> None:
        """Writes the records that list dropped deliveries again. Several clients may have dropped the same
        publication, so this is done once for each input."""
        for publication in self.outdated:
            left = self._deliveries.get(publication)
            if left:
                self._context.effects.append(Persist(arrival_key(publication), tuple(left.values())))
        self.outdated.clear()

    def forget_past(self) -> None:
        """Forgets empty records of publications of which no copy can arrive any more."""
        is_past = self._served.is_before_window
        for past in [each for each, left in self._deliveries.items() if not left and is_past(each)]:
            del self._deliveries[past]
            self._context.effects.append(Forget(arrival_key(past)))
