"""MERC: match at the edge, route inside the cluster [THESIS 5].

Inside a cluster everything is D-DBR. A broker in several clusters is an edge broker: it passes advertisements and
subscriptions from one cluster into the others under its own name, and matches publications anew for each cluster that
they enter [THESIS Algorithm 3]. So a broker knows the brokers of its own clusters only.

Departs from [THESIS Algorithm 3]: line 9 matches a publication with the other clusters' advertisements; it must be
their subscriptions, as the text says.

Beyond the thesis: several edge brokers between two clusters, and clusters in a cycle. Of the live edge brokers between
two clusters the smallest passes entries on; the others hold the same tables, and the next one takes over when it dies.
When a smaller one comes or comes back, the present one goes on for a while: the other has to hear of the entries first.
An edge broker that cannot reach an entry's source offers it as stale: others follow a way that is whole, if there is
one, and keep the entry all the same, because unreachable is not gone. Entries carry the clusters that they crossed and
never enter one twice, as routes do in a path-vector protocol; a publication carries the clusters that it has been in
and is not matched with what came through these, because it was served there, unless the cluster is cut inside. In a
cycle of clusters, a publication that many want may still enter a cluster from two sides: an edge broker does not know
for which of the entries behind it the other side was chosen. Brokers there keep the first copy, so clients get one.
"""

from __future__ import annotations

from dataclasses import replace

from routing.destination_based import DestinationBased
from routing.messages import Advertise, EntryId, Publish, Subscribe
from routing.router import ForwardingLeg, TableWork

ClusterPair = tuple[str, str]
"""Two clusters: from the first, entries are passed on into the second."""


class MERC(DestinationBased):
    name = "merc"

    def __init__(
        self, me: str, incarnation: int, matcher: str = "auto", clusters: tuple[str, ...] = (), address: str = ""
    ) -> None:
        if not clusters:
            raise ValueError(f"broker {me} is in no cluster; MERC needs clusters, D-DBR does not")
        super().__init__(me, incarnation, matcher, clusters, address)
        self._connected_clusters: tuple[str, ...] = ()
        """This broker's clusters of which all brokers can be reached, as of these digests of link states."""
        self._connected_as_of: tuple[bytes, ...] = ()
        self._assigned_pairs: tuple[ClusterPair, ...] = ()
        """Those that are this broker's now."""
        self._active_pairs: tuple[ClusterPair, ...] = ()
        """Those, and the ones that fade."""
        self._ending_pairs: dict[ClusterPair, int] = {}
        """Duties that a smaller edge broker has now, with the ticks that are left: it has to recover first."""

    def _onward(self, publication: Publish) -> tuple[tuple[ForwardingLeg, ...], tuple[TableWork, ...]]:
        visited = {*publication.crossed, publication.domain}
        into = [name for name in self._domains if name not in visited]
        crossed = tuple(sorted({*publication.crossed, *self._served_clusters()}))
        legs, work = self._legs(publication.attributes, into, crossed)
        remaining = (self._without_served(leg, visited) for leg in legs)
        return tuple(leg for leg in remaining if leg is not None), work

    def _served_clusters(self) -> tuple[str, ...]:
        """A cluster that is cut inside does not count: whoever is beyond the cut must be served by another way."""
        known = tuple([domain.multicast.digest for domain in self._domains.values()])
        if known != self._connected_as_of:
            self._connected_as_of = known
            self._connected_clusters = tuple(name for name in self._clusters if self._is_connected(name))
        return self._connected_clusters

    def _is_connected(self, cluster: str) -> bool:
        """All brokers of the cluster can be reached in it. One may be known to be in it from another cluster alone."""
        inside = self._domains[cluster].multicast
        return inside.is_connected and all(
            inside.is_reachable(state.broker)
            for domain in self._domains.values()
            for state in domain.multicast.states()
            if cluster in state.clusters and not state.has_left
        )

    def _without_served(self, leg: ForwardingLeg, visited: set[str]) -> ForwardingLeg | None:
        """Without the brokers that were served in a cluster where the publication has been.

        That a broker is in such a cluster is not enough, because the cluster may be cut inside: this broker must be in
        it too, and reach the other one there.
        """
        seen = [self._domains[name].multicast for name in self._domains if name in visited]

        def is_new(broker: str) -> bool:
            return not any(multicast.is_reachable(broker) for multicast in seen)

        local = tuple(broker for broker in leg.local if is_new(broker))
        transit = tuple(broker for broker in leg.transit if is_new(broker))
        return replace(leg, local=local, transit=transit) if local or transit else None

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

    def _gap_behind(self, target: str) -> tuple[str, ...] | None:
        if self._missing_neighbours():
            return ()
        sources = [source for source, into in self._active_pairs if into == target]
        cut = tuple(source for source in sources if self._domains[source].silent_members())
        if not cut:
            return None
        return cut if len(cut) == 1 else ()

    def _is_responsible(self, source: str, target: str) -> bool:
        """Is this the smallest of the edge brokers that both clusters reach?"""
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
                self._pass_on_advertisement(entry, target)
                self._pass_on_subscription(entry, target)

    def _pass_on_advertisement(self, entry: EntryId, target: str) -> None:
        offers = [
            (source, offer)
            for source in self._sources_for(entry, target)
            for offer in self._domains[source].offers_of_advertisement(entry)
            if target not in offer.crossed
        ]
        if offers:
            source, best = min(offers, key=_rank)
            crossed = (*best.crossed, source)
            self._domains[target].export_advertisement(Advertise(entry, best.expression, crossed, best.is_stale))
        elif entry.broker != self.me:
            self._domains[target].withdraw_advertisement(entry)

    def _pass_on_subscription(self, entry: EntryId, target: str) -> None:
        offers = [
            (source, offer)
            for source in self._sources_for(entry, target)
            for offer in self._domains[source].offers_of_subscription(entry)
            if target not in offer.crossed
        ]
        if offers:
            source, best = min(offers, key=_rank)
            crossed = (*best.crossed, source)
            self._domains[target].export_subscription(replace(best, crossed=crossed))
        elif entry.broker != self.me:
            self._domains[target].withdraw_subscription(entry)

    def _sources_for(self, entry: EntryId, target: str) -> list[str]:
        """The clusters from which this broker passes the entry on; none if its home is in the target itself."""
        home = self._domains[target].multicast.state_of(entry.broker)
        if entry.broker == self.me or (home is not None and not home.has_left):
            return []
        return [source for source, into in self._active_pairs if into == target]

    def substitute_leg(self, publication: Publish, lost: str) -> ForwardingLeg | None:
        """The lost broker by another common cluster; or, after an edge broker's death, who now offers what it did."""
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
    """Fresh before stale, then the fewest clusters."""
    source, change = offer
    return change.is_stale, len(change.crossed), source
