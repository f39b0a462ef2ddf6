"""FBR: filter-based routing with advertisement trees, in overlays with and without cycles [THESIS 2.1].

An advertisement is flooded. Each broker keeps the neighbour that first sent it as its parent, the next broker towards
the advertisement's home. So the advertisement spans a tree. A subscription travels up the tree of every advertisement
that it intersects. Every broker on its path stores a copy for each tree. A publication belongs to the tree of one of
its publisher's advertisements. Every broker on its route matches it with the copies of that tree, and sends it to the
neighbours that sent the matching copies.

A broker has one index for the copies of all trees, with the tree as one more condition. So every copy takes memory and
matching time. Trees are not repaired when a link fails; they carry publications again when the link is back. A
restarted broker joins a tree again when its parent sends the advertisement. Until then the brokers behind it keep their
places. The restarted broker also receives the removed trees, and announces them to the brokers behind it. A broker may
lose a neighbour that is behind it in a tree. Then it announces a gap to its parent: there may be unknown subscriptions
for publications of the tree.

Option `covering`: a broker does not forward a copy if it forwarded another copy of the tree that covers it; see
`covering`.
Option `readvertise`: a broker that loses its parent chooses another and sends it all its copies; see `tree_parents`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from matching.expressions.intersection import Region
from matching.expressions.model import TRUE, And, Expression, Operator, Predicate
from matching.indexes.with_fallback import for_any_expression
from matching.matcher import unpack_attributes
from routing.covering import ForwardAll, Forwarding, ForwardUncovered
from routing.hop_by_hop import DOMAIN, HopByHop
from routing.messages import (
    GAP,
    Advertise,
    Change,
    EntryId,
    Publish,
    Subscribe,
    Unadvertise,
    Unsubscribe,
)
from routing.router import Counts, ForwardingLeg, LearnedSubscription, RoutingDecision, UnknownInterest
from routing.silence import Silence
from routing.tables import LocalAdvertisements, expression_of, is_parsable, region_of, work_of
from routing.tree_parents import FixedParents, RepairedParents

MOST_REMOVED_TREES = 10_000
TREE = "\0tree"
"""The attribute that holds the tree. A client's publication does not use this name."""


@dataclass(frozen=True, slots=True)
class _Tree:
    """An advertisement in the SRT, with its parent. The parent is None at home, and where no path home is known."""

    change: Advertise
    region: Region
    parent: str | None


@dataclass(frozen=True, slots=True)
class _LocalSubscription:
    client: str
    expression: Expression
    region: Region
    since: int


@dataclass(frozen=True, slots=True)
class _Copy:
    """A subscription in the PRT for one tree. It is from a client, or from the neighbour that sent it."""

    change: Subscribe
    tree: EntryId
    client: str | None
    neighbour: str | None


