"""Reliable updates: ordered changes of entries from a source to each destination, repeated until acknowledged.

Between a source and a destination there is one sequence of batches. The destination applies each batch once, in order,
and acknowledges it. The source repeats batches that are not acknowledged. An unsubscription therefore never arrives
before the subscription that it ends, and a destination need not remember withdrawn entries.

An unreachable destination keeps its entries, and receives later changes when it is reachable again. The source begins
a new epoch when too many changes are pending, or when the source or the destination has restarted. An epoch starts with
an opening, which lists all entries and may take several batches. The destination applies an added entry at once. It
removes entries that the opening does not repeat when the opening is complete, so a restart of the source leaves no
gap. A source that recovers from a restart leaves its openings unfinished until it has received all entries that it
passes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from msgspec.structs import replace

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
"""The limits of one batch, in changes and in characters of expressions, so that it fits into a frame everywhere."""

MOST_UNACKNOWLEDGED = 256
"""The limit of unacknowledged batches for one destination. Beyond it the source starts a new epoch, whose opening is
shorter."""
MOST_PENDING = 4096
"""The limit of pending changes for an unreachable destination. Beyond it the destination receives an opening when it is
reachable again."""

Key: TypeAlias = tuple[str, EntryId, EntryId | None]


def key_of(change: Change) -> Key:
    """Returns the key of the entry that the change concerns."""
    if isinstance(change, Advertise | Unadvertise):
        return ("advertisement", change.entry, None)
    return ("subscription", change.entry, change.tree)


def withdrawal_of(change: Change) -> Change:
    """Returns the change that withdraws the entry of an added one."""
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
    """The state of the sequence of batches to one destination."""

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
        """Whether this epoch's first batch exists. Until then the opening is built from the present entries."""
        self.is_opening = False
        """Whether the opening was begun and is not complete."""
        self.has_inquiry = False
        """Whether the destination requested an empty batch after the last change."""
        self.is_reachable = True
        self.pending: list[Change] = []
        self.unacknowledged: dict[int, tuple[_Batch, int]] = {}
        """Batches by sequence number, each with the tick in which it was last sent."""

    def add(self, change: Change) -> None:
        """Adds a pending change, unless the next opening will contain it."""
        if self.is_started:
            self.pending.append(change)
            if len(self.pending) > MOST_PENDING:
                self.start_over()

    def start_over(self) -> None:
        """Starts a new epoch."""
        self.epoch += 1
        self.next_sequence = 0
        self.is_started = False
        self.pending.clear()
        self.unacknowledged.clear()


