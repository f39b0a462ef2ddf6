"""Which publications were here before: a window for each source, so that memory is bounded.

A source never has a publication in flight that is more than a window older than its newest. So whatever is older than
that was settled, and whatever is within it is remembered by one bit.
"""

from __future__ import annotations

from routing.messages import PublicationId

DEFAULT_WINDOW = 4096


class SeenPublications:
    def __init__(self, window: int = DEFAULT_WINDOW) -> None:
        self._window = window
        self._sources: dict[tuple[str, int], tuple[int, int]] = {}
        """For each source: the highest counter seen, and a bit for each of the window's counters below it."""

    def take(self, publication: PublicationId) -> bool:
        """Is it new? Then it is remembered."""
        source = (publication.broker, publication.incarnation)
        highest, bits = self._sources.get(source, (-1, 0))
        behind = highest - publication.counter
        if behind >= self._window or (behind >= 0 and bits >> behind & 1):
            return False
        if behind < 0:
            bits = (bits << -behind) & ((1 << self._window) - 1) | 1
            highest = publication.counter
        else:
            bits |= 1 << behind
        self._sources[source] = (highest, bits)
        return True

    def is_past(self, publication: PublicationId) -> bool:
        """Is it so old that no copy of it can come any more?"""
        highest, _ = self._sources.get((publication.broker, publication.incarnation), (-1, 0))
        return highest - publication.counter >= self._window

    def forget_older(self, broker: str, incarnation: int) -> None:
        """Earlier incarnations of a broker send nothing any more, once their publications were settled."""
        for source in [each for each in self._sources if each[0] == broker and each[1] < incarnation]:
            del self._sources[source]

    def __len__(self) -> int:
        return len(self._sources)
