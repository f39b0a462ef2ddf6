"""Which publications were here before: a window for each source, so that memory is bounded.

A source never has a publication unsettled that is more than a window older than its newest. What is within the window
is remembered by one bit. An older one can come all the same, from a broker that heard late who wants it: then nobody
knows whether it was here before.
"""

from __future__ import annotations

from routing.messages import PublicationId

DEFAULT_WINDOW = 4096
INCARNATIONS = 8
"""Of a broker's incarnations, so many are remembered."""


class SeenPublications:
    def __init__(self, window: int = DEFAULT_WINDOW) -> None:
        self._window = window
        self._sources: dict[tuple[str, int], tuple[int, int]] = {}
        """For each source: the highest counter seen, and a bit for each of the window's counters below it."""

    def add_if_new(self, publication: PublicationId) -> bool:
        """Is it new? Then it is remembered."""
        source = (publication.broker, publication.incarnation)
        highest, bits = self._sources.get(source, (-1, 0))
        behind = highest - publication.counter
        if behind >= self._window or (behind >= 0 and bits >> behind & 1):
            return False
        if behind < 0:
            # Shifted by no more than the window: a counter may have gone on by millions meanwhile.
            bits = (bits << min(-behind, self._window)) & ((1 << self._window) - 1) | 1
            highest = publication.counter
        else:
            bits |= 1 << behind
        if source not in self._sources:
            self._forget_lives_before(publication)
        self._sources[source] = (highest, bits)
        return True

    def __contains__(self, publication: PublicationId) -> bool:
        """It is remembered."""
        highest, bits = self._sources.get((publication.broker, publication.incarnation), (-1, 0))
        behind = highest - publication.counter
        return 0 <= behind < self._window and bool(bits >> behind & 1)

    def is_before_window(self, publication: PublicationId) -> bool:
        """It is so old that it is not known any more whether it was here."""
        highest, _ = self._sources.get((publication.broker, publication.incarnation), (-1, 0))
        return highest - publication.counter >= self._window

    def _forget_lives_before(self, publication: PublicationId) -> None:
        """A broker's early incarnations send nothing any more; a durable one may repeat what a few of them began."""
        lives = sorted(incarnation for broker, incarnation in self._sources if broker == publication.broker)
        for incarnation in lives[: 1 - INCARNATIONS]:
            if incarnation < publication.incarnation:
                del self._sources[publication.broker, incarnation]

    def __len__(self) -> int:
        return len(self._sources)