class UpdateSender:
    """The source's side in one domain. It collects changes, and `flush` turns them into updates."""

    def __init__(self, me: str, incarnation: int, domain: str) -> None:
        self._me = me
        self._incarnation = incarnation
        self._domain = domain
        self._tick = 0
        self._is_complete = True
        self._for_all: dict[Key, Change] = {}
        self._for_one: dict[str, dict[Key, Change]] = {}
        self._destinations: dict[str, _DestinationState] = {}
        self.unflushed: dict[str, None] = {}
        """Destinations with changes that are not sent yet."""
        self.withdrawn_advertisements: dict[EntryId, Unadvertise] = {}
        """Withdrawn advertisements that every opening must list. Empty unless the owner adds some."""

    def leave_openings_unfinished(self) -> None:
        """Leaves openings unfinished, because the source does not know all its entries yet."""
        self._is_complete = False

    def finish_openings(self) -> None:
        """Completes the unfinished openings."""
        self._is_complete = True
        for destination, state in self._destinations.items():
            if state.is_opening or not state.is_started:
                self.unflushed[destination] = None

    def send_to_all(self, change: Change) -> None:
        """Queues a change for every broker of the domain, including those that join later."""
        _put(self._for_all, change)
        for destination, state in self._destinations.items():
            state.add(change)
            self.unflushed[destination] = None

    def send(self, destination: str, change: Change) -> None:
        """Queues a change for one destination."""
        _put(self._for_one.setdefault(destination, {}), change)
        state = self._destinations.get(destination)
        if state is not None:
            state.add(change)
            self.unflushed[destination] = None

    def set_reachable(self, destination: str, incarnation: int) -> None:
        """Records that the destination is reachable. For a new incarnation, which has no entries, it starts a new
        epoch."""
        state = self._destinations.get(destination)
        if state is None:
            state = self._destinations[destination] = _DestinationState(incarnation)
        elif state.incarnation != incarnation:
            state.incarnation = incarnation
            state.start_over()
        elif state.is_reachable:
            return
        state.is_reachable = True
        self.unflushed[destination] = None

    def set_unreachable(self, destination: str) -> None:
        if destination in self._destinations:
            self._destinations[destination].is_reachable = False

    def remove_destination(self, destination: str) -> None:
        """Removes a destination that has left for good."""
        self._destinations.pop(destination, None)
        self._for_one.pop(destination, None)
        self.unflushed.pop(destination, None)

    def is_up_to_date(self, destination: str) -> bool:
        """Whether the destination has acknowledged all changes."""
        state = self._destinations.get(destination)
        if state is None or state.unacknowledged or state.pending or state.is_opening:
            return False
        return state.is_started or not (self._for_all or self._for_one.get(destination))

    def receive_acknowledgement(self, acknowledgement: UpdateAcknowledged) -> None:
        state = self._destinations.get(acknowledgement.source)
        if (
            state is None
            or acknowledgement.destination_incarnation != self._incarnation
            or state.epoch != acknowledgement.epoch
            or state.incarnation != acknowledgement.incarnation
        ):
            return
        for sequence in [each for each in state.unacknowledged if each <= acknowledgement.sequence]:
            del state.unacknowledged[sequence]
        if acknowledgement.is_inquiry and not state.unacknowledged:
            state.has_inquiry = True
            self.unflushed[acknowledgement.source] = None

    def receive_resend_request(self, request: Resend) -> None:
        state = self._destinations.get(request.source)
        if state is None:
            return
        if state.epoch == request.epoch:
            state.start_over()
        if not state.is_started:
            self.unflushed[request.source] = None

    def flush(self) -> list[Update]:
        """Returns updates for all collected changes. Destinations with the same batch share an update."""
        if not self.unflushed:
            return []
        groups = _BatchGroups()
        for destination in self.unflushed:
            state = self._destinations[destination]
            if state.is_reachable:
                for batch in self._pop_batches(destination, state):
                    groups.add(batch, Turn(destination, state.epoch, state.next_sequence))
                    state.unacknowledged[state.next_sequence] = (batch, self._tick)
                    state.next_sequence += 1
        self.unflushed = {name: None for name in self.unflushed if not self._destinations[name].is_reachable}
        return [self._update(turns, batch) for batch, turns in groups.items()]

    def _pop_batches(self, destination: str, state: _DestinationState) -> list[_Batch]:
        if len(state.unacknowledged) >= MOST_UNACKNOWLEDGED:
            state.start_over()
        if not state.is_started:
            return self._start_opening(destination, state)
        pending, state.pending = state.pending, []
        has_inquiry, state.has_inquiry = state.has_inquiry, False
        if state.is_opening:
            return self._continue_opening(pending, state)
        batches = [_Batch(changes) for changes in _batches(pending)]
        return [*batches, _Batch(())] if has_inquiry else batches

    def _continue_opening(self, changes: list[Change], state: _DestinationState) -> list[_Batch]:
        batches = [_Batch(some, is_unfinished=True) for some in _batches(changes)]
        if self._is_complete:
            state.is_opening = False
            last = batches.pop().changes if batches else ()
            batches.append(_Batch(last))
        return batches

    def _start_opening(self, destination: str, state: _DestinationState) -> list[_Batch]:
        everything = [
            *self.withdrawn_advertisements.values(),
            *self._for_all.values(),
            *self._for_one.get(destination, {}).values(),
        ]
        # A destination that never received an entry needs no empty opening. It can request one.
        if not everything and (state.epoch == 0 or not self._is_complete):
            return []
        state.is_started = state.is_opening = True
        return self._continue_opening(everything, state)

    def repeat(self) -> list[Update]:
        """Counts a tick. Returns updates for unacknowledged batches that were sent before the last tick."""
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

    @property
    def is_repeating(self) -> bool:
        """Whether a reachable destination has yet to acknowledge a batch."""
        for state in self._destinations.values():
            if state.is_reachable and state.unacknowledged:
                return True
        return False

    def skip_ticks(self, count: int) -> None:
        """Counts ticks in which nothing is repeated."""
        self._tick += count

    def _update(self, turns: list[Turn], batch: _Batch) -> Update:
        ordered = tuple(sorted(turns))
        return Update(
            self._me, self._incarnation, self._domain, ordered, batch.changes, is_unfinished=batch.is_unfinished
        )

    @property
    def unacknowledged(self) -> int:
        return sum(len(state.unacknowledged) + len(state.pending) for state in self._destinations.values())


