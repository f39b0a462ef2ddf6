"""What a broker tells the next one up a tree of filter-based routing: every copy, or those that no other covers.

A subscription covers another when every publication that satisfies the other satisfies it too. The next broker up need
not hear of the covered one: whatever the covered one wants comes down for the covering one anyhow. So fewer copies are
stored up the tree, and the same publications come down.

Whoever is asked here answers with the changes to tell, new copies before withdrawn ones: a broker that has heard half
of them holds too much and never too little.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from matching.intersection import Region, prepared
from matching.model import Expression
from routing.messages import EntryId, Subscribe, Unsubscribe


class Telling(Protocol):
    """Which copies of each tree are told to the tree's next broker up."""

    def added(self, tree: EntryId, copy: Subscribe, expression: Expression) -> list[Subscribe | Unsubscribe]: ...

    def removed(self, tree: EntryId, entry: EntryId) -> list[Subscribe | Unsubscribe]: ...

    def felled(self, tree: EntryId) -> list[Unsubscribe]:
        """The tree is gone, with all its copies."""


class TellAll:
    def __init__(self) -> None:
        self._told: dict[EntryId, dict[EntryId, None]] = {}

    def added(self, tree: EntryId, copy: Subscribe, expression: Expression) -> list[Subscribe | Unsubscribe]:
        self._told.setdefault(tree, {})[copy.entry] = None
        return [copy]

    def removed(self, tree: EntryId, entry: EntryId) -> list[Subscribe | Unsubscribe]:
        del self._told[tree][entry]
        return [Unsubscribe(entry, tree)]

    def felled(self, tree: EntryId) -> list[Unsubscribe]:
        return [Unsubscribe(entry, tree) for entry in self._told.pop(tree, {})]


class TellUncovered:
    """A copy is told when no told copy of its tree covers it, and withdrawn when one comes that does."""

    def __init__(self) -> None:
        self._trees: dict[EntryId, _Copies] = {}

    def added(self, tree: EntryId, copy: Subscribe, expression: Expression) -> list[Subscribe | Unsubscribe]:
        copies = self._trees.setdefault(tree, _Copies())
        before = dict(copies.told)
        copies.add(copy, prepared(expression))
        return _difference(before, copies.told, tree)

    def removed(self, tree: EntryId, entry: EntryId) -> list[Subscribe | Unsubscribe]:
        copies = self._trees[tree]
        before = dict(copies.told)
        copies.remove(entry)
        return _difference(before, copies.told, tree)

    def felled(self, tree: EntryId) -> list[Unsubscribe]:
        copies = self._trees.pop(tree, _Copies())
        return [Unsubscribe(entry, tree) for entry in copies.told]


@dataclass(frozen=True, slots=True)
class _Copy:
    change: Subscribe
    region: Region


@dataclass(slots=True)
class _Copies:
    """One tree's copies: no told one covers another, and each covered one knows a told one that covers it."""

    told: dict[EntryId, _Copy] = field(default_factory=dict)
    covered: dict[EntryId, tuple[_Copy, EntryId]] = field(default_factory=dict)

    def add(self, change: Subscribe, region: Region) -> None:
        self._place(_Copy(change, region))

    def remove(self, entry: EntryId) -> None:
        if self.covered.pop(entry, None) is not None:
            return
        del self.told[entry]
        bare = [copy for copy, cover in self.covered.values() if cover == entry]
        for copy in bare:
            del self.covered[copy.change.entry]
        for copy in bare:
            self._place(copy)

    def _place(self, copy: _Copy) -> None:
        entry = copy.change.entry
        cover = next((name for name, each in self.told.items() if each.region.covers(copy.region)), None)
        if cover is not None:
            self.covered[entry] = (copy, cover)
            return
        for name in [name for name, each in self.told.items() if copy.region.covers(each.region)]:
            # What the narrower one covered, the wider one covers as well.
            for other in [other for other, (_, by) in self.covered.items() if by == name]:
                self.covered[other] = (self.covered[other][0], entry)
            self.covered[name] = (self.told.pop(name), entry)
        self.told[entry] = copy


def _difference(
    before: dict[EntryId, _Copy], after: dict[EntryId, _Copy], tree: EntryId
) -> list[Subscribe | Unsubscribe]:
    new = [copy.change for entry, copy in after.items() if entry not in before]
    gone = [Unsubscribe(entry, tree) for entry in before if entry not in after]
    return [*new, *gone]
