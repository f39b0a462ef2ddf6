"""The parent in an advertisement tree: the neighbour towards the tree's home.

An advertisement carries the brokers that it crossed, as routes do in a path-vector protocol. A broker keeps the offer
(the advertisement) of each neighbour. So a path never leads back over the broker itself, even after restarts.

`FixedParents` is filter-based routing as in the thesis: the first neighbour that offers the tree stays the parent, also
while its link is down. The broker replaces it only when it has lost the tree, or its path leads back to the broker.
Otherwise the tree would stay broken after all links are up again.

`RepairedParents` is the option `readvertise`. A broker whose path to the home is lost chooses another parent, and
advertises the tree again with the new path. If there is no other path, it announces its own as stale, so that brokers
behind it choose other parents.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from routing.messages import Advertise, EntryId


class ParentChoice(NamedTuple):
    """The parent for a tree, and the advertisement that results from it."""

    parent: str | None
    advertisement: Advertise
    """The advertisement that the broker sends to its neighbours."""


class FixedParents:
    """Keeps the first parent while it offers a path, also while its link is down."""

    def __init__(self, me: str) -> None:
        self._me = me
        self._reachable: dict[str, None] = {}
        self._offers: dict[EntryId, dict[str, Advertise]] = {}

    def forwarded(self, change: Advertise) -> Advertise:
        """Returns the advertisement as this broker forwards it: with itself among the crossed brokers."""
        return replace(change, crossed=(*change.crossed, self._me))

    def neighbour_up(self, peer: str) -> list[EntryId]:
        """Adds a reachable neighbour. Returns the trees that it offers."""
        self._reachable[peer] = None
        return self._offered_by(peer)

    def neighbour_lost(self, peer: str) -> list[EntryId]:
        """Removes a reachable neighbour. Returns the trees that it offers."""
        self._reachable.pop(peer, None)
        return self._offered_by(peer)

    def _offered_by(self, peer: str) -> list[EntryId]:
        return [tree for tree, offers in self._offers.items() if peer in offers]

    def receive_offer(self, change: Advertise, peer: str) -> bool:
        """Stores a neighbour's offer. Returns True if its path does not lead over this broker."""
        self._offers.setdefault(change.entry, {})[peer] = change
        return self._me not in change.crossed

    def remove_offer(self, tree: EntryId, peer: str) -> None:
        """Removes the offer of a neighbour that restarted and does not have the tree."""
        self._offers.get(tree, {}).pop(peer, None)

    def remove_tree(self, tree: EntryId) -> None:
        self._offers.pop(tree, None)

    def may_be_behind(self, tree: EntryId, peer: str) -> bool:
        """Whether the neighbour may have this broker as its parent in the tree, according to its offer."""
        offer = self._offers.get(tree, {}).get(peer)
        return offer is None or offer.is_stale or self._me in offer.crossed[-2:]

    def choose(self, present: Advertise, parent: str | None) -> ParentChoice:
        """Chooses the parent of a tree whose parent is `parent` and which this broker advertises as `present`."""
        offers = self._offers.get(present.entry, {})
        if parent in offers and self._is_usable(offers[parent]):
            return ParentChoice(parent, self.forwarded(offers[parent]))
        return self._choose_another(present, parent, offers)

    def _choose_another(self, present: Advertise, parent: str | None, offers: dict[str, Advertise]) -> ParentChoice:
        usable = [peer for peer, offer in offers.items() if peer in self._reachable and self._is_usable(offer)]
        if not usable:
            return self._without_usable_offer(present, parent, offers)
        chosen = min(usable, key=lambda peer: (len(offers[peer].crossed), peer))
        return ParentChoice(chosen, self.forwarded(offers[chosen]))

    def _without_usable_offer(
        self, present: Advertise, parent: str | None, offers: dict[str, Advertise]
    ) -> ParentChoice:
        """Keeps the parent, with a stale path, until an offer is usable; drops a parent whose path leads back here."""
        if parent not in self._reachable:
            return ParentChoice(parent, replace(present, is_stale=True))
        offer = offers.get(parent)
        if offer is None or self._me in offer.crossed:
            return ParentChoice(None, replace(present, is_stale=True))
        return ParentChoice(parent, self.forwarded(offer))

    def _is_usable(self, offer: Advertise) -> bool:
        """Whether the offered path is not stale and does not lead over this broker."""
        return not offer.is_stale and self._me not in offer.crossed


class RepairedParents(FixedParents):
    """Replaces a parent whose link is down, if another neighbour offers a usable path."""

    def choose(self, present: Advertise, parent: str | None) -> ParentChoice:
        offers = self._offers.get(present.entry, {})
        # A parent is kept while it is usable: fewer changes of a tree lose fewer publications in flight.
        if parent in self._reachable and parent in offers and self._is_usable(offers[parent]):
            return ParentChoice(parent, self.forwarded(offers[parent]))
        return self._choose_another(present, parent, offers)