class _BatchGroups:
    """Turns grouped by batch. If a destination has the same batch twice, its turns are in two groups."""

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
    """Splits changes into batches within the limits."""
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
    """The changes that the receiver must apply after an update, and its answer."""

    changes: list[Change]
    """Changes to apply now, in order."""
    repeated: list[Change]
    """Known entries that a new incarnation of the source repeated."""
    withdrawn: list[Change]
    """Withdrawals of entries that a complete opening did not repeat."""
    is_complete: bool = False
    """Whether the source has sent all its entries."""
    answer: UpdateAcknowledged | Resend | None = None


class _SourceState:
    """The entries of one source, and the state of its sequence of batches."""

    __slots__ = ("early", "entries", "epoch", "incarnation", "is_restarted", "next_sequence", "opening")

    def __init__(self, incarnation: int, epoch: int, before: _SourceState | None) -> None:
        self.incarnation = incarnation
        self.epoch = epoch
        self.next_sequence = 0
        self.entries: dict[Key, Change] = before.entries if before is not None else {}
        self.is_restarted = before is not None and before.incarnation != incarnation
        self.early: dict[int, _Batch] = {}
        self.opening: set[Key] | None = set()
        """The keys in the opening, or None once it is complete. Earlier entries stay until then."""

    def add(self, batch: _Batch, result: ReceivedChanges) -> bool:
        """Applies a batch and adds its changes to `result`. Returns True if the source has sent all its entries."""
        if self.opening is None:
            for change in batch.changes:
                _put(self.entries, change)
            result.changes.extend(batch.changes)
            return not batch.changes
        for change in batch.changes:
            key = key_of(change)
            if isinstance(change, Unadvertise | Unsubscribe):
                self.opening.discard(key)
                result.changes.append(change)
            else:
                self.opening.add(key)
                if self.entries.get(key) != change:
                    result.changes.append(change)
                elif self.is_restarted:
                    result.repeated.append(change)
            _put(self.entries, change)
        if not batch.is_unfinished:
            for key in [key for key in self.entries if key not in self.opening]:
                result.withdrawn.append(withdrawal_of(self.entries.pop(key)))
            self.opening = None
        return not batch.is_unfinished


class UpdateReceiver:
    """The destination's side in one domain."""

    def __init__(self, me: str, incarnation: int, domain: str) -> None:
        self._me = me
        self._incarnation = incarnation
        self._domain = domain
        self._sources: dict[str, _SourceState] = {}
        self._earliest: dict[str, int] = {}
        """The lowest valid incarnation of a source. Updates of earlier ones may still be in flight and are ignored."""

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
        # Batches that arrived early may have added entries again that the opening left out.
        withdrawn = [change for change in result.withdrawn if key_of(change) not in state.entries]
        return result._replace(
            withdrawn=withdrawn, is_complete=is_complete, answer=self._acknowledgement(update.source, state)
        )

    def drop_older_incarnations(self, source: str, incarnation: int) -> list[Change]:
        """Removes the entries of earlier incarnations of a source that has left. Returns their withdrawals."""
        self._earliest[source] = incarnation
        state = self._sources.get(source)
        if state is None or state.incarnation >= incarnation:
            return []
        del self._sources[source]
        return [withdrawal_of(change) for change in state.entries.values()]

    def is_complete(self, source: str, incarnation: int) -> bool:
        """Whether this incarnation of the source, or a later one, has completed its opening."""
        state = self._sources.get(source)
        return state is not None and state.incarnation >= incarnation and state.opening is None

    def has_older_entries(self, source: str, incarnation: int) -> bool:
        """Whether entries of the source are, or may be, from an earlier incarnation."""
        state = self._sources.get(source)
        return state is not None and (state.incarnation < incarnation or state.opening is not None)

    def opening_request(self, source: str, incarnation: int) -> Resend | None:
        """Returns a request for this incarnation's opening. Returns None if part of it arrived: the source repeats the
        rest."""
        state = self._sources.get(source)
        if state is not None and state.incarnation >= incarnation:
            return None
        return self._resend(source, 0)

    def inquiry(self, source: str) -> UpdateAcknowledged | Resend:
        """Returns a message that asks whether the source has sent all its changes."""
        state = self._sources.get(source)
        if state is None:
            return self._resend(source, 0)
        return replace(self._acknowledgement(source, state), is_inquiry=True)

    def entries_from(self, source: str) -> tuple[Change, ...]:
        """Returns the present entries of the source."""
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
