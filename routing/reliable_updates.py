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
MOST_PENDING = 4096
"""Changes for a destination that cannot be reached; beyond, it hears everything anew when it can."""

Key: TypeAlias = tuple[str, EntryId, EntryId | None]


def key_of(change: Change) -> Key:
    if isinstance(change, Advertise | Unadvertise):
        return ("advertisement", change.entry, None)
    return ("subscription", change.entry, change.tree)


def withdrawal_of(change: Change) -> Change:
    if isinstance(change, Advertise):
        return Unadvertise(change.entry)
    if isinstance(change, Subscribe):
        return Unsubscribe(change.entry, change.tree)
    return change


@dataclass(frozen=True, slots=True)
class _Batch:
    changes: tuple[Change, ...]
    is_unfinished: bool = False


class _DestinationState:
    """What one destination was told."""

    __slots__ = (
        "epoch",
        "has_inquiry",
        "incarnation",
        "is_opening",
        "is_reachable",
        "is_started",
        "next_sequence",
        "pending",
        "unacknowledged",
    )

    def __init__(self, incarnation: int) -> None:
        self.incarnation = incarnation
        self.epoch = 0
        self.next_sequence = 0
        self.is_started = False
        """This epoch's first batch was made. Until then, everything is told from the entries themselves."""
        self.is_opening = False
        """The opening was begun and more of it is to come."""
        self.has_inquiry = False
        """The destination wants to hear if there is nothing more to tell."""
        self.is_reachable = True
        self.pending: list[Change] = []
        self.unacknowledged: dict[int, tuple[_Batch, int]] = {}
        """Batches by sequence number, with the tick in which they were last sent."""

    def add(self, change: Change) -> None:
        if self.is_started:
            self.pending.append(change)
            if len(self.pending) > MOST_PENDING:
                self.start_over()

    def start_over(self) -> None:
        self.epoch += 1
        self.next_sequence = 0
        self.is_started = False
        self.pending.clear()
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
        self._destinations: dict[str, _DestinationState] = {}
        self._unflushed: dict[str, None] = {}
        self.withdrawn_advertisements: dict[EntryId, Unadvertise] = {}
        """Entries that are gone and that a destination which starts to listen must hear of all the same; none, unless
        the owner puts them here."""

    def leave_openings_unfinished(self) -> None:
        """Leaves openings unfinished: the source does not know yet all that it has to tell."""
        self._is_complete = False

    def finish_openings(self) -> None:
        """Completes the openings that were left unfinished."""
        self._is_complete = True
        for destination, state in self._destinations.items():
            if state.is_opening or not state.is_started:
                self._unflushed[destination] = None

    def send_to_all(self, change: Change) -> None:
        """For every broker of the domain, those to come included."""
        _put(self._for_all, change)
        for destination, state in self._destinations.items():
            state.add(change)
            self._unflushed[destination] = None

    def send(self, destination: str, change: Change) -> None:
        _put(self._for_one.setdefault(destination, {}), change)
        state = self._destinations.get(destination)
        if state is not None:
            state.add(change)
            self._unflushed[destination] = None

    def set_reachable(self, destination: str, incarnation: int) -> None:
        """The destination can be reached. A new incarnation of it knows nothing and asked for nothing yet."""
        state = self._destinations.get(destination)
        if state is None:
            state = self._destinations[destination] = _DestinationState(incarnation)
        elif state.incarnation != incarnation:
            state.incarnation = incarnation
            state.start_over()
        elif state.is_reachable:
            return
        state.is_reachable = True
        self._unflushed[destination] = None

    def set_unreachable(self, destination: str) -> None:
        if destination in self._destinations:
            self._destinations[destination].is_reachable = False

    def remove_destination(self, destination: str) -> None:
        """The destination left for good."""
        self._destinations.pop(destination, None)
        self._for_one.pop(destination, None)
        self._unflushed.pop(destination, None)

    def is_up_to_date(self, destination: str) -> bool:
        """The destination has acknowledged everything that there is to tell."""
        state = self._destinations.get(destination)
        if state is None or state.unacknowledged or state.pending or state.is_opening:
            return False
        return state.is_started or not (self._for_all or self._for_one.get(destination))

    def receive_acknowledgement(self, acknowledgement: UpdateAcknowledged) -> None:
        state = self._destinations.get(acknowledgement.source)
        if (
            state is None
            or acknowledgement.heard != self._incarnation
            or state.epoch != acknowledgement.epoch
            or state.incarnation != acknowledgement.incarnation
        ):
            return
        for sequence in [each for each in state.unacknowledged if each <= acknowledgement.sequence]:
            del state.unacknowledged[sequence]
        if acknowledgement.is_inquiry and not state.unacknowledged:
            state.has_inquiry = True
            self._unflushed[acknowledgement.source] = None

    def receive_resend_request(self, request: Resend) -> None:
        state = self._destinations.get(request.source)
        if state is None:
            return
        if state.epoch == request.epoch:
            state.start_over()
        if not state.is_started:
            self._unflushed[request.source] = None

    def flush(self) -> list[Update]:
        """The updates for all that was collected; destinations that hear the same share one."""
        if not self._unflushed:
            return []
        groups = _BatchGroups()
        for destination in self._unflushed:
            state = self._destinations[destination]
            if state.is_reachable:
                for batch in self._next_batches(destination, state):
                    groups.add(batch, Turn(destination, state.epoch, state.next_sequence))
                    state.unacknowledged[state.next_sequence] = (batch, self._tick)
                    state.next_sequence += 1
        self._unflushed = {name: None for name in self._unflushed if not self._destinations[name].is_reachable}
        return [self._update(turns, batch) for batch, turns in groups.items()]

    def _next_batches(self, destination: str, state: _DestinationState) -> list[_Batch]:
        if len(state.unacknowledged) >= MOST_UNACKNOWLEDGED:
            state.start_over()
        if not state.is_started:
            return self._opening(destination, state)
        pending, state.pending = state.pending, []
        has_inquiry, state.has_inquiry = state.has_inquiry, False
        if state.is_opening:
            return self._more_of_opening(pending, state)
        batches = [_Batch(changes) for changes in _batches(pending)]
        return [*batches, _Batch(())] if has_inquiry else batches

    def _more_of_opening(self, changes: list[Change], state: _DestinationState) -> list[_Batch]:
        batches = [_Batch(some, is_unfinished=True) for some in _batches(changes)]
        if self._is_complete:
            state.is_opening = False
            last = batches.pop().changes if batches else ()
            batches.append(_Batch(last))
        return batches

    def _opening(self, destination: str, state: _DestinationState) -> list[_Batch]:
        everything = [
            *self.withdrawn_advertisements.values(),
            *self._for_all.values(),
            *self._for_one.get(destination, {}).values(),
        ]
        # A destination that was never told anything need not be told that there is nothing. Who wants to know asks.
        if not everything and (state.epoch == 0 or not self._is_complete):
            return []
        state.is_started = state.is_opening = True
        return self._more_of_opening(everything, state)

    def repeat(self) -> list[Update]:
        """Called once a tick: what was sent before the last tick and is not acknowledged is sent again."""
        self._tick += 1
        groups = _BatchGroups()
        for destination, state in self._destinations.items():
            if not state.is_reachable:
                continue
            for sequence, (batch, sent) in state.unacknowledged.items():
                if sent < self._tick - 1:
                    state.unacknowledged[sequence] = (batch, self._tick)
                    groups.add(batch, Turn(destination, state.epoch, sequence))
        return [self._update(turns, batch) for batch, turns in groups.items()]

    def _update(self, turns: list[Turn], batch: _Batch) -> Update:
        ordered = tuple(sorted(turns))
        return Update(
            self._me, self._incarnation, self._domain, ordered, batch.changes, is_unfinished=batch.is_unfinished
        )

    @property
    def unacknowledged(self) -> int:
        return sum(len(state.unacknowledged) + len(state.pending) for state in self._destinations.values())


