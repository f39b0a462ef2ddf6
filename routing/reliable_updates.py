"""How a broker keeps others informed: ordered changes to each destination, repeated until acknowledged.

Between a source and a destination there is one sequence of batches. The destination takes them in order, each once,
and acknowledges; the source repeats what is not acknowledged. So an unsubscription can never be overtaken by the
subscription that it ends, and a destination needs no memory of entries that are gone.

A destination that cannot be reached keeps what it was told, and hears the rest when it can be reached again. When
too much has piled up for it, or when it or the source started anew, the source begins a new epoch with everything that
there is to tell. This opening may take several batches. What it adds counts at once; what the destination held before
and the opening does not repeat goes when the opening is complete. So a restart of the source leaves no gap. A source
that recovers from a restart leaves its openings unfinished until it has heard everything that it passes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

from routing.messages import (
    Advertise,
    Change,
    EntryId,
    Resend,
    Subscribe,
    Turn,
    Unadvertise,
    Unsubscribe,
    Update,
    UpdateAcknowledged,
)

MOST_CHANGES = 1_000
MOST_TEXT = 256 * 1024
"""What one batch may hold, in changes and in characters, so that it fits into a frame anywhere."""

MOST_UNACKNOWLEDGED = 256
"""Batches for one destination; beyond, the next epoch's first batch says it all in fewer words."""
MOST_WAITING = 4096
"""Changes for a destination that cannot be reached; beyond, it hears everything anew when it can."""

Key: TypeAlias = tuple[str, EntryId, EntryId | None]


def key_of(change: Change) -> Key:
    if isinstance(change, Advertise | Unadvertise):
        return ("advertisement", change.entry, None)
    return ("subscription", change.entry, change.tree)


def undone(change: Change) -> Change:
    if isinstance(change, Advertise):
        return Unadvertise(change.entry)
    if isinstance(change, Subscribe):
        return Unsubscribe(change.entry, change.tree)
    return change


@dataclass(frozen=True, slots=True)
class _Batch:
    changes: tuple[Change, ...]
    is_unfinished: bool = False


class _Told:
    """What one destination was told."""

    __slots__ = (
        "epoch",
        "incarnation",
        "is_asked",
        "is_opening",
        "is_reachable",
        "is_started",
        "next_sequence",
        "unacknowledged",
        "waiting",
    )

    def __init__(self, incarnation: int) -> None:
        self.incarnation = incarnation
        self.epoch = 0
        self.next_sequence = 0
        self.is_started = False
        """This epoch's first batch was made. Until then, everything is told from the entries themselves."""
        self.is_opening = False
        """The opening was begun and more of it is to come."""
        self.is_asked = False
        """The destination wants to hear if there is nothing more to tell."""
        self.is_reachable = True
        self.waiting: list[Change] = []
        self.unacknowledged: dict[int, tuple[_Batch, int]] = {}
        """Batches by sequence number, with the tick in which they were last sent."""

    def add(self, change: Change) -> None:
        if self.is_started:
            self.waiting.append(change)
            if len(self.waiting) > MOST_WAITING:
                self.start_over()

    def start_over(self) -> None:
        self.epoch += 1
        self.next_sequence = 0
        self.is_started = False
        self.waiting.clear()
        self.unacknowledged.clear()


