"""Recognises publications that arrived before: from clients by their references, from brokers by their ids.

`PublishLedger` has the decisions about a session's publications, which are identified by the client's references.
References count from 1. A client that lost its connection does not know which of its last publications were accepted.
After a reconnect the broker lists the references that it accepted. The client resends the rest. The broker decides
again about a refused publication. It recognises one that is being stored. One that never arrived is new. So nothing is
published twice, and nothing counts as accepted that was not.

A client sends at most a window of publications without an answer. On each connection it sends them in the order of
their references, and receives answers in the order in which the broker gave them. So it may have missed the latest
refusals. It has received a refusal if it sent a window of other publications after it on the same connection.

`SeenPublications` has a bounded window for each source. A source never has an unsettled publication that is more than a
window older than its newest. Each publication within the window takes one bit. An older publication can still arrive,
from a broker that learned late of a subscription. Then it is unknown whether it arrived before, unless it is one of
those that are remembered beyond the window: a copy over a slow path may come that late.
"""

from __future__ import annotations

from routing.messages import PublicationId

DEFAULT_WINDOW = 4096
REMEMBERED_WINDOWS = 4
"""Arrivals are remembered for so many windows, to recognise late copies."""
INCARNATIONS = 8
"""The number of incarnations of each broker that are remembered."""
MOST_REFUSED = 8_192
"""The largest number of refused references in a greeting, however large the window."""


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


class PublishLedger:
    __slots__ = ("_being_stored", "_highest", "_refused", "_window")

    def __init__(self, window: int, record: object = 0) -> None:
        """`record` is the stored record of an earlier incarnation of the broker."""
        self._window = min(window, MOST_REFUSED)
        self._being_stored: dict[int, None] = {}
        highest, refused = record if isinstance(record, tuple) else (record, ())
        assert isinstance(highest, int)
        self._highest = highest
        self._refused: dict[int, int] = dict.fromkeys(refused, highest)
        """References refused here or never received, with the highest reference at that time. The ones whose refusal
        the client may have missed come last."""

    def is_new(self, reference: int) -> bool:
        """Whether the publication is neither accepted nor being stored."""
        return reference > self._highest or reference in self._refused

    def begin_store(self, reference: int) -> None:
        self._advance(reference)
        self._refused.pop(reference, None)
        self._being_stored[reference] = None

    def accept(self, reference: int) -> None:
        if reference > self._highest or self._refused:
            self._advance(reference)
            self._refused.pop(reference, None)
        self._being_stored.pop(reference, None)

    def refuse(self, reference: int) -> None:
        self._advance(reference)
        self._refused.pop(reference, None)
        self._refused[reference] = self._highest
        self._forget_received()

    def _advance(self, reference: int) -> None:
        before = self._highest
        if reference <= before:
            return
        self._highest = reference
        if reference > before + 1:
            # The driver refuses some publications before they reach the core.
            for missing in range(max(before + 1, reference - self._window), reference):
                self._refused[missing] = reference
        if self._refused:
            self._forget_received()

    def _forget_received(self) -> None:
        while self._refused:
            oldest = next(iter(self._refused))
            if len(self._refused) <= self._window and self._refused[oldest] > self._highest - self._window:
                break
            del self._refused[oldest]

    def resume(self) -> tuple[int, tuple[int, ...]]:
        """Starts a new connection of the session.

        Returns the last accepted reference, and the earlier references that are not accepted.
        """
        # The client resends those before any new publication. They may be refused again, here or by the driver.
        self._refused = dict.fromkeys(sorted(self._refused), self._highest)
        missing = sorted({**self._refused, **self._being_stored})
        accepted_through = self._highest
        while missing and missing[-1] == accepted_through:
            missing.pop()
            accepted_through -= 1
        return accepted_through, tuple(missing)

    def to_record(self) -> object:
        """The record that is stored in one transaction with a publication. That one and all earlier ones are stored
        then."""
        return (self._highest, tuple(self._refused)) if self._refused else self._highest
