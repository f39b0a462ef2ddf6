"""Recognises publications that arrived before, with a bounded window for each source.

A source never has an unsettled publication that is more than a window older than its newest. Each publication within
the window takes one bit. An older publication can still arrive, from a broker that learned late of a subscription. Then
it is unknown whether it arrived before, unless it is one of those that are remembered beyond the window: a copy over a
slow path may come that late.
"""

from __future__ import annotations

from routing.messages import PublicationId

DEFAULT_WINDOW = 4096
REMEMBERED_WINDOWS = 4
"""Arrivals are remembered for so many windows, to recognise late copies."""
INCARNATIONS = 8
"""The number of incarnations of each broker that are remembered."""


class SeenPublications:
    def __init__(self, window: int = DEFAULT_WINDOW) -> None:
        self._window = window
        self._remembered = REMEMBERED_WINDOWS * window
        self._mask = (1 << self._remembered) - 1
        self._sources: dict[tuple[str, int], tuple[int, int]] = {}
        """For each source: the highest counter seen, and a bit for each remembered counter below it."""

    def add_if_new(self, publication: PublicationId) -> bool:
        """Adds the id. Returns False if it was already there, or is before the window."""
        source = (publication.broker, publication.incarnation)
        highest, bits = self._sources.get(source, (-1, 0))
        behind = highest - publication.counter
        if behind >= self._window or (behind >= 0 and bits >> behind & 1):
            return False
        if behind < 0:
            # The shift is bounded, because the counter may have grown by millions meanwhile.
            bits = (bits << min(-behind, self._remembered)) & self._mask | 1
            highest = publication.counter
        else:
            bits |= 1 << behind
        if source not in self._sources:
            self._forget_old_incarnations(publication)
        self._sources[source] = (highest, bits)
        return True

    def __contains__(self, publication: PublicationId) -> bool:
        """Whether the publication arrived, as far as is remembered."""
        highest, bits = self._sources.get((publication.broker, publication.incarnation), (-1, 0))
        behind = highest - publication.counter
        return 0 <= behind < self._remembered and bool(bits >> behind & 1)

    def is_before_window(self, publication: PublicationId) -> bool:
        """Whether the publication is older than the window. It never counts as new."""
        highest, _ = self._sources.get((publication.broker, publication.incarnation), (-1, 0))
        return highest - publication.counter >= self._window

    def _forget_old_incarnations(self, publication: PublicationId) -> None:
        """Forgets a broker's old incarnations, which send nothing any more.

        The last few are remembered: a durable broker may send their publications again.
        """
        known = sorted(incarnation for broker, incarnation in self._sources if broker == publication.broker)
        for incarnation in known[: 1 - INCARNATIONS]:
            if incarnation < publication.incarnation:
                del self._sources[publication.broker, incarnation]

    def __len__(self) -> int:
        return len(self._sources)