class _BatchGroups:
    """Turns that hear the same changes. A destination that hears them twice has a turn in two groups."""

    def __init__(self) -> None:
        self._groups: dict[tuple[_Batch, int], dict[str, Turn]] = {}

    def add(self, batch: _Batch, turn: Turn) -> None:
        repetition = 0
        while turn.destination in self._groups.get((batch, repetition), {}):
            repetition += 1
        self._groups.setdefault((batch, repetition), {})[turn.destination] = turn

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


class ReceivedChanges(NamedTuple):
    """What an update brought."""

    changes: list[Change]
    """To be applied now, in order."""
    repeated: list[Change]
    """Entries that were known and that a new incarnation of the source tells again."""
    withdrawn: list[Change]
    """The ends of entries that a complete opening did not repeat."""
    is_complete: bool = False
    """The source says that this is all that it has to tell."""
    answer: UpdateAcknowledged | Resend | None = None


class _SourceState:
    """What one source told."""

    __slots__ = ("early", "entries", "epoch", "incarnation", "is_restarted", "next_sequence", "opening")

    def __init__(self, incarnation: int, epoch: int, before: _SourceState | None) -> None:
        self.incarnation = incarnation
        self.epoch = epoch
        self.next_sequence = 0
        self.entries: dict[Key, Change] = before.entries if before is not None else {}
        self.is_restarted = before is not None and before.incarnation != incarnation
        self.early: dict[int, _Batch] = {}
        self.opening: set[Key] | None = set()
        """The keys that the epoch started with, until that is complete; what was held before stays until then."""

    def add(self, batch: _Batch, state: ReceivedChanges) -> bool:
        """Returns True if the source says that this is all."""
        if self.opening is None:
            for change in batch.changes:
                _put(self.entries, change)
            state.changes.extend(batch.changes)
            return not batch.changes
        for change in batch.changes:
            key = key_of(change)
            if isinstance(change, Unadvertise | Unsubscribe):
                self.opening.discard(key)
                state.changes.append(change)
            else:
                self.opening.add(key)
                if self.entries.get(key) != change:
                    state.changes.append(change)
                elif self.is_restarted:
                    state.repeated.append(change)
            _put(self.entries, change)
        if not batch.is_unfinished:
            for key in [key for key in self.entries if key not in self.opening]:
                state.withdrawn.append(withdrawal_of(self.entries.pop(key)))
            self.opening = None
        return not batch.is_unfinished


