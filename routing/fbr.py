"""FBR: filter-based routing with advertisement trees, in overlays with and without cycles [THESIS 2.1].

An advertisement is flooded; each broker keeps the neighbour from which it first heard of it as the next broker towards
its home, and so the advertisement spans a tree. A subscription travels up the tree of every advertisement that it
intersects, and every broker on the way stores it, once for each tree. A publication belongs to the tree of one of its
publisher's advertisements; every broker on its way matches it with the copies of that tree, and sends it to the
neighbours from which the matching ones came.

All trees' copies at a broker are in one index, with the tree as one more condition: every copy is stored and paid for.
Trees are not repaired when a link fails. A broker that starts anew finds its place in a tree again when the neighbour
towards the advertisement's home tells it; until then the brokers behind it keep theirs. It also hears which trees are
gone, and passes that on to those who were behind it.

Option `covering`: a copy stays where it is while another copy of its tree that went on covers it; see `covering`.
Option `readvertise`: a broker whose way to the home is lost takes another, with all its copies; see `tree_ways`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from matching.intersection import Region
from matching.matcher import unpack_attributes
from matching.model import And, Expression, Operator, Predicate
from matching.with_fallback import for_any_expression
from routing.covering import TellAll, Telling, TellUncovered
from routing.hop_by_hop import DOMAIN, HopByHop
from routing.messages import (
    Advertise,
    Change,
    EntryId,
    Publish,
    Subscribe,
    Unadvertise,
    Unsubscribe,
)
from routing.router import Counts, Matched, Stretch, work_of
from routing.tables import LocalAdvertisements, expression_of, region_of
from routing.tree_ways import FirstWays, Ways, WholeWays

MOST_FELLED = 10_000
TREE = "\0tree"
"""An attribute that no client's publication can have meant."""


@dataclass(frozen=True, slots=True)
class _Tree:
    """An advertisement in the SRT, with the neighbour towards its home; None at home, and where no way is known."""

    change: Advertise
    region: Region
    parent: str | None


@dataclass(frozen=True, slots=True)
class _LocalSubscription:
    client: str
    expression: Expression
    region: Region


