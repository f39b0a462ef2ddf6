"""The matching layer of D-DBR in one domain: an overlay without clusters, or one cluster of MERC [THESIS 4.1, 5.1].

A broker tells every broker of the domain what is advertised at it, and tells a broker of its subscriptions when an
advertisement from there intersects them. What it hears from the others is the domain's R-SRT and R-PRT.

Removal travels where the insertion went: an entry that is withdrawn is withdrawn from whoever was told of it, and a
subscription is withdrawn from a broker whose last intersecting advertisement is gone. A broker that joins is told
the advertisements, and its own lead the matching subscriptions to it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from matching.intersection import Region
from routing.correspondence import Hearer, Teller
from routing.messages import (
    Advertise,
    Change,
    EntryId,
    Message,
    Resend,
    Subscribe,
    Unadvertise,
    Unsubscribe,
    Update,
    UpdateAcknowledged,
)
from routing.multicast import Multicasting
from routing.tables import Advertisement, AdvertisementTable, RemoteSubscriptions, expression_of, is_readable, region_of


@dataclass(slots=True)
class _Exported:
    """A subscription that this broker passes on in the domain: a client's, or one from another cluster."""

    change: Subscribe
    region: Region
    told: dict[str, None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Offer:
    """An entry as one source tells it. Of several, the one that came the shorter way counts."""

    source: str
    change: Advertise | Subscribe


class Domain:
    def __init__(self, multicasting: Multicasting, incarnation: int, matcher: str) -> None:
        self.name = multicasting.domain
        self.me = multicasting.me
        self.multicasting = multicasting
        self.advertisements = AdvertisementTable()
        self.subscriptions = RemoteSubscriptions(matcher)
        self.heard: list[EntryId] = []
        """Entries of which something changed since this was last emptied: an edge broker passes them on."""
        self._teller = Teller(self.me, incarnation, self.name)
        self._hearer = Hearer(self.me, incarnation, self.name)
        self._exported: dict[EntryId, _Exported] = {}
        self._advertised: dict[EntryId, Advertise] = {}
        self._advertisement_offers: dict[EntryId, dict[str, _Offer]] = {}
        self._subscription_offers: dict[EntryId, dict[str, _Offer]] = {}
        self._followed: dict[EntryId, _Offer] = {}
        """The offer by which a subscription stands in the R-PRT."""
        self._unreachable: set[str] = set()
        self._known_digest = b""

    def export_advertisement(self, change: Advertise) -> None:
        """For all brokers of the domain."""
        if self._advertised.get(change.entry) != change:
            self._advertised[change.entry] = change
            self._teller.tell_all(change)

    def withdraw_advertisement(self, entry: EntryId) -> None:
        if self._advertised.pop(entry, None) is not None:
            self._teller.tell_all(Unadvertise(entry))

    def export_subscription(self, change: Subscribe, region: Region | None = None) -> None:
        """For the brokers with an advertisement that it intersects, now or later. Who has its region, says so."""
        known = self._exported.get(change.entry)
        if known is not None and known.change == change:
            return
        if known is not None:
            self.withdraw_subscription(change.entry)
        exported = _Exported(change, region or region_of(change.expression))
        self._exported[change.entry] = exported
        for source in self.advertisements.sources_meeting(exported.region, change.crossed):
            self._tell_of(exported, source)

    def withdraw_subscription(self, entry: EntryId) -> None:
        exported = self._exported.pop(entry, None)
        if exported is not None:
            for source in exported.told:
                self._teller.tell(source, Unsubscribe(entry))

    def _tell_of(self, exported: _Exported, source: str) -> None:
        exported.told[source] = None
        self._teller.tell(source, exported.change)

    def offers_of_advertisement(self, entry: EntryId) -> list[Advertise]:
        """How the entry is known here."""
        return [change for change in self._offers(self._advertisement_offers, entry) if isinstance(change, Advertise)]

    def offers_of_subscription(self, entry: EntryId) -> list[Subscribe]:
        return [change for change in self._offers(self._subscription_offers, entry) if isinstance(change, Subscribe)]

    def _offers(self, offers: dict[EntryId, dict[str, _Offer]], entry: EntryId) -> list[Advertise | Subscribe]:
        """An offer from a broker that cannot be reached is stale, whatever that broker said."""
        return [replace(offer.change, is_stale=self._is_stale(offer)) for offer in offers.get(entry, {}).values()]

    def entries(self) -> list[EntryId]:
        return [*self._advertisement_offers, *self._subscription_offers]

    def take(self, message: Message) -> None:
        """An update for this broker, or an answer to one of its own."""
        if isinstance(message, Update):
            turn = next(turn for turn in message.turns if turn.destination == self.me)
            changes, answer = self._hearer.take(message, turn)
            for change in changes:
                if isinstance(change, Unadvertise | Unsubscribe) or is_readable(change.expression):
                    self._apply(change, message.source)
            if answer is not None:
                self.multicasting.spread(answer)
        elif isinstance(message, UpdateAcknowledged):
            self._teller.acknowledged(message)
        elif isinstance(message, Resend):
            self._teller.asked_to_resend(message)

    def _apply(self, change: Change, source: str) -> None:
        self.heard.append(change.entry)
        if isinstance(change, Advertise):
            self._advertisement_offers.setdefault(change.entry, {})[source] = _Offer(source, change)
            self._insert_advertisement(change, source)
        elif isinstance(change, Unadvertise):
            if _drop_offer(self._advertisement_offers, change.entry, source):
                self.advertisements.remove(source, change.entry)
                self._withdraw_from(source)
        elif isinstance(change, Subscribe):
            self._subscription_offers.setdefault(change.entry, {})[source] = _Offer(source, change)
            self._follow_best(change.entry)
        elif _drop_offer(self._subscription_offers, change.entry, source):
            self._follow_best(change.entry)

    def _insert_advertisement(self, change: Advertise, source: str) -> None:
        advertisement = Advertisement(change.entry, source, region_of(change.expression), change.crossed)
        self.advertisements.insert(advertisement)
        for exported in self._exported.values():
            if source not in exported.told and self.advertisements.is_met_by(
                source, exported.region, exported.change.crossed
            ):
                self._tell_of(exported, source)

    def _withdraw_from(self, source: str) -> None:
        """An advertisement of the source is gone: so are the subscriptions that only it had called for."""
        for exported in self._exported.values():
            if source in exported.told and not self.advertisements.is_met_by(
                source, exported.region, exported.change.crossed
            ):
                del exported.told[source]
                self._teller.tell(source, Unsubscribe(exported.change.entry))

    def _is_stale(self, offer: _Offer) -> bool:
        return offer.change.is_stale or offer.source in self._unreachable

    def _rank(self, offer: _Offer) -> tuple[bool, int, str]:
        return (self._is_stale(offer), len(offer.change.crossed), offer.source)

    def _follow_best(self, entry: EntryId) -> None:
        best = min(self._subscription_offers.get(entry, {}).values(), key=self._rank, default=None)
        followed = self._followed.pop(entry, None)
        if best is not None:
            self._followed[entry] = best
        if best == followed:
            return
        self.heard.append(entry)
        if followed is not None:
            self.subscriptions.remove(entry)
        if best is not None:
            expression = expression_of(best.change.expression)
            self.subscriptions.insert(entry, best.source, expression, best.change.crossed)

    def topology_changed(self) -> None:
        """Whoever can be reached again hears the rest; who left, or started anew, is not held to what it said."""
        if self.multicasting.digest == self._known_digest:
            return
        self._known_digest = self.multicasting.digest
        routes = self.multicasting.topology.routes_from(self.me)
        for state in self.multicasting.states():
            if state.broker == self.me:
                continue
            earliest = state.incarnation + 1 if state.has_left else state.incarnation
            for change in self._hearer.disregard_before(state.broker, earliest):
                self._apply(change, state.broker)
            if state.has_left:
                self._teller.forget(state.broker)
            elif state.broker in routes:
                self._teller.reaches(state.broker, state.incarnation)
            else:
                self._teller.cannot_reach(state.broker)
        self._follow_reachable({state.broker for state in self.multicasting.states()} - routes.keys() - {self.me})

    def _follow_reachable(self, unreachable: set[str]) -> None:
        """Subscriptions follow an offer that can be reached; edge brokers pass on what has become stale, or fresh."""
        if unreachable == self._unreachable:
            return
        changed = unreachable ^ self._unreachable
        self._unreachable = unreachable
        for offers in (self._subscription_offers, self._advertisement_offers):
            for entry in [entry for entry, by_source in offers.items() if changed.intersection(by_source)]:
                self.heard.append(entry)
                if offers is self._subscription_offers:
                    self._follow_best(entry)

    def flush(self) -> None:
        """Sends what was collected."""
        for update in self._teller.flush():
            self.multicasting.spread(update)

    def tick(self) -> None:
        for update in self._teller.repeat():
            self.multicasting.spread(update)

    @property
    def unacknowledged(self) -> int:
        return self._teller.unacknowledged


def _drop_offer(offers: dict[EntryId, dict[str, _Offer]], entry: EntryId, source: str) -> bool:
    """Was it there? What could not be read was never entered."""
    if source not in offers.get(entry, {}):
        return False
    del offers[entry][source]
    if not offers[entry]:
        del offers[entry]
    return True
