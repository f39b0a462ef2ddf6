"""MERC: match at the edge, route inside the cluster [THESIS 5].

Inside a cluster everything is D-DBR. A broker in several clusters is an edge broker: it passes advertisements and
subscriptions from one cluster into the others under its own name, and matches publications anew for each cluster that
they enter [THESIS Algorithm 3]. So a broker knows the brokers of its own clusters only.

Departs from [THESIS Algorithm 3]: line 9 matches a publication with the other clusters' advertisements; it must be
their subscriptions, as the text says.

Beyond the thesis: several edge brokers between two clusters, and clusters in a cycle. Of the live edge brokers between
two clusters the smallest passes entries on; the others hold the same tables, and the next one takes over when it dies.
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
from routing.router import Stretch, TableWork


class MERC(DestinationBased):
    name = "merc"

    def __init__(
        self, me: str, incarnation: int, matcher: str = "auto", clusters: tuple[str, ...] = (), address: str = ""
    ) -> None:
        if not clusters:
            raise ValueError(f"broker {me} is in no cluster; MERC needs clusters, D-DBR does not")
        super().__init__(me, incarnation, matcher, clusters, address)
        self._duties: tuple[tuple[str, str], ...] = ()
        """Pairs of clusters, from and into, between which this broker passes entries on."""

    def _onward(self, publication: Publish) -> tuple[tuple[Stretch, ...], tuple[TableWork, ...]]:
        been = {*publication.crossed, publication.domain}
        into = [name for name in self._domains if name not in been]
        crossed = tuple(sorted({*publication.crossed, *self._served_here()}))
        stretches, work = self._stretches(publication.attributes, into, crossed)
        beyond = (self._beyond(stretch, been) for stretch in stretches)
        return tuple(stretch for stretch in beyond if stretch is not None), work

    def _served_here(self) -> tuple[str, ...]:
        """A cluster that is cut inside does not count: whoever is beyond the cut must be served by another way."""
        return tuple(name for name in self._clusters if self._domains[name].multicasting.is_whole)

    def _beyond(self, stretch: Stretch, been: set[str]) -> Stretch | None:
        """Without the brokers that were served in a cluster where the publication has been.

        That a broker is in such a cluster is not enough, because the cluster may be cut inside: this broker must be in
        it too, and reach the other one there.
        """
        seen = [self._domains[name].multicasting for name in self._domains if name in been]

        def is_new(broker: str) -> bool:
            return not any(multicasting.is_reachable(broker) for multicasting in seen)

        local = tuple(broker for broker in stretch.local if is_new(broker))
        transit = tuple(broker for broker in stretch.transit if is_new(broker))
        return replace(stretch, local=local, transit=transit) if local or transit else None

    def _topology_changed(self) -> None:
        duties = tuple(
            (source, target)
            for source in self._domains
            for target in self._domains
            if source != target and self._is_responsible(source, target)
        )
        if duties != self._duties:
            self._duties = duties
            self._entries_changed([entry for domain in self._domains.values() for entry in domain.entries()])
        super()._topology_changed()

    def _is_responsible(self, source: str, target: str) -> bool:
        """Is this the smallest of the edge brokers that both clusters reach?"""
        both = (self._domains[source].multicasting, self._domains[target].multicasting)
        return not any(
            state.broker < self.me
            and not state.has_left
            and {source, target} <= set(state.clusters)
            and all(multicasting.is_reachable(state.broker) for multicasting in both)
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
            source, best = min(offers, key=_way)
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
            source, best = min(offers, key=_way)
            crossed = (*best.crossed, source)
            self._domains[target].export_subscription(Subscribe(entry, best.expression, crossed, None, best.is_stale))
        elif entry.broker != self.me:
            self._domains[target].withdraw_subscription(entry)

    def _sources_for(self, entry: EntryId, target: str) -> list[str]:
        """The clusters from which this broker passes the entry on; none if its home is in the target itself."""
        home = self._domains[target].multicasting.state_of(entry.broker)
        if entry.broker == self.me or (home is not None and not home.has_left):
            return []
        return [source for source, into in self._duties if into == target]

    def substitutes(self, publication: Publish, lost: str) -> Stretch | None:
        """The lost broker by another common cluster; or, after an edge broker's death, who now offers what it did."""
        self.catch_up()
        domain = self._domains.get(publication.domain)
        if domain is None:
            return None
        if not domain.multicasting.is_reachable(lost):
            for name in self._domains:
                if self.is_reachable(name, lost):
                    local = (lost,) if lost in publication.local else ()
                    onward = (lost,) if lost in publication.transit else ()
                    return Stretch(name, local, onward, publication.crossed, publication.tree)
        _, _, transit = domain.subscriptions.match(publication.attributes, publication.crossed)
        known = {*publication.transit, *publication.local}
        found = tuple(each for each in transit if each not in known and domain.multicasting.is_reachable(each))
        return Stretch(publication.domain, (), found, publication.crossed, publication.tree) if found else None


def _way(offer: tuple[str, Advertise | Subscribe]) -> tuple[bool, int, str]:
    """Fresh before stale, then the fewest clusters."""
    source, change = offer
    return change.is_stale, len(change.crossed), source