@dataclass(frozen=True, slots=True)
class _Copy:
    """A subscription in the PRT, for one tree: from a client, or from the neighbour whose side wants it."""

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
        self._ways: Ways = WholeWays(me) if readvertises else FirstWays()
        self._telling: Telling = TellUncovered() if is_covering else TellAll()
        self._local_advertisements = LocalAdvertisements()
        self._local_subscriptions: dict[EntryId, _LocalSubscription] = {}
        self._trees: dict[EntryId, _Tree] = {}
        self._index = for_any_expression(matcher)
        self._copies: dict[int, _Copy] = {}
        self._numbers: dict[EntryId, dict[EntryId, dict[str | None, int]]] = {}
        """The numbers of copies in the index, by tree, subscription and neighbour; None is a client of this broker."""
        self._next_number = 0
        self._duplicate_advertisements = 0
        self._felled = self._teller.ended
        """Withdrawn advertisements. An id is never used twice, so no straggler can plant such a tree again; without
        this, news of it and of its end could chase each other around a cycle."""
        self._doomed: dict[EntryId, None] = {}
        """Trees that are gone, as others say; publications of them may still come from the neighbour towards home."""
        self._met: dict[str, None] = {}
        """Neighbours that are here or were once: those hear of changes when they are back."""

    def advertise(self, entry: EntryId, client: str, expression: Expression) -> None:
        self._local_advertisements.insert(entry, client, expression)
        self._plant(self._ways.passed_on(Advertise(entry, str(expression))), region_of(expression), None)

    def unadvertise(self, entry: EntryId) -> None:
        self._local_advertisements.remove(entry)
        self._fell(entry)

    def subscribe(self, entry: EntryId, client: str, expression: Expression) -> None:
        subscription = _LocalSubscription(client, expression, region_of(expression))
        self._local_subscriptions[entry] = subscription
        for tree in list(self._trees.values()):
            self._bind(entry, subscription, tree)

    def unsubscribe(self, entry: EntryId) -> None:
        del self._local_subscriptions[entry]
        for tree in [tree for tree, copies in self._numbers.items() if None in copies.get(entry, ())]:
            self._remove_copy(entry, tree, None)

    def neighbour_lost(self, peer: str) -> None:
        super().neighbour_lost(peer)
        for entry in [entry for entry in self._doomed if self._trees[entry].parent == peer]:
            self._fell(entry)
        for entry in self._ways.neighbour_lost(peer):
            self._reconsider(entry)

    def _restarted(self, peer: str, withdrawn: list[Change]) -> None:
        for change in withdrawn:
            if not isinstance(change, Unadvertise) or change.entry.broker == peer:
                self._apply(change, peer)
            else:
                self._ways.withdrawn(change.entry, peer)
                self._reconsider(change.entry)

    def _apply(self, change: Change, peer: str) -> None:
        if isinstance(change, Advertise | Unadvertise):
            self._apply_to_tree(change, self._trees.get(change.entry), peer)
        elif change.tree in self._trees:
            self._apply_to_copies(change, self._trees[change.tree], peer)

    def _apply_to_tree(self, change: Advertise | Unadvertise, tree: _Tree | None, peer: str) -> None:
        if isinstance(change, Unadvertise):
            self._heard_of_end(change, tree, peer)
        elif change.entry not in self._felled:
            leads_home = self._ways.heard(change, peer)
            if tree is not None:
                self._duplicate_advertisements += tree.parent != peer
                self._reconsider(change.entry)
            elif leads_home:
                self._plant(self._ways.passed_on(change), region_of(change.expression), peer)

    def _heard_of_end(self, change: Unadvertise, tree: _Tree | None, peer: str) -> None:
        if tree is None:
            if change.entry not in self._felled:
                # Whoever was behind this broker before it started anew may still keep the tree.
                self._remember_felled(change.entry)
                self._tell_of_end(change.entry, but=peer)
        elif tree.parent == peer or tree.parent not in self._neighbours:
            self._fell(change.entry)
        else:
            self._doomed[change.entry] = None

    def _apply_to_copies(self, change: Subscribe | Unsubscribe, tree: _Tree, peer: str) -> None:
        if isinstance(change, Subscribe):
            self._insert_copy(_Copy(change, tree.change.entry, None, peer), expression_of(change.expression), tree)
        else:
            self._remove_copy(change.entry, tree.change.entry, peer)

    def _reconsider(self, entry: EntryId) -> None:
        """Something was said of ways to the tree's home: another may be better now, or this one be lost."""
        tree = self._trees.get(entry)
        if tree is None or entry.broker == self.me:
            return
        way = self._ways.choose(tree.change, tree.parent)
        if way is None:
            return
        if way.parent != tree.parent:
            if entry in self._doomed:
                self._fell(entry)
                return
            self._move(tree, way.parent)
        if way.told != tree.change:
            self._trees[entry] = replace(self._trees[entry], change=way.told)
            # The parent hears it too, and sees that the way leads over itself.
            for neighbour in self._met:
                self._teller.tell(neighbour, way.told)

    def _move(self, tree: _Tree, parent: str | None) -> None:
        """The tree's copies go up to the home by another neighbour, and are withdrawn from the one before."""
        entry = tree.change.entry
        if tree.parent is not None:
            for change in self._telling.felled(entry):
                self._teller.tell(tree.parent, change)
        self._trees[entry] = replace(tree, parent=parent)
        if parent is not None:
            for by_neighbour in self._numbers.get(entry, {}).values():
                self._tell_up(self._copies[next(iter(by_neighbour.values()))], parent)

    def _plant(self, change: Advertise, region: Region, parent: str | None) -> None:
        """`change` is what this broker tells of the tree."""
        tree = _Tree(change, region, parent)
        self._trees[change.entry] = tree
        for neighbour in self._met:
            if neighbour != parent:
                self._teller.tell(neighbour, change)
        for entry, subscription in list(self._local_subscriptions.items()):
            self._bind(entry, subscription, tree)
        # After a restart, neighbours may have told of subscriptions before the tree that they belong to was known.
        for neighbour in self._met:
            for held in self._hearer.held_from(neighbour):
                if isinstance(held, Subscribe) and held.tree == change.entry:
                    self._apply_to_copies(held, tree, neighbour)

    def _fell(self, entry: EntryId) -> None:
        tree = self._trees[entry]
        self._remember_felled(entry)
        for by_neighbour in self._numbers.pop(entry, {}).values():
            for number in by_neighbour.values():
                self._index.remove(number)
                del self._copies[number]
        if tree.parent is not None:
            for change in self._telling.felled(entry):
                self._teller.tell(tree.parent, change)
        del self._trees[entry]
        self._ways.forget(entry)
        self._tell_of_end(entry, but=tree.parent)

    def _remember_felled(self, entry: EntryId) -> None:
        self._doomed.pop(entry, None)
        self._felled[entry] = Unadvertise(entry)
        if len(self._felled) > MOST_FELLED:
            del self._felled[next(iter(self._felled))]

    def _tell_of_end(self, entry: EntryId, but: str | None) -> None:
        for neighbour in self._met:
            if neighbour != but:
                self._teller.tell(neighbour, Unadvertise(entry))

    def _neighbour_added(self, peer: str) -> None:
        if peer not in self._met:
            self._met[peer] = None
            for tree in self._trees.values():
                if tree.parent != peer:
                    self._teller.tell(peer, tree.change)
        for entry in self._ways.neighbour_up(peer):
            self._reconsider(entry)

    def _bind(self, entry: EntryId, subscription: _LocalSubscription, tree: _Tree) -> None:
        if tree.region.intersects(subscription.region):
            change = Subscribe(entry, str(subscription.expression), tree=tree.change.entry)
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
        if tree.parent is not None and len(by_neighbour) == 1:
            self._tell_up(copy, tree.parent)

    def _tell_up(self, copy: _Copy, parent: str) -> None:
        expression = expression_of(copy.change.expression)
        for change in self._telling.added(copy.tree, copy.change, expression):
            self._teller.tell(parent, change)

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
            for change in self._telling.removed(tree, entry):
                self._teller.tell(parent, change)

    def tree_of(self, client: str, attributes: bytes) -> EntryId | None:
        """The tree that a client's publication belongs to."""
        return self._local_advertisements.permitting(client, attributes)

    def parent_in(self, tree: EntryId) -> str | None:
        """The neighbour towards the tree's home; None at home, or where the tree is not known."""
        return self._trees[tree].parent if tree in self._trees else None

    def still_leads(self, stretch: Stretch) -> bool:
        """A restart plants new trees, and the old ones are gone."""
        return stretch.tree in self._trees

    def match_own(self, client: str, attributes: bytes) -> Matched | None:
        tree = self.tree_of(client, attributes)
        return None if tree is None else self._match(attributes, tree, None)

    def match_arrived(self, publication: Publish, peer: str) -> Matched:
        if publication.tree not in self._trees:
            return Matched(dropped="tree is gone")
        return self._match(publication.attributes, publication.tree, peer)

    def _match(self, attributes: bytes, tree: EntryId, peer: str | None) -> Matched:
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
        stretches = (Stretch(DOMAIN, (), tuple(sorted(onward)), tree=tree),) if onward else ()
        return Matched(wanted, stretches, (work_of("PRT", report),))

    def leave(self) -> None:
        for entry in [entry for entry in self._trees if entry.broker == self.me]:
            self._fell(entry)
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
            unacknowledged_changes=self._teller.unacknowledged,
        )
