"""The copies that a broker forwards to its parent in a tree of filter-based routing: all, or only uncovered ones.

A subscription covers another when every publication that satisfies the other satisfies it too. The parent need not
receive the covered one: all publications for it arrive for the covering one. So brokers up the tree store fewer copies,
and the same publications come down.

The methods return changes to send, new copies before withdrawals. So a parent that has applied half of them has too
many copies, never too few. A copy that was confirmed earlier than the one that covers it is withdrawn only after a
while. Brokers that learn of it late owe it publications that they do not owe the covering one.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Protocol

from matching.expressions.intersection import Region, region_of
from matching.expressions.model import Expression
from routing.messages import EntryId, Subscribe, Unsubscribe
from routing.router import ANY_NUMBER


class Forwarding(Protocol):
    """Decides which copies of each tree the broker forwards to the tree's parent."""

    def add_copy(self, tree: EntryId, copy: Subscribe, expression: Expression) -> list[Subscribe | Unsubscribe]:
        """Adds a copy. Returns the changes to send."""

    def remove_copy(self, tree: EntryId, entry: EntryId) -> list[Subscribe | Unsubscribe]:
        """Removes a copy. Returns the changes to send."""

    def remove_tree(self, tree: EntryId) -> list[Unsubscribe]:
        """Removes a tree with all its copies. Returns the withdrawals to send."""

    def idle_ticks(self, retention_ticks: int) -> int:
        """Returns how many ticks from now on change nothing, if no copy is added or removed."""

    def skip_ticks(self, count: int) -> None:
        """Counts ticks without running them: at most `idle_ticks`."""

    def tick(self, retention_ticks: int) -> list[tuple[EntryId, Subscribe | Unsubscribe]]:
        """Counts a tick. Returns delayed changes with their trees: a copy confirmed earlier is withdrawn after
        `retention_ticks`, when no broker retains a publication accepted between the two subscriptions."""


class ForwardAll:
    """Forwards every copy."""

    def __init__(self) -> None:
        self._forwarded: dict[EntryId, dict[EntryId, None]] = {}

    def add_copy(self, tree: EntryId, copy: Subscribe, expression: Expression) -> list[Subscribe | Unsubscribe]:
        self._forwarded.setdefault(tree, {})[copy.entry] = None
        return [copy]

    def remove_copy(self, tree: EntryId, entry: EntryId) -> list[Subscribe | Unsubscribe]:
        del self._forwarded[tree][entry]
        return [Unsubscribe(entry, tree)]

    def remove_tree(self, tree: EntryId) -> list[Unsubscribe]:
        return [Unsubscribe(entry, tree) for entry in self._forwarded.pop(tree, {})]

    def idle_ticks(self, retention_ticks: int) -> int:
        return ANY_NUMBER

    def skip_ticks(self, count: int) -> None:
        """Does nothing: no change is delayed."""

    def tick(self, retention_ticks: int) -> list[tuple[EntryId, Subscribe | Unsubscribe]]:
        return []