class UpdateSender:
    """The source's side, in one domain. Changes are collected, and `flush` turns them into updates."""

    def __init__(self, me: str, incarnation: int, domain: str) -> None:
        self._me = me
        self._incarnation = incarnation
        self._domain = domain
        self._tick = 0
        self._is_complete = True
        self._for_all: dict[Key, Change] = {}
        self._for_one: dict[str, dict[Key, Change]] = {}
        self._told: dict[str, _Told] = {}
        self._touched: dict[str, None] = {}
        self.ended: dict[EntryId, Unadvertise] = {}
        """Entries that are gone and that a destination which starts to listen must hear of all the same; none, unless
        the owner puts them here."""

    def leave_open(self) -> None:
        """Leaves openings unfinished: the source does not know yet all that it has to tell."""
        self._is_complete = False

    def finish(self) -> None:
        """Completes the openings that were left unfinished."""
        self._is_complete = True
        for destination, told in self._told.items():
            if told.is_opening or not told.is_started:
                self._touched[destination] = None

    def tell_all(self, change: Change) -> None:
        """For every broker of the domain, those to come included."""
        _put(self._for_all, change)
        for destination, told in self._told.items():
            told.add(change)
            self._touched[destination] = None

    def tell(self, destination: str, change: Change) -> None:
        _put(self._for_one.setdefault(destination, {}), change)
        told = self._told.get(destination)
        if told is not None:
            told.add(change)
            self._touched[destination] = None

    def reaches(self, destination: str, incarnation: int) -> None:
        """The destination can be reached. A new incarnation of it knows nothing and asked for nothing yet."""
        told = self._told.get(destination)
        if told is None:
            told = self._told[destination] = _Told(incarnation)
        elif told.incarnation != incarnation:
            told.incarnation = incarnation
            told.start_over()
        elif told.is_reachable:
            return
        told.is_reachable = True
        self._touched[destination] = None

    def cannot_reach(self, destination: str) -> None:
        if destination in self._told:
            self._told[destination].is_reachable = False

    def forget(self, destination: str) -> None:
        """The destination left for good."""
        self._told.pop(destination, None)
        self._for_one.pop(destination, None)
        self._touched.pop(destination, None)

    def has_told(self, destination: str) -> bool:
        """The destination has acknowledged everything that there is to tell."""
        told = self._told.get(destination)
        if told is None or told.unacknowledged or told.waiting or told.is_opening:
            return False
        return told.is_started or not (self._for_all or self._for_one.get(destination))

    def acknowledged(self, acknowledgement: UpdateAcknowledged) -> None:
        told = self._told.get(acknowledgement.source)
        if (
            told is None
            or acknowledgement.heard != self._incarnation
            or told.epoch != acknowledgement.epoch
            or told.incarnation != acknowledgement.incarnation
        ):
            return
        for sequence in [each for each in told.unacknowledged if each <= acknowledgement.sequence]:
            del told.unacknowledged[sequence]
        if acknowledgement.is_inquiry and not told.unacknowledged:
            told.is_asked = True
            self._touched[acknowledgement.source] = None

    def asked_to_resend(self, request: Resend) -> None:
        told = self._told.get(request.source)
        if told is None:
            return
        if told.epoch == request.epoch:
            told.start_over()
        if not told.is_started:
            self._touched[request.source] = None

    def flush(self) -> list[Update]:
        """The updates for all that was collected; destinations that hear the same share one."""
        if not self._touched:
            return []
        groups = _Groups()
        for destination in self._touched:
            told = self._told[destination]
            if told.is_reachable:
                for batch in self._next_batches(destination, told):
                    groups.add(batch, Turn(destination, told.epoch, told.next_sequence))
                    told.unacknowledged[told.next_sequence] = (batch, self._tick)
                    told.next_sequence += 1
        self._touched = {name: None for name in self._touched if not self._told[name].is_reachable}
        return [self._update(turns, batch) for batch, turns in groups.items()]

    def _next_batches(self, destination: str, told: _Told) -> list[_Batch]:
        if len(told.unacknowledged) >= MOST_UNACKNOWLEDGED:
            told.start_over()
        if not told.is_started:
            return self._opening(destination, told)
        waiting, told.waiting = told.waiting, []
        is_asked, told.is_asked = told.is_asked, False
        if told.is_opening:
            return self._more_of_opening(waiting, told)
        batches = [_Batch(changes) for changes in _batches(waiting)]
        return [*batches, _Batch(())] if is_asked else batches

    def _more_of_opening(self, changes: list[Change], told: _Told) -> list[_Batch]:
        batches = [_Batch(some, is_unfinished=True) for some in _batches(changes)]
        if self._is_complete:
            told.is_opening = False
            last = batches.pop().changes if batches else ()
            batches.append(_Batch(last))
        return batches

    def _opening(self, destination: str, told: _Told) -> list[_Batch]:
        everything = [*self.ended.values(), *self._for_all.values(), *self._for_one.get(destination, {}).values()]
        # A destination that was never told anything need not be told that there is nothing. Who wants to know asks.
        if not everything and (told.epoch == 0 or not self._is_complete):
            return []
        told.is_started = told.is_opening = True
        return self._more_of_opening(everything, told)

    def repeat(self) -> list[Update]:
        """Called once a tick: what was sent before the last tick and is not acknowledged is sent again."""
        self._tick += 1
        groups = _Groups()
        for destination, told in self._told.items():
            if not told.is_reachable:
                continue
            for sequence, (batch, sent) in told.unacknowledged.items():
                if sent < self._tick - 1:
                    told.unacknowledged[sequence] = (batch, self._tick)
                    groups.add(batch, Turn(destination, told.epoch, sequence))
        return [self._update(turns, batch) for batch, turns in groups.items()]

    def _update(self, turns: list[Turn], batch: _Batch) -> Update:
        ordered = tuple(sorted(turns))
        return Update(
            self._me, self._incarnation, self._domain, ordered, batch.changes, is_unfinished=batch.is_unfinished
        )

    @property
    def unacknowledged(self) -> int:
        return sum(len(told.unacknowledged) + len(told.waiting) for told in self._told.values())


