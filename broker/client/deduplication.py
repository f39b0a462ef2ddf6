"""Detection of duplicate deliveries: a broker may resend publications that it has no acknowledgement for.

A broker resends only deliveries that were in flight when a connection broke, at most a window of them. After a failover
another broker may deliver the same publication, for as long as brokers keep it for this client. Of those, the latest
tens of thousands are recognised.
"""

from __future__ import annotations

from routing.messages import PublicationId

GENERATION = 16_384


class SeenDeliveries:
    """A bounded set of publication ids, in two generations. A full younger generation replaces the older one."""

    __slots__ = ("_generation", "_kept", "_older", "_younger")

    def __init__(self, generation: int = GENERATION) -> None:
        self._generation = generation
        self._younger: dict[PublicationId, None] = {}
        self._older: dict[PublicationId, None] = {}
        self._kept: dict[str, tuple[frozenset[PublicationId], frozenset[PublicationId]]] = {}

    def add_if_new(self, publication: PublicationId) -> bool:
        """Adds the id. Returns False if it was already there."""
        younger = self._younger
        if publication in younger or publication in self._older or self._is_kept(publication):
            return False
        younger[publication] = None
        if len(younger) >= self._generation:
            self._older, self._younger = younger, {}
        return True

    def keep_latest(self, broker: str, count: int) -> None:
        """Keeps the latest ids after a connection to `broker` broke, however long the client uses other brokers."""
        latest = frozenset((*self._older, *self._younger)[-count:])
        # Duplicates on this connection are not among the latest, so those of the previous connection are kept too.
        previous, _ = self._kept.get(broker, (frozenset(), frozenset()))
        self._kept[broker] = (latest, previous)

    def _is_kept(self, publication: PublicationId) -> bool:
        for latest, previous in self._kept.values():
            if publication in latest or publication in previous:
                return True
        return False

    def __len__(self) -> int:
        return len(self._younger) + len(self._older)
