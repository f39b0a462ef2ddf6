"""Flooding: every broker receives every publication. The baseline for other routers [THESIS 2.1].

A broker stores only local subscriptions. In an overlay with cycles a broker receives copies over several links, and
keeps the first. A neighbour that is reachable again receives the publications that it missed, as far as they are
retained.
"""

from __future__ import annotations

from matching.expressions.model import TRUE, Expression
from routing.hop_by_hop import DOMAIN, HopByHop
from routing.messages import EntryId, Publish
from routing.router import Counts, ForwardingLeg, LearnedSubscription, RoutingDecision, UnknownInterest
from routing.silence import ALWAYS
from routing.tables import LocalAdvertisements, LocalSubscriptions, work_of


class Flooding(HopByHop):
    name = "flooding"

    def __init__(
        self, me: str, incarnation: int, matcher: str = "auto", clusters: tuple[str, ...] = (), address: str = ""
    ) -> None:
        super().__init__(me, incarnation)
        self._local_advertisements = LocalAdvertisements()
        self._local_subscriptions = LocalSubscriptions(matcher)

    def advertise(self, entry: EntryId, client: str, expression: Expression) -> None:
        self._local_advertisements.insert(entry, client, expression)

    def deactivate_advertisement(self, entry: EntryId) -> None:
        self._local_advertisements.remove(entry)

    def unadvertise(self, entry: EntryId) -> None:
        """Does nothing: no other broker knows the advertisement."""

    def subscribe(self, entry: EntryId, client: str, expression: Expression, since: int = 0) -> None:
        self._local_subscriptions.insert(entry, client, expression)

    def unsubscribe(self, entry: EntryId) -> None:
        self._local_subscriptions.remove(entry)

    def match_own(self, client: str, attributes: bytes) -> RoutingDecision | None:
        advertisement = self._local_advertisements.find_permitting(client, attributes)
        if advertisement is None:
            return None
        report, clients = self._local_subscriptions.match(attributes)
        work = (work_of("L-PRT", report),)
        return RoutingDecision(clients, self._to_all_but(None), work, advertisement=advertisement)

    def match_arrived(self, publication: Publish, peer: str) -> RoutingDecision:
        legs = self._to_all_but(peer) if self.me in publication.transit else ()
        if self.me not in publication.local:
            return RoutingDecision({}, legs)
        report, clients = self._local_subscriptions.match(publication.attributes)
        return RoutingDecision(clients, legs, (work_of("L-PRT", report),))

    def current_legs(self, publication: Publish, peer: str | None) -> tuple[ForwardingLeg, ...]:
        return self._to_all_but(peer)

    def _to_all_but(self, peer: str | None) -> tuple[ForwardingLeg, ...]:
        """Returns a leg to all neighbours except `peer`. Without `settles_early` it includes unreachable ones, and the
        broker keeps the publication pending for them. Otherwise they receive it from retention when they are back."""
        known = self._neighbours if self.settings.settles_early else self._known_neighbours
        others = tuple(sorted(each for each in known if each != peer))
        return (ForwardingLeg(DOMAIN, others, others),) if others else ()

    def unknown_interest(self, publication: Publish, peer: str | None) -> UnknownInterest:
        """Returns the unreachable neighbours, which may pass publications on. They are also gaps, because no broker
        announces gaps."""
        lost = dict.fromkeys(
            (each for each in self._known_neighbours if each not in self._neighbours and each != peer), ALWAYS
        )
        return UnknownInterest(behind=lost, gaps=lost)

    def _neighbour_reachable(self, peer: str) -> None:
        self._learned_subscriptions.append(LearnedSubscription(peer, str(TRUE), 0))

    def leave(self) -> None:
        """Does nothing: no other broker has entries of this broker."""

    def counts(self) -> Counts:
        return Counts(len(self._local_advertisements), len(self._local_subscriptions), 0, 0)
