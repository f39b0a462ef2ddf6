"""Advertisements that clients have withdrawn and that other brokers still need.

Other brokers send their late subscriptions to this broker because of an advertisement. So the advertisement stays known
to them while publications under it are retained or being stored.
"""

from __future__ import annotations

from collections import Counter

from broker.core.context import CoreContext
from routing.messages import EntryId, PublicationId


class AdvertisementUse:
    def __init__(self, context: CoreContext) -> None:
        self._router = context.router
        self._being_stored: dict[PublicationId, EntryId | None] = {}
        """Publications of clients here that are accepted when they are stored, with the advertisement that permits
        them."""
        self._retained: Counter[EntryId] = Counter()
        """For each advertisement, the number of retained publications under it."""
        self._ending: dict[EntryId, None] = {}
        """Withdrawn advertisements that are still in use."""

    def begin_store(self, publication: PublicationId, entry: EntryId | None) -> None:
        self._being_stored[publication] = entry

    def end_store(self, publication: PublicationId) -> None:
        self._being_stored.pop(publication, None)

    def retain(self, entry: EntryId | None) -> None:
        """Counts a publication that is retained under the advertisement."""
        if entry is not None:
            self._retained[entry] += 1

    def release(self, entry: EntryId | None) -> None:
        """Counts a publication that is no longer retained."""
        if entry is not None:
            self._retained[entry] -= 1
            if not self._retained[entry]:
                del self._retained[entry]

    def unadvertise(self, entry: EntryId) -> None:
        """Ends an advertisement for publishers here at once, and for other brokers when it is no longer in use."""
        self._router.deactivate_advertisement(entry)
        if self._is_used(entry):
            self._ending[entry] = None
        else:
            self._router.unadvertise(entry)

    def end_unused(self) -> None:
        """Withdraws from other brokers the advertisements that are no longer in use."""
        for entry in [each for each in self._ending if not self._is_used(each)]:
            del self._ending[entry]
            self._router.unadvertise(entry)

    def _is_used(self, entry: EntryId) -> bool:
        return entry in self._retained or entry in self._being_stored.values()