class FBR(HopByHop):
    name = "fbr"

    def __init__(
        self,
        me: str,
        incarnation: int,
        matcher: str = "auto",
        clusters: tuple[str, ...] = (),
        address: str = "",
        *,
        is_covering: bool = False,
        readvertises: bool = False,
    ) -> None:
        super().__init__(me, incarnation)
        self._parents = RepairedParents(me) if readvertises else FixedParents(me)
        self._forwarding: Forwarding = ForwardUncovered() if is_covering else ForwardAll()
        self._local_advertisements = LocalAdvertisements()
        self._local_subscriptions: dict[EntryId, _LocalSubscription] = {}
        self._trees: dict[EntryId, _Tree] = {}
        self._index = for_any_expression(matcher)
        self._copies: dict[int, _Copy] = {}
        self._numbers: dict[EntryId, dict[EntryId, dict[str | None, int]]] = {}
        """The numbers of copies in the index, by tree, subscription and neighbour. None means a client of this
        broker."""
        self._next_number = 0
        self._duplicate_advertisements = 0
        self._removed_trees = self._update_sender.withdrawn_advertisements
        """Withdrawn advertisements. Ids are never reused, so a late message cannot add such a tree again. Without this
        record, an advertisement and its withdrawal could circulate in a cycle forever."""
        self._removed_tree_gaps: dict[EntryId, dict[str, int]] = {}
        """Withdrawn advertisements with the neighbours behind this broker whose subscriptions may be unknown, and the
        tick since when."""
        self._pending_removal: dict[EntryId, None] = {}
        """Trees that other neighbours withdrew. The parent may still send publications of them."""
        self._gaps: dict[EntryId, dict[str, EntryId]] = {}
        """For each tree, the neighbours that announced a gap, with the entry that announced it."""
        self._tree_silence: Silence[tuple[EntryId, str]] = Silence()
        """How long neighbours in a tree have been silent or had a gap. One state may follow the other."""
        self._tree_added_ticks: dict[EntryId, int] = {}
        """The tick in which a tree was added."""
        self._neighbour_added_ticks: dict[str, int] = {}
        """The tick in which a neighbour was added."""
        self._announced_gaps: dict[EntryId, str] = {}
        """Trees for which this broker announced a gap, with the parent that received it."""

    def advertise(self, entry: EntryId, client: str, expression: Expression) -> None:
        self._local_advertisements.insert(entry, client, expression)
        self._add_tree(self._parents.forwarded(Advertise(entry, str(expression))), region_of(expression), None)

    def deactivate_advertisement(self, entry: EntryId) -> None:
        self._local_advertisements.remove(entry)

    def unadvertise(self, entry: EntryId) -> None:
        if entry in self._trees:
            self._remove_tree(entry)

    def subscribe(self, entry: EntryId, client: str, expression: Expression, since: int = 0) -> None:
        subscription = _LocalSubscription(client, expression, region_of(expression), since)
        self._local_subscriptions[entry] = subscription
        for tree in list(self._trees.values()):
            self._bind(entry, subscription, tree)

    def unsubscribe(self, entry: EntryId) -> None:
        del self._local_subscriptions[entry]
        for tree in [tree for tree, copies in self._numbers.items() if None in copies.get(entry, ())]:
            self._remove_copy(entry, tree, None)

    def neighbour_lost(self, peer: str) -> None:
        super().neighbour_lost(peer)
        for entry in [entry for entry in self._pending_removal if self._trees[entry].parent == peer]:
            self._remove_tree(entry)
        for entry in self._parents.neighbour_lost(peer):
            self._update_parent(entry)
        self._announce_gaps()

    def _apply_withdrawals(self, withdrawals: list[Change], peer: str) -> None:
        for change in withdrawals:
            if not isinstance(change, Unadvertise) or change.entry.broker == peer:
                self._apply(change, peer)
            else:
                self._parents.remove_offer(change.entry, peer)
                self._update_parent(change.entry)
        self._announce_gaps()

    def tick(self) -> None:
        silent = self._silent_neighbours()
        lost = [(entry, peer) for entry in (self._trees if silent else ()) for peer in silent]
        gaps = [(entry, peer) for entry, peers in self._gaps.items() for peer in peers]
        self._tree_silence.tick(
            {(entry, peer): self._first_statement_tick(entry, peer) for entry, peer in (*lost, *gaps)},
            remember=self.settings.detection_ticks,
        )
        self._announce_gaps()
        for entry, change in self._forwarding.tick(self.settings.retention_ticks):
            parent = self.parent_in(entry)
            if parent is not None:
                self._update_sender.send(parent, change)
        super().tick()

    def idle_ticks(self) -> int:
        return min(super().idle_ticks(), self._forwarding.idle_ticks(self.settings.retention_ticks))

    def skip_ticks(self, count: int) -> None:
        super().skip_ticks(count)
        self._tree_silence.skip_ticks(count, remember=self.settings.detection_ticks)
        self._forwarding.skip_ticks(count)

    def _apply(self, change: Change, peer: str) -> None:
        if isinstance(change, Advertise | Unadvertise):
            self._apply_to_tree(change, self._trees.get(change.entry), peer)
        elif change.tree in self._trees:
            self._apply_to_copies(change, self._trees[change.tree], peer)

    def _apply_to_tree(self, change: Advertise | Unadvertise, tree: _Tree | None, peer: str) -> None:
        if isinstance(change, Unadvertise):
            self._receive_unadvertise(change, tree, peer)
        elif change.entry.broker == self.me:
            if tree is None and change.entry not in self._removed_trees:
                # An earlier incarnation advertised it. If it were added here, its parent would be behind this broker.
                self._record_removed_tree(change.entry)
                self._announce_removal(change.entry, excluded=None)
        elif change.entry not in self._removed_trees:
            avoids_this_broker = self._parents.receive_offer(change, peer)
            if tree is not None:
                self._duplicate_advertisements += tree.parent != peer
                self._update_parent(change.entry)
            elif avoids_this_broker:
                self._add_tree(self._parents.forwarded(change), region_of(change.expression), peer)

    def _receive_unadvertise(self, change: Unadvertise, tree: _Tree | None, peer: str) -> None:
        if tree is None:
            if change.entry not in self._removed_trees:
                # Brokers that were behind this one before its restart may still have the tree.
                self._record_removed_tree(change.entry)
                self._announce_removal(change.entry, excluded=peer)
        elif tree.parent == peer or tree.parent not in self._neighbours:
            self._remove_tree(change.entry)
        else:
            self._pending_removal[change.entry] = None

    def _apply_to_copies(self, change: Subscribe | Unsubscribe, tree: _Tree, peer: str) -> None:
        if change.entry.number == GAP:
            self._apply_to_gaps(change, tree, peer)
        elif isinstance(change, Subscribe):
            self._insert_copy(_Copy(change, tree.change.entry, None, peer), expression_of(change.expression), tree)
        else:
            self._remove_copy(change.entry, tree.change.entry, peer)

    def _apply_to_gaps(self, change: Subscribe | Unsubscribe, tree: _Tree, peer: str) -> None:
        behind = self._gaps.setdefault(tree.change.entry, {})
        if isinstance(change, Subscribe):
            behind[peer] = change.entry
        elif behind.get(peer) == change.entry:
            # The gap of an earlier incarnation has another id, and may end after the present gap began.
            del behind[peer]
        if not behind:
            del self._gaps[tree.change.entry]
        self._announce_gap(tree, self._silent_neighbours())

    def _announce_gaps(self) -> None:
        silent = self._silent_neighbours()
        if silent or self._gaps or self._announced_gaps:
            for tree in list(self._trees.values()):
                self._announce_gap(tree, silent)

    def _announce_gap(self, tree: _Tree, silent: list[str]) -> None:
        """Announces a gap to the tree's parent, or withdraws it: unreachable brokers behind this one may have
        subscriptions for the tree."""
        entry = tree.change.entry
        has_gap = entry in self._gaps or bool(self._silent_behind(tree, silent, None))
        parent = tree.parent if has_gap else None
        announced = self._announced_gaps.get(entry)
        if parent == announced:
            return
        gap = EntryId(self.me, self._incarnation, GAP)
        if announced is not None:
            del self._announced_gaps[entry]
            self._update_sender.send(announced, Unsubscribe(gap, entry))
        if parent is not None:
            self._announced_gaps[entry] = parent
            self._update_sender.send(parent, Subscribe(gap, str(TRUE), tree=entry))

    def _silent_behind(self, tree: _Tree, silent: list[str], excluded: str | None) -> dict[str, int]:
        """Returns neighbours that may be behind this broker in the tree and cannot send their subscriptions."""
        entry = tree.change.entry
        return {
            peer: self._ticks_silent(entry, peer)
            for peer in silent
            if peer not in (tree.parent, excluded) and self._parents.may_be_behind(entry, peer)
        }

    def _gaps_behind(self, entry: EntryId, excluded: str | None) -> dict[str, int]:
        return {peer: self._ticks_silent(entry, peer) for peer in self._gaps.get(entry, ()) if peer != excluded}

    def _unknown_interest_since(self, tree: _Tree) -> dict[str, int]:
        """Returns neighbours whose subscriptions for the tree may be unknown, with the tick since when they may be.

        A neighbour that returned a short time ago counts too. It may not have sent its subscriptions for this tree yet,
        and it cannot send them after the tree is removed.
        """
        entry = tree.change.entry
        lost = self._silent_behind(tree, self._silent_neighbours(), None) | self._gaps_behind(entry, None)
        since = {peer: self._tree_silence.now - ticks for peer, ticks in lost.items()}
        for (other, peer), began in self._tree_silence.recent().items():
            if other == entry and peer != tree.parent and self._parents.may_be_behind(entry, peer):
                since.setdefault(peer, began)
        return since

    def _ticks_silent(self, entry: EntryId, peer: str) -> int:
        return self._tree_silence.ticks((entry, peer), self._first_statement_tick(entry, peer))

    def _first_statement_tick(self, entry: EntryId, peer: str) -> int:
        """Returns the first tick in which the neighbour could send subscriptions for the tree."""
        return max(self._tree_added_ticks.get(entry, 0), self._neighbour_added_ticks.get(peer, 0))

    def _apply_repeated(self, change: Change, peer: str) -> None:
        if isinstance(change, Subscribe) and not change.is_gap and change.tree in self._trees:
            self._learned_subscriptions.append(LearnedSubscription(peer, change.expression, change.since, change.tree))

    def _update_parent(self, entry: EntryId) -> None:
        """Chooses the tree's parent again after a change of offers or neighbours, and announces the result."""
        tree = self._trees.get(entry)
        if tree is None or entry.broker == self.me:
            return
        choice = self._parents.choose(tree.change, tree.parent)
        if choice.parent != tree.parent:
            if entry in self._pending_removal:
                self._remove_tree(entry)
                return
            self._change_parent(tree, choice.parent)
        if choice.advertisement != tree.change:
            self._trees[entry] = replace(self._trees[entry], change=choice.advertisement)
            # The parent receives it too, and sees that this path leads over the parent itself.
            for neighbour in self._known_neighbours:
                self._update_sender.send(neighbour, choice.advertisement)

    def _change_parent(self, tree: _Tree, parent: str | None) -> None:
        """Forwards the tree's copies to the new parent, and withdraws them from the previous one."""
        entry = tree.change.entry
        if tree.parent is not None:
            for change in self._forwarding.remove_tree(entry):
                self._update_sender.send(tree.parent, change)
        self._trees[entry] = replace(tree, parent=parent)
        self._announce_gap(self._trees[entry], self._silent_neighbours())
        if parent is not None:
            for by_neighbour in self._numbers.get(entry, {}).values():
                self._forward_to_parent(self._copies[next(iter(by_neighbour.values()))], parent)

    def _add_tree(self, change: Advertise, region: Region, parent: str | None) -> None:
        """Adds a tree. `change` is the advertisement that this broker sends to its neighbours."""
        tree = _Tree(change, region, parent)
        self._trees[change.entry] = tree
        self._tree_added_ticks[change.entry] = self._tree_silence.now
        for neighbour in self._known_neighbours:
            if neighbour != parent:
                self._update_sender.send(neighbour, change)
        for entry, subscription in list(self._local_subscriptions.items()):
            self._bind(entry, subscription, tree)
        # After a restart, neighbours may have sent subscriptions before their tree was known here.
        for neighbour in self._known_neighbours:
            for known in self._update_receiver.entries_from(neighbour):
                if isinstance(known, Subscribe) and known.tree == change.entry and is_parsable(known.expression):
                    self._apply_to_copies(known, tree, neighbour)

    def _remove_tree(self, entry: EntryId) -> None:
        tree = self._trees[entry]
        unknown_since = self._unknown_interest_since(tree)
        if unknown_since:
            self._removed_tree_gaps[entry] = unknown_since
        self._record_removed_tree(entry)
        for by_neighbour in self._numbers.pop(entry, {}).values():
            for number in by_neighbour.values():
                self._index.remove(number)
                del self._copies[number]
        if tree.parent is not None:
            for change in self._forwarding.remove_tree(entry):
                self._update_sender.send(tree.parent, change)
        announced = self._announced_gaps.pop(entry, None)
        if announced is not None:
            self._update_sender.send(announced, Unsubscribe(EntryId(self.me, self._incarnation, GAP), entry))
        self._gaps.pop(entry, None)
        del self._trees[entry], self._tree_added_ticks[entry]
        self._parents.remove_tree(entry)
        self._announce_removal(entry, excluded=tree.parent)

    def _record_removed_tree(self, entry: EntryId) -> None:
        self._pending_removal.pop(entry, None)
        self._removed_trees[entry] = Unadvertise(entry)
        if len(self._removed_trees) > MOST_REMOVED_TREES:
            oldest = next(iter(self._removed_trees))
            del self._removed_trees[oldest]
            self._removed_tree_gaps.pop(oldest, None)

    def _announce_removal(self, entry: EntryId, excluded: str | None) -> None:
        for neighbour in self._known_neighbours:
            if neighbour != excluded:
                self._update_sender.send(neighbour, Unadvertise(entry))

    def _neighbour_added(self, peer: str) -> None:
        self._neighbour_added_ticks[peer] = self._tree_silence.now
        for tree in self._trees.values():
            if tree.parent != peer:
                self._update_sender.send(peer, tree.change)

    def _neighbour_reachable(self, peer: str) -> None:
        for entry in self._parents.neighbour_up(peer):
            self._update_parent(entry)
        self._announce_gaps()

    def _bind(self, entry: EntryId, subscription: _LocalSubscription, tree: _Tree) -> None:
        if tree.region.intersects(subscription.region):
            text = str(subscription.expression)
            change = Subscribe(entry, text, tree=tree.change.entry, since=subscription.since)
            copy = _Copy(change, tree.change.entry, subscription.client, None)
            self._insert_copy(copy, subscription.expression, tree)

    def _insert_copy(self, copy: _Copy, expression: Expression, tree: _Tree) -> None:
        by_neighbour = self._numbers.setdefault(copy.tree, {}).setdefault(copy.change.entry, {})
        if copy.neighbour in by_neighbour:
            return
        self._next_number += 1
        self._index.add(self._next_number, And((expression, Predicate(TREE, Operator.EQ, (str(copy.tree),)))))
        self._copies[self._next_number] = copy
        by_neighbour[copy.neighbour] = self._next_number
        if copy.neighbour is not None:
            self._learned_subscriptions.append(
                LearnedSubscription(copy.neighbour, copy.change.expression, copy.change.since, copy.tree)
            )
        if tree.parent is not None and len(by_neighbour) == 1:
            self._forward_to_parent(copy, tree.parent)

    def _forward_to_parent(self, copy: _Copy, parent: str) -> None:
        expression = expression_of(copy.change.expression)
        for change in self._forwarding.add_copy(copy.tree, copy.change, expression):
            self._update_sender.send(parent, change)

    def _remove_copy(self, entry: EntryId, tree: EntryId, neighbour: str | None) -> None:
        by_neighbour = self._numbers.get(tree, {}).get(entry, {})
        number = by_neighbour.pop(neighbour, None)
        if number is None:
            return
        self._index.remove(number)
        del self._copies[number]
        if by_neighbour:
            return
        del self._numbers[tree][entry]
        parent = self._trees[tree].parent
        if parent is not None:
            for change in self._forwarding.remove_copy(tree, entry):
                self._update_sender.send(parent, change)

    def tree_of(self, client: str, attributes: bytes) -> EntryId | None:
        """Returns the tree that a client's publication belongs to."""
        return self._local_advertisements.find_permitting(client, attributes)

    def parent_in(self, tree: EntryId) -> str | None:
        """Returns the neighbour towards the tree's home. Returns None at home, or if the tree is not known."""
        return self._trees[tree].parent if tree in self._trees else None

    def is_valid(self, leg: ForwardingLeg) -> bool:
        """Whether the leg's tree exists. A restarted home adds new trees and removes its old ones."""
        return leg.tree in self._trees

    def match_own(self, client: str, attributes: bytes) -> RoutingDecision | None:
        tree = self.tree_of(client, attributes)
        return None if tree is None else replace(self._match(attributes, tree, None), advertisement=tree)

    def match_arrived(self, publication: Publish, peer: str) -> RoutingDecision:
        if publication.tree not in self._trees:
            return RoutingDecision(dropped="tree is gone")
        matched = self._match(publication.attributes, publication.tree, peer)
        return RoutingDecision(
            matched.clients if self.me in publication.local else {},
            matched.legs if self.me in publication.transit else (),
            matched.work,
            tree=publication.tree,
        )

    def current_legs(self, publication: Publish, peer: str | None) -> tuple[ForwardingLeg, ...]:
        if publication.tree not in self._trees:
            return ()
        return self._match(publication.attributes, publication.tree, peer).legs

    def unknown_interest(self, publication: Publish, peer: str | None) -> UnknownInterest:
        if publication.tree is None:
            return UnknownInterest()
        tree = self._trees.get(publication.tree)
        if tree is None:
            unknown_since = self._removed_tree_gaps.get(publication.tree, {})
            lost = {broker: self._tree_silence.now - since for broker, since in unknown_since.items() if broker != peer}
            return UnknownInterest(behind=lost)
        lost = self._silent_behind(tree, self._silent_neighbours(), peer)
        return UnknownInterest(behind=lost, gaps=self._gaps_behind(publication.tree, peer))

    def _match(self, attributes: bytes, tree: EntryId, peer: str | None) -> RoutingDecision:
        report = self._index.match({**unpack_attributes(attributes), TREE: str(tree)})
        clients: dict[str, list[EntryId]] = {}
        onward: set[str] = set()
        for number in report.ids:
            copy = self._copies[number]
            if copy.client is not None:
                clients.setdefault(copy.client, []).append(copy.change.entry)
            elif copy.neighbour is not None and copy.neighbour != peer:
                onward.add(copy.neighbour)
        wanted = {client: tuple(entries) for client, entries in sorted(clients.items())}
        others = tuple(sorted(onward))
        legs = (ForwardingLeg(DOMAIN, others, others, tree=tree),) if others else ()
        return RoutingDecision(wanted, legs, (work_of("PRT", report),), tree=tree)

    def leave(self) -> None:
        for entry in [entry for entry in self._trees if entry.broker == self.me]:
            self._remove_tree(entry)
        for entry in list(self._local_subscriptions):
            self.unsubscribe(entry)

    def counts(self) -> Counts:
        local = sum(copy.client is not None for copy in self._copies.values())
        return Counts(
            advertisements=len(self._trees),
            local_subscriptions=len(self._local_subscriptions),
            remote_subscriptions=len(self._copies) - local,
            routing_table_bytes=0,
            duplicate_advertisements=self._duplicate_advertisements,
            unacknowledged_changes=self._update_sender.unacknowledged,
        )