class _Groups:
    """Turns that hear the same changes. A destination that hears them twice has a turn in two groups."""

    def __init__(self) -> None:
        self._groups: dict[tuple[_Batch, int], dict[str, Turn]] = {}

    def add(self, batch: _Batch, turn: Turn) -> None:
        again = 0
        while turn.destination in self._groups.get((batch, again), {}):
            again += 1
        self._groups.setdefault((batch, again), {})[turn.destination] = turn

    def items(self) -> Iterator[tuple[_Batch, list[Turn]]]:
        return ((batch, list(turns.values())) for (batch, _), turns in self._groups.items())


def _batches(changes: list[Change]) -> Iterator[tuple[Change, ...]]:
    batch: list[Change] = []
    text = 0
    for change in changes:
        size = len(change.expression) if isinstance(change, Advertise | Subscribe) else 0
        if batch and (len(batch) >= MOST_CHANGES or text + size > MOST_TEXT):
            yield tuple(batch)
            batch, text = [], 0
        batch.append(change)
        text += size
    if batch:
        yield tuple(batch)


def _put(entries: dict[Key, Change], change: Change) -> None:
    if isinstance(change, Advertise | Subscribe):
        entries[key_of(change)] = change
    else:
        entries.pop(key_of(change), None)


class Heard(NamedTuple):
    """What an update brought."""

    changes: list[Change]
    """To be applied now, in order."""
    repeated: list[Change]
    """Entries that were known and that a new incarnation of the source tells again."""
    gone: list[Change]
    """The ends of entries that a complete opening did not repeat."""
    is_all: bool = False
    """The source says that this is all that it has to tell."""
    answer: UpdateAcknowledged | Resend | None = None


class _Heard:
    """What one source told."""

    __slots__ = ("early", "epoch", "held", "incarnation", "is_new_life", "next_sequence", "opening")

    def __init__(self, incarnation: int, epoch: int, before: _Heard | None) -> None:
        self.incarnation = incarnation
        self.epoch = epoch
        self.next_sequence = 0
        self.held: dict[Key, Change] = before.held if before is not None else {}
        self.is_new_life = before is not None and before.incarnation != incarnation
        self.early: dict[int, _Batch] = {}
        self.opening: set[Key] | None = set()
        """The keys that the epoch started with, until that is complete; what was held before stays until then."""

    def add(self, batch: _Batch, heard: Heard) -> bool:
        """Returns True if the source says that this is all."""
        if self.opening is None:
            for change in batch.changes:
                _put(self.held, change)
            heard.changes.extend(batch.changes)
            return not batch.changes
        for change in batch.changes:
            key = key_of(change)
            if isinstance(change, Unadvertise | Unsubscribe):
                self.opening.discard(key)
                heard.changes.append(change)
            else:
                self.opening.add(key)
                if self.held.get(key) != change:
                    heard.changes.append(change)
                elif self.is_new_life:
                    heard.repeated.append(change)
            _put(self.held, change)
        if not batch.is_unfinished:
            for key in [key for key in self.held if key not in self.opening]:
                heard.gone.append(undone(self.held.pop(key)))
            self.opening = None
        return not batch.is_unfinished