class UpdateReceiver:
    """The destination's side, in one domain."""

    def __init__(self, me: str, incarnation: int, domain: str) -> None:
        self._me = me
        self._incarnation = incarnation
        self._domain = domain
        self._sources: dict[str, _SourceState] = {}
        self._earliest: dict[str, int] = {}
        """The incarnation of a source from which on it counts: what an earlier one said may still be under way."""

    def receive(self, update: Update, turn: Turn) -> ReceivedChanges:
        if update.incarnation < self._earliest.get(update.source, 0):
            return ReceivedChanges([], [], [])
        state = self._sources.get(update.source)
        stage = (update.incarnation, turn.epoch)
        if state is None or (state.incarnation, state.epoch) < stage:
            if turn.sequence > 0:
                return ReceivedChanges([], [], [], answer=self._resend(update.source, turn.epoch))
            state = self._sources[update.source] = _SourceState(*stage, state)
        elif (state.incarnation, state.epoch) > stage:
            return ReceivedChanges([], [], [])
        if state.next_sequence <= turn.sequence < state.next_sequence + MOST_UNACKNOWLEDGED:
            state.early[turn.sequence] = _Batch(update.changes, update.is_unfinished)
        result = ReceivedChanges([], [], [])
        is_complete = False
        while state.next_sequence in state.early:
            is_complete = state.add(state.early.pop(state.next_sequence), result)
            state.next_sequence += 1
        # Batches that came early may have told again, after the opening, what it left out.
        withdrawn = [change for change in result.withdrawn if key_of(change) not in state.entries]
        return result._replace(
            withdrawn=withdrawn, is_complete=is_complete, answer=self._acknowledgement(update.source, state)
        )

    def drop_older_incarnations(self, source: str, incarnation: int) -> list[Change]:
        """Drops what earlier incarnations of a source told that has left. Returns the ends of those entries."""
        self._earliest[source] = incarnation
        state = self._sources.get(source)
        if state is None or state.incarnation >= incarnation:
            return []
        del self._sources[source]
        return [withdrawal_of(change) for change in state.entries.values()]

    def is_complete(self, source: str, incarnation: int) -> bool:
        """This incarnation of the source, or a later one, has told all that it had to tell."""
        state = self._sources.get(source)
        return state is not None and state.incarnation >= incarnation and state.opening is None

    def has_older_entries(self, source: str, incarnation: int) -> bool:
        """What is held from the source is from an earlier incarnation, or may be."""
        state = self._sources.get(source)
        return state is not None and (state.incarnation < incarnation or state.opening is not None)

    def opening_request(self, source: str, incarnation: int) -> Resend | None:
        """The request for this incarnation's opening; None if some of it came: the source repeats the rest."""
        state = self._sources.get(source)
        if state is not None and state.incarnation >= incarnation:
            return None
        return self._resend(source, 0)

    def inquiry(self, source: str) -> UpdateAcknowledged | Resend:
        """Asks whether the source has told everything."""
        state = self._sources.get(source)
        if state is None:
            return self._resend(source, 0)
        return replace(self._acknowledgement(source, state), is_inquiry=True)

    def entries_from(self, source: str) -> tuple[Change, ...]:
        state = self._sources.get(source)
        return tuple(state.entries.values()) if state is not None else ()

    def _acknowledgement(self, source: str, state: _SourceState) -> UpdateAcknowledged:
        return UpdateAcknowledged(
            self._me,
            self._incarnation,
            self._domain,
            (source,),
            state.incarnation,
            state.epoch,
            state.next_sequence - 1,
        )

    def _resend(self, source: str, epoch: int) -> Resend:
        return Resend(self._me, self._incarnation, self._domain, (source,), epoch)
