"""Publications that a client has seen: a broker may send again what it holds for unacknowledged.

Only what was on the way when a connection broke can come again from the same broker, and that is never more than a
window. After a failover the same publication may come through another broker, at most as long after as brokers hold
it for this client; of those, the latest tens of thousands are recognised.
"""

from __future__ import annotations

from routing.messages import PublicationId

GENERATION = 16_384


class SeenDeliveries:
    """Two generations: when the younger is full it becomes the older one, and the older one is forgotten."""

    __slots__ = ("_generation", "_kept", "_older", "_younger")

    def __init__(self, generation: int = GENERATION) -> None:
        self._generation = generation
        self._younger: dict[PublicationId, None] = {}
        self._older: dict[PublicationId, None] = {}
        self._kept: dict[str, tuple[frozenset[PublicationId], frozenset[PublicationId]]] = {}

    def is_new(self, publication: PublicationId) -> bool:
        """Was it not here before? Then it is remembered."""
        younger = self._younger
        if publication in younger or publication in self._older or self._is_kept(publication):
            return False
        younger[publication] = None
        if len(younger) >= self._generation:
            self._older, self._younger = younger, {}
        return True

    def keep_latest(self, broker: str, count: int) -> None:
        """A connection broke: what this broker sent last is kept however long the client stays elsewhere."""
        latest = frozenset((*self._older, *self._younger)[-count:])
        # What came again on this connection is not among the latest: the previous connection's stay too.
        previous, _ = self._kept.get(broker, (frozenset(), frozenset()))
        self._kept[broker] = (latest, previous)

    def _is_kept(self, publication: PublicationId) -> bool:
        for latest, previous in self._kept.values():
            if publication in latest or publication in previous:
                return True
        return False

    def __len__(self) -> int:
        return len(self._younger) + len(self._older)
