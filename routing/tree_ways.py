"""Which neighbour leads to the home of an advertisement tree: the first that told of it, or one whose way is whole.

Filter-based routing as the thesis has it never changes a tree. With the option `readvertise` an advertisement carries
the brokers that it came over, as routes do in a path-vector protocol, and a broker remembers what each neighbour said.
When the way over its neighbour is lost, it takes another that does not lead back over itself, and advertises the tree
again as it now stands; where there is no other, it says that the way is stale, so that those behind it look elsewhere.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, Protocol

from routing.messages import Advertise, EntryId


class Way(NamedTuple):
    parent: str | None
    told: Advertise
    """What the broker tells its neighbours of the tree."""


class Ways(Protocol):
    def passed_on(self, change: Advertise) -> Advertise:
        """As this broker tells it on."""

    def neighbour_up(self, peer: str) -> list[EntryId]:
        """The trees of which the neighbour has told."""

    def neighbour_lost(self, peer: str) -> list[EntryId]: ...

    def heard(self, change: Advertise, peer: str) -> bool:
        """A neighbour tells of a tree. Does its way lead to the home?"""

    def withdrawn(self, tree: EntryId, peer: str) -> None:
        """A neighbour that started anew knows nothing of the tree."""

    def forget(self, tree: EntryId) -> None: ...

    def choose(self, present: Advertise, parent: str | None) -> Way | None:
        """The way to take, for a tree that is told as `present` and has this parent. None: no change, ever."""


class FirstWays:
    def passed_on(self, change: Advertise) -> Advertise:
        return change

    def neighbour_up(self, peer: str) -> list[EntryId]:
        return []

    def neighbour_lost(self, peer: str) -> list[EntryId]:
        return []

    def heard(self, change: Advertise, peer: str) -> bool:
        return True

    def withdrawn(self, tree: EntryId, peer: str) -> None:
        """The neighbour will tell it again."""

    def forget(self, tree: EntryId) -> None:
        """Nothing was remembered."""

    def choose(self, present: Advertise, parent: str | None) -> Way | None:
        return None


class WholeWays:
    def __init__(self, me: str) -> None:
        self._me = me
        self._here: dict[str, None] = {}
        self._offers: dict[EntryId, dict[str, Advertise]] = {}

    def passed_on(self, change: Advertise) -> Advertise:
        return replace(change, crossed=(*change.crossed, self._me))

    def neighbour_up(self, peer: str) -> list[EntryId]:
        self._here[peer] = None
        return self._offered_by(peer)

    def neighbour_lost(self, peer: str) -> list[EntryId]:
        self._here.pop(peer, None)
        return self._offered_by(peer)

    def _offered_by(self, peer: str) -> list[EntryId]:
        return [tree for tree, offers in self._offers.items() if peer in offers]

    def heard(self, change: Advertise, peer: str) -> bool:
        self._offers.setdefault(change.entry, {})[peer] = change
        return self._me not in change.crossed

    def withdrawn(self, tree: EntryId, peer: str) -> None:
        self._offers.get(tree, {}).pop(peer, None)

    def forget(self, tree: EntryId) -> None:
        self._offers.pop(tree, None)

    def choose(self, present: Advertise, parent: str | None) -> Way | None:
        offers = self._offers.get(present.entry, {})
        whole = [peer for peer, offer in offers.items() if peer in self._here and self._is_whole(offer)]
        if not whole:
            return self._stale(present, parent, offers)
        # A tree that changes as seldom as possible loses as little as possible on the way.
        chosen = parent if parent in whole else min(whole, key=lambda peer: (len(offers[peer].crossed), peer))
        return Way(chosen, self.passed_on(offers[chosen]))

    def _stale(self, present: Advertise, parent: str | None, offers: dict[str, Advertise]) -> Way:
        """The way stays as it is until it is whole again, unless it has come to lead back here."""
        if parent not in self._here:
            return Way(parent, replace(present, is_stale=True))
        offer = offers.get(parent)
        if offer is None or self._me in offer.crossed:
            return Way(None, replace(present, is_stale=True))
        return Way(parent, self.passed_on(offer))

    def _is_whole(self, offer: Advertise) -> bool:
        return not offer.is_stale and self._me not in offer.crossed
