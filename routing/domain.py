"""The matching layer of D-DBR in one domain: an overlay without clusters, or one cluster of MERC [THESIS 4.1, 5.1].

A broker tells every broker of the domain what is advertised at it, and tells a broker of its subscriptions when an
advertisement from there intersects them. What it hears from the others is the domain's R-SRT and R-PRT. What a broker
told before a restart counts until its new incarnation has told everything.

Removal travels where the insertion went: an entry that is withdrawn is withdrawn from whoever was told of it, and a
subscription is withdrawn from a broker whose last intersecting advertisement is gone. A broker that joins is told
the advertisements, and its own lead the matching subscriptions to it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from matching.expressions.intersection import Region
from routing.messages import (
    GAP,
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
from routing.multicast import MulticastLayer
from routing.reliable_updates import UpdateReceiver, UpdateSender
from routing.router import LearnedSubscription, RouterSettings
from routing.silence import Silence
from routing.tables import Advertisement, AdvertisementTable, RemoteSubscriptions, expression_of, is_parsable, region_of

STARTING_TICKS = 2
"""Whoever is heard of later may have had subscribers before, and is asked for them."""


@dataclass(slots=True)
class _Exported:
    """A subscription that this broker passes on in the domain: a client's, or one from another cluster."""

    change: Subscribe
    region: Region
    sent_to: dict[str, None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Offer:
    """An entry as one source tells it. Of several, the one that came the shorter way counts."""

    source: str
    change: Advertise | Subscribe


class Domain:
    def __init__(
        self,
        multicast: MulticastLayer,
        incarnation: int,
        matcher: str,
        learned_subscriptions: list[LearnedSubscription] | None = None,
    ) -> None:
        """`learned` collects subscriptions that were not known before, or that a new incarnation of their source told
        again."""
        self.name = multicast.domain
        self.me = multicast.me
        self.multicast = multicast
        self.advertisements = AdvertisementTable()
        self.subscriptions = RemoteSubscriptions(matcher)
        self.settings = RouterSettings()
        self.changed_entries: list[EntryId] = []
        """Entries of which something changed since this was last emptied: an edge broker passes them on."""
        self._learned_subscriptions = learned_subscriptions if learned_subscriptions is not None else []
        self._update_sender = UpdateSender(self.me, incarnation, self.name)
        self._update_receiver = UpdateReceiver(self.me, incarnation, self.name)
        self._exported: dict[EntryId, _Exported] = {}
        self._advertised: dict[EntryId, Advertise] = {}
        self._advertisement_offers: dict[EntryId, dict[str, _Offer]] = {}
        self._subscription_offers: dict[EntryId, dict[str, _Offer]] = {}
        self._used_offers: dict[EntryId, _Offer] = {}
        """The offer by which a subscription stands in the R-PRT."""
        self._gaps: dict[EntryId, _Offer] = {}
        """Of those, the entries by which brokers say that some behind them are out of reach."""
        self._unreachable: set[str] = set()
        self._returned: dict[str, None] = {}
        """Brokers that can be reached again, and have not said yet that they have told everything."""
        self._converging_ticks = 0
        """Ticks in which more may be heard from brokers that can be reached again, or of others behind them."""
        self._known_digest = b""
        self._is_recovering = False
        self._awaited_openings: dict[str, int] = {}
        """Brokers whose present incarnation, given here, has yet to tell everything."""
        self._silence: Silence[str] = Silence()
        """Of brokers that are silent, or say that some behind them are: they may be one after the other."""
        self._first_known_ticks: dict[str, int] = {}
        """The tick in which a broker was first heard of."""
        self._former_members: dict[str, None] = {}
        """Stored names of brokers that were in the domain before a restart."""

    def export_advertisement(self, change: Advertise) -> None:
        """For all brokers of the domain."""
        if self._advertised.get(change.entry) != change:
            self._advertised[change.entry] = change
            self._update_sender.send_to_all(change)

    def withdraw_advertisement(self, entry: EntryId) -> None:
        if self._advertised.pop(entry, None) is not None:
            self._update_sender.send_to_all(Unadvertise(entry))

    def export_subscription(self, change: Subscribe, region: Region | None = None) -> None:
        """For the brokers with an advertisement that it intersects, now or later. Who has its region, says so."""
        known = self._exported.get(change.entry)
        if known is not None and known.change == change:
            return
        if known is not None:
            self.withdraw_subscription(change.entry)
        exported = _Exported(change, region or region_of(change.expression))
        self._exported[change.entry] = exported
        for source in self.advertisements.intersecting_sources(exported.region, change.crossed):
            self._send_subscription(exported, source)

    def withdraw_subscription(self, entry: EntryId) -> None:
        exported = self._exported.pop(entry, None)
        if exported is not None:
            for source in exported.sent_to:
                self._update_sender.send(source, Unsubscribe(entry))

    def _send_subscription(self, exported: _Exported, source: str) -> None:
        exported.sent_to[source] = None
        self._update_sender.send(source, exported.change)

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

    def receive(self, message: Message) -> None:
        """An update for this broker, or an answer to one of its own."""
        if isinstance(message, Update):
            self._receive_update(message)
        elif isinstance(message, UpdateAcknowledged):
            self._update_sender.receive_acknowledgement(message)
            if message.source in self._returned and not message.is_inquiry:
                self._send_inquiries()
        elif isinstance(message, Resend):
            self._update_sender.receive_resend_request(message)

    def _receive_update(self, update: Update) -> None:
        turn = next(turn for turn in update.turns if turn.destination == self.me)
        received = self._update_receiver.receive(update, turn)
        for change in received.changes:
            if isinstance(change, Unadvertise | Unsubscribe) or is_parsable(change.expression):
                self._apply(change, update.source)
        for change in received.repeated:
            if isinstance(change, Subscribe):
                self._learn(change, update.source)
        for change in received.withdrawn:
            self._apply(change, update.source)
        if received.is_complete:
            self._returned.pop(update.source, None)
        if received.answer is not None:
            self.multicast.send(received.answer)

    def _learn(self, change: Subscribe, source: str) -> None:
        if not change.is_gap and is_parsable(change.expression):
            self._learned_subscriptions.append(LearnedSubscription(source, change.expression, change.since))

    def _apply(self, change: Change, source: str) -> None:
        self.changed_entries.append(change.entry)
        if isinstance(change, Advertise):
            self._advertisement_offers.setdefault(change.entry, {})[source] = _Offer(source, change)
            self._insert_advertisement(change, source)
        elif isinstance(change, Unadvertise):
            if _drop_offer(self._advertisement_offers, change.entry, source):
                self.advertisements.remove(source, change.entry)
                self._withdraw_unmatched(source)
        elif isinstance(change, Subscribe):
            self._subscription_offers.setdefault(change.entry, {})[source] = _Offer(source, change)
            self._use_best_offer(change.entry)
        elif _drop_offer(self._subscription_offers, change.entry, source):
            self._use_best_offer(change.entry)

    def _insert_advertisement(self, change: Advertise, source: str) -> None:
        advertisement = Advertisement(change.entry, source, region_of(change.expression), change.crossed)
        self.advertisements.insert(advertisement)
        for exported in self._exported.values():
            if source not in exported.sent_to and self.advertisements.intersects(
                source, exported.region, exported.change.crossed
            ):
                self._send_subscription(exported, source)

    def _withdraw_unmatched(self, source: str) -> None:
        """An advertisement of the source is gone: so are the subscriptions that only it had called for."""
        for exported in self._exported.values():
            if source in exported.sent_to and not self.advertisements.intersects(
                source, exported.region, exported.change.crossed
            ):
                del exported.sent_to[source]
                self._update_sender.send(source, Unsubscribe(exported.change.entry))

    def _is_stale(self, offer: _Offer) -> bool:
        return offer.change.is_stale or offer.source in self._unreachable

    def _rank(self, offer: _Offer) -> tuple[bool, int, str]:
        return (self._is_stale(offer), len(offer.change.crossed), offer.source)

    def _use_best_offer(self, entry: EntryId) -> None:
        best = min(self._subscription_offers.get(entry, {}).values(), key=self._rank, default=None)
        previous = self._used_offers.pop(entry, None)
        if best is not None:
            self._used_offers[entry] = best
        if best == previous:
            return
        self.changed_entries.append(entry)
        if entry.number == GAP:
            if best is None:
                self._gaps.pop(entry, None)
            else:
                self._gaps[entry] = best
            return
        if previous is not None:
            self.subscriptions.remove(entry)
        if best is not None:
            assert isinstance(best.change, Subscribe)
            expression = expression_of(best.change.expression)
            self.subscriptions.insert(entry, best.source, expression, best.change.crossed)
            # By another way too: whoever was asked to pass a publication on may have relied on this one.
            self._learn(best.change, best.source)

    def topology_changed(self) -> None:
        """Tells those that can be reached again the rest, and asks restarted ones for theirs; drops what brokers said
        that have left."""
        if self.multicast.digest == self._known_digest:
            return
        self._known_digest = self.multicast.digest
        routes = self.multicast.topology.routes_from(self.me)
        for state in self.multicast.states():
            if state.broker == self.me:
                continue
            if state.broker not in self._first_known_ticks:
                self._first_known_ticks[state.broker] = self._silence.now
                if self._silence.now > STARTING_TICKS and state.broker in routes:
                    self._returned[state.broker] = None
                    self._converging_ticks = self.settings.detection_ticks
            if state.has_left:
                for change in self._update_receiver.drop_older_incarnations(state.broker, state.incarnation + 1):
                    self._apply(change, state.broker)
                self._update_sender.remove_destination(state.broker)
            elif state.broker in routes:
                self._update_sender.set_reachable(state.broker, state.incarnation)
            else:
                self._update_sender.set_unreachable(state.broker)
        self._set_unreachable_brokers({state.broker for state in self.multicast.states()} - routes.keys() - {self.me})
        self._send_inquiries()
        self._await_openings()
        self._request_openings()

    def begin_recovery(self) -> None:
        """What is to be told depends on others' advertisements and, at an edge broker, on other clusters' entries."""
        self._is_recovering = True
        self._await_openings()
        self._update_sender.leave_openings_unfinished()

    def end_recovery(self) -> None:
        self._is_recovering = False
        self._update_sender.finish_openings()
        self._converging_ticks = self.settings.detection_ticks

    @property
    def has_all_openings(self) -> bool:
        return not self._missing_openings()

    def _await_openings(self) -> None:
        """Of a broker that nothing was held from before, nothing is missing, unless this broker itself started anew."""
        self._awaited_openings = {
            state.broker: state.incarnation
            for state in self.multicast.states()
            if state.broker != self.me
            and not state.has_left
            and not self._update_receiver.is_complete(state.broker, state.incarnation)
            and (self._is_recovering or self._update_receiver.has_older_entries(state.broker, state.incarnation))
        }

    def _missing_openings(self) -> list[str]:
        """Brokers that can be reached and whose present incarnation has yet to tell everything."""
        if self._awaited_openings:
            self._awaited_openings = {
                broker: incarnation
                for broker, incarnation in self._awaited_openings.items()
                if not self._update_receiver.is_complete(broker, incarnation)
            }
        return [broker for broker in self._awaited_openings if broker not in self._unreachable]

    def _send_inquiries(self) -> None:
        """What a broker has to tell depends on what it was told: it is asked after that."""
        for broker in self._returned:
            if self._update_sender.is_up_to_date(broker):
                self.multicast.send(self._update_receiver.inquiry(broker))

    def _request_openings(self) -> None:
        for broker in self._missing_openings():
            request = self._update_receiver.opening_request(broker, self._awaited_openings[broker])
            if request is not None:
                self.multicast.send(request)

    def members(self) -> tuple[str, ...]:
        known = {state.broker: state.has_left for state in self.multicast.states() if state.broker != self.me}
        here = {broker for broker, has_left in known.items() if not has_left}
        return tuple(sorted(here.union(self._missing_former_members())))

    def restore_members(self, members: tuple[str, ...]) -> None:
        self._former_members = dict.fromkeys(members)

    def _missing_former_members(self) -> list[str]:
        """Brokers that were there before a restart and that nobody has told of since."""
        state_of = self.multicast.state_of
        self._former_members = {broker: None for broker in self._former_members if state_of(broker) is None}
        return list(self._former_members)

    def silent_members(self) -> dict[str, int]:
        """Brokers of the domain that cannot say at present what they want, with the ticks for which that is so."""
        states = {broker: self.multicast.state_of(broker) for broker in (*self._unreachable, *self._returned)}
        gone = [broker for broker, state in states.items() if state is not None and not state.has_left]
        silent = sorted({*gone, *self._missing_openings(), *self._missing_former_members()})
        return {broker: self._ticks_silent(broker) for broker in silent}

    def _ticks_silent(self, broker: str) -> int:
        return self._silence.ticks(broker, self._first_known_ticks.get(broker, 0))

    @property
    def is_converging(self) -> bool:
        return bool(self._converging_ticks or self._returned)

    def gaps(self, crossed: tuple[str, ...] | None) -> dict[str, int]:
        """Brokers that pass entries on and cannot reach all brokers behind them, with the ticks for which that is so;
        but for what came through clusters that a publication has crossed."""
        return {
            offer.source: self._ticks_silent(offer.source)
            for offer in self._gaps.values()
            if not set(offer.change.crossed) & set(crossed or ())
        }

    def _set_unreachable_brokers(self, unreachable: set[str]) -> None:
        """Subscriptions follow an offer that can be reached; edge brokers pass on what has become stale, or fresh."""
        if unreachable == self._unreachable:
            return
        changed = unreachable ^ self._unreachable
        if self._unreachable - unreachable:
            self._converging_ticks = self.settings.detection_ticks
        self._returned.update(dict.fromkeys(sorted(self._unreachable - unreachable)))
        self._returned = {broker: None for broker in self._returned if broker not in unreachable}
        self._unreachable = unreachable
        for offers in (self._subscription_offers, self._advertisement_offers):
            for entry in [entry for entry, by_source in offers.items() if changed.intersection(by_source)]:
                self.changed_entries.append(entry)
                if offers is self._subscription_offers:
                    self._use_best_offer(entry)

    def flush(self) -> None:
        """Sends what was collected."""
        for update in self._update_sender.flush():
            self.multicast.send(update)

    def tick(self) -> None:
        for update in self._update_sender.repeat():
            self.multicast.send(update)
        silent = {**self.silent_members(), **self.gaps(None)}
        self._silence.tick({broker: self._first_known_ticks.get(broker, 0) for broker in silent})
        self._converging_ticks = max(0, self._converging_ticks - 1)
        self._send_inquiries()
        self._request_openings()

    @property
    def unacknowledged(self) -> int:
        return self._update_sender.unacknowledged


def _drop_offer(offers: dict[EntryId, dict[str, _Offer]], entry: EntryId, source: str) -> bool:
    """Was it there? What could not be read was never entered."""
    if source not in offers.get(entry, {}):
        return False
    del offers[entry][source]
    if not offers[entry]:
        del offers[entry]
    return True