class UpdateReceiver:
    """The destination's side, in one domain."""

    def __init__(self, me: str, incarnation: int, domain: str) -> None:
        self._me = me
        self._incarnation = incarnation
        self._domain = domain
        self._heard: dict[str, _Heard] = {}
        self._earliest: dict[str, int] = {}
        """The incarnation of a source from which on it counts: what an earlier one said may still be under way."""

    def receive(self, update: Update, turn: Turn) -> Heard:
        if update.incarnation < self._earliest.get(update.source, 0):
            return Heard([], [], [])
        heard = self._heard.get(update.source)
        stage = (update.incarnation, turn.epoch)
        if heard is None or (heard.incarnation, heard.epoch) < stage:
            if turn.sequence > 0:
                return Heard([], [], [], answer=self._resend(update.source, turn.epoch))
            heard = self._heard[update.source] = _Heard(*stage, heard)
        elif (heard.incarnation, heard.epoch) > stage:
            return Heard([], [], [])
        if heard.next_sequence <= turn.sequence < heard.next_sequence + MOST_UNACKNOWLEDGED:
            heard.early[turn.sequence] = _Batch(update.changes, update.is_unfinished)
        result = Heard([], [], [])
        is_all = False
        while heard.next_sequence in heard.early:
            is_all = heard.add(heard.early.pop(heard.next_sequence), result)
            heard.next_sequence += 1
        # Batches that came early may have told again, after the opening, what it left out.
        gone = [change for change in result.gone if key_of(change) not in heard.held]
        return result._replace(gone=gone, is_all=is_all, answer=self._acknowledgement(update.source, heard))

    def drop_before(self, source: str, incarnation: int) -> list[Change]:
        """Drops what earlier incarnations of a source told that has left. Returns the ends of those entries."""
        self._earliest[source] = incarnation
        heard = self._heard.get(source)
        if heard is None or heard.incarnation >= incarnation:
            return []
        del self._heard[source]
        return [undone(change) for change in heard.held.values()]

    def is_complete(self, source: str, incarnation: int) -> bool:
        """This incarnation of the source, or a later one, has told all that it had to tell."""
        heard = self._heard.get(source)
        return heard is not None and heard.incarnation >= incarnation and heard.opening is None

    def holds_older(self, source: str, incarnation: int) -> bool:
        """What is held from the source is from an earlier incarnation, or may be."""
        heard = self._heard.get(source)
        return heard is not None and (heard.incarnation < incarnation or heard.opening is not None)

    def request(self, source: str, incarnation: int) -> Resend | None:
        """The request for this incarnation's opening; None if some of it came: the source repeats the rest."""
        heard = self._heard.get(source)
        if heard is not None and heard.incarnation >= incarnation:
            return None
        return self._resend(source, 0)

    def inquiry(self, source: str) -> UpdateAcknowledged | Resend:
        """Asks whether the source has told everything."""
        heard = self._heard.get(source)
        if heard is None:
            return self._resend(source, 0)
        return replace(self._acknowledgement(source, heard), is_inquiry=True)

    def held_from(self, source: str) -> tuple[Change, ...]:
        heard = self._heard.get(source)
        return tuple(heard.held.values()) if heard is not None else ()

    def _acknowledgement(self, source: str, heard: _Heard) -> UpdateAcknowledged:
        return UpdateAcknowledged(
            self._me,
            self._incarnation,
            self._domain,
            (source,),
            heard.incarnation,
            heard.epoch,
            heard.next_sequence - 1,
        )

    def _resend(self, source: str, epoch: int) -> Resend:
        return Resend(self._me, self._incarnation, self._domain, (source,), epoch)
