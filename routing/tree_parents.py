"""Which neighbour leads to the home of an advertisement tree.

An advertisement carries the brokers that it came over, as routes do in a path-vector protocol, and a broker remembers
what each neighbour said. So a way never leads back over the broker itself, whatever has been restarted in between.

`FirstWays` is filter-based routing as the thesis has it: the first neighbour that told of the tree stays, also while
its link is down. Another one takes its place only when it has lost the tree, or has come to lead back here: else the
tree would stay broken after everything has healed.

`WholeWays` is the option `readvertise`: when the way over its neighbour is lost, a broker takes another, and advertises
the tree again as it now stands. Where there is no other, it says that the way is stale, so that those behind it look
elsewhere.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from routing.messages import Advertise, EntryId


class ParentChoice(NamedTuple):
    parent: str | None
    advertisement: Advertise
    """What the broker tells its neighbours of the tree."""


class FixedParents:
    def __init__(self, me: str) -> None:
        self._me = me
        self._reachable: dict[str, None] = {}
        self._offers: dict[EntryId, dict[str, Advertise]] = {}

    def forwarded(self, change: Advertise) -> Advertise:
        """As this broker tells it on."""
        return replace(change, crossed=(*change.crossed, self._me))

    def neighbour_up(self, peer: str) -> list[EntryId]:
        """Returns the trees of which the neighbour has told."""
        self._reachable[peer] = None
        return self._offered_by(peer)

    def neighbour_lost(self, peer: str) -> list[EntryId]:
        self._reachable.pop(peer, None)
        return self._offered_by(peer)

    def _offered_by(self, peer: str) -> list[EntryId]:
        return [tree for tree, offers in self._offers.items() if peer in offers]

    def receive_offer(self, change: Advertise, peer: str) -> bool:
        """A neighbour tells of a tree. Returns True if its way does not lead over this broker."""
        self._offers.setdefault(change.entry, {})[peer] = change
        return self._me not in change.crossed

    def remove_offer(self, tree: EntryId, peer: str) -> None:
        """A neighbour that started anew knows nothing of the tree."""
        self._offers.get(tree, {}).pop(peer, None)

    def remove_tree(self, tree: EntryId) -> None:
        self._offers.pop(tree, None)

    def may_be_behind(self, tree: EntryId, peer: str) -> bool:
        """The neighbour may have this broker as its parent in the tree, as far as it has said."""
        offer = self._offers.get(tree, {}).get(peer)
        return offer is None or offer.is_stale or self._me in offer.crossed[-2:]

    def choose(self, present: Advertise, parent: str | None) -> ParentChoice:
        """The way to take, for a tree that is told as `present` and has this parent."""
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
        """The way stays as it is until it is whole again, unless it has come to lead back here."""
        if parent not in self._reachable:
            return ParentChoice(parent, replace(present, is_stale=True))
        offer = offers.get(parent)
        if offer is None or self._me in offer.crossed:
            return ParentChoice(None, replace(present, is_stale=True))
        return ParentChoice(parent, self.forwarded(offer))

    def _is_usable(self, offer: Advertise) -> bool:
        return not offer.is_stale and self._me not in offer.crossed


class RepairedParents(FixedParents):
    def choose(self, present: Advertise, parent: str | None) -> ParentChoice:
        offers = self._offers.get(present.entry, {})
        # A tree that changes as seldom as possible loses as little as possible on the way.
        if parent in self._reachable and parent in offers and self._is_usable(offers[parent]):
            return ParentChoice(parent, self.forwarded(offers[parent]))
        return self._choose_another(present, parent, offers)