class ForwardUncovered:
    """Forwards a copy when no forwarded copy of its tree covers it, and withdraws it when one is added that does."""

    def __init__(self) -> None:
        self._trees: dict[EntryId, _Copies] = {}
        self._now = 0
        """In ticks."""
        self._due: deque[tuple[int, EntryId, EntryId]] = deque()
        """Copies that may cover earlier ones, with their trees and the tick in which they were added."""

    def add_copy(self, tree: EntryId, copy: Subscribe, expression: Expression) -> list[Subscribe | Unsubscribe]:
        copies = self._trees.setdefault(tree, _Copies())
        before = dict(copies.forwarded)
        for wider in copies.add(copy, region_of(expression)):
            self._due.append((self._now, tree, wider))
        return _difference(before, copies.forwarded, tree)

    def idle_ticks(self, retention_ticks: int) -> int:
        return max(0, self._due[0][0] + retention_ticks - self._now - 1) if self._due else ANY_NUMBER

    def skip_ticks(self, count: int) -> None:
        self._now += count

    def tick(self, retention_ticks: int) -> list[tuple[EntryId, Subscribe | Unsubscribe]]:
        self._now += 1
        changes: list[tuple[EntryId, Subscribe | Unsubscribe]] = []
        while self._due and self._due[0][0] + retention_ticks <= self._now:
            _, tree, entry = self._due.popleft()
            copies = self._trees.get(tree, _Copies())
            before = dict(copies.forwarded)
            copies.cover_earlier(entry)
            changes += [(tree, change) for change in _difference(before, copies.forwarded, tree)]
        return changes

    def remove_copy(self, tree: EntryId, entry: EntryId) -> list[Subscribe | Unsubscribe]:
        copies = self._trees[tree]
        before = dict(copies.forwarded)
        copies.remove(entry)
        return _difference(before, copies.forwarded, tree)

    def remove_tree(self, tree: EntryId) -> list[Unsubscribe]:
        copies = self._trees.pop(tree, _Copies())
        return [Unsubscribe(entry, tree) for entry in copies.forwarded]


@dataclass(frozen=True, slots=True)
class _Copy:
    change: Subscribe
    region: Region

    def covers(self, other: _Copy) -> bool:
        """Whether this copy covers the other and was confirmed no later. An earlier copy may be owed more
        publications."""
        return self.change.since <= other.change.since and self.region.covers(other.region)


@dataclass(slots=True)
class _Copies:
    """One tree's copies. No forwarded copy covers another. Each covered copy is stored with a forwarded one that covers
    it."""

    forwarded: dict[EntryId, _Copy] = field(default_factory=dict)
    covered: dict[EntryId, tuple[_Copy, EntryId]] = field(default_factory=dict)

    def add(self, change: Subscribe, region: Region) -> list[EntryId]:
        """Adds a copy. Returns copies that cover forwarded ones but were confirmed later: both stay forwarded for a
        while."""
        copy = _Copy(change, region)
        self._insert(copy)
        if change.entry not in self.forwarded:
            return []
        others = [(name, each.region) for name, each in self.forwarded.items() if name != change.entry]
        wider = [name for name, other in others if other.covers(region)]
        return [*wider, change.entry] if any(region.covers(other) for _, other in others) else wider

    def cover_earlier(self, entry: EntryId) -> None:
        """Lets this copy cover copies that were confirmed earlier, too."""
        copy = self.forwarded.get(entry)
        if copy is not None:
            self._cover(entry, [name for name, each in self.forwarded.items() if copy.region.covers(each.region)])

    def remove(self, entry: EntryId) -> None:
        if self.covered.pop(entry, None) is not None:
            return
        del self.forwarded[entry]
        uncovered = [copy for copy, cover in self.covered.values() if cover == entry]
        for copy in uncovered:
            del self.covered[copy.change.entry]
        for copy in uncovered:
            self._insert(copy)

    def _insert(self, copy: _Copy) -> None:
        entry = copy.change.entry
        cover = next((name for name, each in self.forwarded.items() if each.covers(copy)), None)
        if cover is not None:
            self.covered[entry] = (copy, cover)
            return
        self.forwarded[entry] = copy
        self._cover(entry, [name for name, each in self.forwarded.items() if copy.covers(each)])

    def _cover(self, entry: EntryId, narrower: list[EntryId]) -> None:
        for name in narrower:
            if name != entry:
                # Covering is transitive: the wider copy covers all that the narrower one covers.
                for other in [other for other, (_, by) in self.covered.items() if by == name]:
                    self.covered[other] = (self.covered[other][0], entry)
                self.covered[name] = (self.forwarded.pop(name), entry)


def _difference(
    before: dict[EntryId, _Copy], after: dict[EntryId, _Copy], tree: EntryId
) -> list[Subscribe | Unsubscribe]:
    new = [copy.change for entry, copy in after.items() if entry not in before]
    withdrawn = [Unsubscribe(entry, tree) for entry in before if entry not in after]
    return [*new, *withdrawn]
