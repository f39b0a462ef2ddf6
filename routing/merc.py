"""MERC: match at the edge, route inside the cluster [THESIS 5].

Inside a cluster, routing is D-DBR. A broker in several clusters is an edge broker. It passes advertisements and
subscriptions from one cluster into the others under its own name. It matches a publication again for each cluster that
the publication enters [THESIS Algorithm 3]. So a broker knows only the brokers of its own clusters.

Departs from [THESIS Algorithm 3]: line 9 matches a publication with the other clusters' advertisements; it must be
their subscriptions, as the text says.

Beyond the thesis: several edge brokers between two clusters, and clusters in a cycle.

- Of the reachable edge brokers between two clusters, the one with the smallest id passes entries on. The others keep
  the same tables, and the next one takes over when it fails. When one with a smaller id appears, the present one
  continues for a while, because the other must receive the entries first.
- An edge broker that cannot reach an entry's source offers the entry as stale. Other brokers prefer an offer that is
  not stale. They keep a stale entry if there is no other offer, because an unreachable broker has not left.
- Entries carry the clusters that they crossed and never enter one twice, as routes do in a path-vector protocol. A
  publication carries the clusters that it crossed. It is not matched with entries that crossed one of these: it was
  served there, unless the cluster is partitioned.
- In a cycle of clusters, a publication may still enter a cluster from two sides: an edge broker does not know for which
  of the entries behind it the other side was chosen. Brokers there keep the first copy, so a client gets one delivery.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from msgspec.structs import replace

from routing.destination_based import DestinationBased
from routing.domain import Domain
from routing.messages import Advertise, EntryId, Publish, Subscribe
from routing.router import ANY_NUMBER, ForwardingLeg
from routing.tables import TableWork

Offer = TypeVar("Offer", bound=Advertise | Subscribe)

ClusterPair = tuple[str, str]
"""Two clusters. An edge broker with this pair passes entries from the first into the second."""


class MERC(DestinationBased):
    name = "merc"

    def __init__(
        self, me: str, incarnation: int, matcher: str = "auto", clusters: tuple[str, ...] = (), address: str = ""
    ) -> None:
        if not clusters:
            raise ValueError(f"broker {me} is in no cluster; MERC needs clusters, D-DBR does not")
        super().__init__(me, incarnation, matcher, clusters, address)
        self._connected_clusters: tuple[str, ...] = ()
        """This broker's clusters in which it can reach all brokers."""
        self._connected_as_of: tuple[bytes, ...] = ()
        """The digests of link states from which `_connected_clusters` was computed."""
        self._assigned_pairs: tuple[ClusterPair, ...] = ()
        """The pairs that are assigned to this broker now."""
        self._active_pairs: tuple[ClusterPair, ...] = ()
        """The assigned pairs and the ending ones."""
        self._ending_pairs: dict[ClusterPair, int] = {}
        """Pairs that are now assigned to an edge broker with a smaller id, with the remaining ticks. This broker
        continues until the other has received the entries."""

    def _onward(self, publication: Publish) -> tuple[tuple[ForwardingLeg, ...], tuple[TableWork, ...]]:
        visited = {*publication.crossed, publication.domain}
        into = [name for name in self._domains if name not in visited]
        crossed = tuple(sorted({*publication.crossed, *self._served_clusters()}))
        legs, work = self._legs(publication.attributes, into, crossed)
        remaining = (self._without_served(leg, visited) for leg in legs)
        return tuple(leg for leg in remaining if leg is not None), work

    def _served_clusters(self) -> tuple[str, ...]:
        """Returns the clusters in which a publication reaches every broker. In a partitioned cluster, brokers of the
        other part must be served on another path."""
        known = tuple([domain.multicast.digest for domain in self._domains.values()])
        if known != self._connected_as_of:
            self._connected_as_of = known
            self._connected_clusters = tuple(name for name in self._clusters if self._is_connected(name))
        return self._connected_clusters

    def _is_connected(self, cluster: str) -> bool:
        """Whether all brokers of the cluster are reachable inside it. Some may be known only from another cluster."""
        inside = self._domains[cluster].multicast
        return inside.is_connected and all(
            inside.is_reachable(state.broker)
            for domain in self._domains.values()
            for state in domain.multicast.states()
            if cluster in state.clusters and not state.has_left
        )

    def _without_served(self, leg: ForwardingLeg, visited: set[str]) -> ForwardingLeg | None:
        """Returns the leg without brokers that were served in a cluster that the publication crossed, or None.

        A destination counts as served if this broker is in the crossed cluster too, and reaches it there. Membership
        alone is not enough, because the cluster may be partitioned.
        """
        seen = [self._domains[name].multicast for name in self._domains if name in visited]

        def is_new(broker: str) -> bool:
            return not any(multicast.is_reachable(broker) for multicast in seen)

        new = {broker for broker in (*leg.local, *leg.transit) if is_new(broker)}
        return leg.only_to(new) if new else None

    def _topology_changed(self) -> None:
        self._assign_pairs()
        super()._topology_changed()

    def _assign_pairs(self) -> None:
        assigned = tuple(
            (source, target)
            for source in self._domains
            for target in self._domains
            if source != target and self._is_responsible(source, target)
        )
        lost = [pair for pair in self._assigned_pairs if pair not in assigned]
        self._assigned_pairs = assigned
        self._ending_pairs = {pair: left for pair, left in self._ending_pairs.items() if pair not in assigned}
        self._ending_pairs.update(dict.fromkeys(lost, self.settings.detection_ticks + 2))
        self._activate_pairs(assigned)

    def _activate_pairs(self, assigned: tuple[ClusterPair, ...]) -> None:
        active = (*assigned, *self._ending_pairs)
        if active != self._active_pairs:
            self._active_pairs = active
            self._entries_changed([entry for domain in self._domains.values() for entry in domain.entries()])

    def tick(self) -> None:
        self._ending_pairs = {pair: left - 1 for pair, left in self._ending_pairs.items() if left > 1}
        self._activate_pairs(self._assigned_pairs)
        super().tick()

    def idle_ticks(self) -> int:
        # A pair with one tick left ends with the next tick.
        return min(super().idle_ticks(), min(self._ending_pairs.values(), default=ANY_NUMBER) - 1)

    def skip_ticks(self, count: int) -> None:
        super().skip_ticks(count)
        self._ending_pairs = {pair: left - count for pair, left in self._ending_pairs.items()}

    def _gap_behind(self, target: str) -> tuple[str, ...] | None:
        if self._missing_neighbours():
            return ()
        sources = [source for source, into in self._active_pairs if into == target]
        cut = tuple(source for source in sources if self._domains[source].silent_members())
        if not cut:
            return None
        return cut if len(cut) == 1 else ()

    def _is_responsible(self, source: str, target: str) -> bool:
        """Whether this broker has the smallest id of the edge brokers that are reachable in both clusters."""
        both = (self._domains[source].multicast, self._domains[target].multicast)
        return not any(
            state.broker < self.me
            and not state.has_left
            and {source, target} <= set(state.clusters)
            and all(multicast.is_reachable(state.broker) for multicast in both)
            for state in both[0].states()
        )

    def _entries_changed(self, entries: list[EntryId]) -> None:
        for entry in dict.fromkeys(entries):
            for target in self._domains:
                self._pass_on(entry, target)

    def _pass_on(self, entry: EntryId, target: str) -> None:
        """Exports the best offer of the entry into the target cluster, or withdraws the entry from it."""
        domain = self._domains[target]
        advertisement = self._best_offer(entry, target, Domain.offers_of_advertisement)
        if advertisement is not None:
            domain.export_advertisement(advertisement)
        elif entry.broker != self.me:
            domain.withdraw_advertisement(entry)
        subscription = self._best_offer(entry, target, Domain.offers_of_subscription)
        if subscription is not None:
            domain.export_subscription(subscription)
        elif entry.broker != self.me:
            domain.withdraw_subscription(entry)

    def _best_offer(
        self, entry: EntryId, target: str, offers_of: Callable[[Domain, EntryId], list[Offer]]
    ) -> Offer | None:
        """Returns the best offer from other clusters that has not crossed the target, with its source among those that
        it crossed."""
        offers = [
            (source, offer)
            for source in self._sources_for(entry, target)
            for offer in offers_of(self._domains[source], entry)
            if target not in offer.crossed
        ]
        if not offers:
            return None
        source, best = min(offers, key=_rank)
        return replace(best, crossed=(*best.crossed, source))

    def _sources_for(self, entry: EntryId, target: str) -> list[str]:
        """Returns the clusters from which this broker passes the entry on. Empty if its home is in the target
        itself."""
        home = self._domains[target].multicast.state_of(entry.broker)
        if entry.broker == self.me or (home is not None and not home.has_left):
            return []
        return [source for source, into in self._active_pairs if into == target]

    def substitute_leg(self, publication: Publish, lost: str) -> ForwardingLeg | None:
        """Returns a leg to the lost broker in another common cluster. Otherwise returns a leg to the reachable brokers
        that now pass on matching subscriptions, for example after an edge broker failed."""
        self.apply_link_states()
        domain = self._domains.get(publication.domain)
        if domain is None:
            return None
        if not domain.multicast.is_reachable(lost):
            for name in self._domains:
                if self.is_reachable(name, lost):
                    local = (lost,) if lost in publication.local else ()
                    onward = (lost,) if lost in publication.transit else ()
                    return ForwardingLeg(name, local, onward, publication.crossed, publication.tree)
        _, _, transit = domain.subscriptions.match(publication.attributes, publication.crossed)
        found = tuple(each for each in transit if each != lost and domain.multicast.is_reachable(each))
        return ForwardingLeg(publication.domain, (), found, publication.crossed, publication.tree) if found else None


def _rank(offer: tuple[str, Advertise | Subscribe]) -> tuple[bool, int, str]:
    """Returns a sort key: fresh before stale, then the fewest crossed clusters."""
    source, change = offer
    return change.is_stale, len(change.crossed), source
