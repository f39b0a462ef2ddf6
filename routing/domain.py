"""The matching layer of D-DBR in one domain: an overlay without clusters, or one cluster of MERC [THESIS 4.1, 5.1].

A broker sends its advertisements to every broker of the domain. It sends a subscription to the brokers with an
advertisement that the subscription intersects. The entries that it receives form the domain's R-SRT and R-PRT. The
entries of a restarted broker count until its new incarnation has completed its opening.

A withdrawal follows the entry: the broker sends it to every broker that received the entry. It also withdraws a
subscription from a broker whose last intersecting advertisement was withdrawn. A broker that joins receives all
advertisements. Its own advertisements make other brokers send it the intersecting subscriptions.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from msgspec.structs import replace

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
from routing.router import ANY_NUMBER, LearnedSubscription, RouterSettings
from routing.silence import Silence
from routing.tables import Advertisement, AdvertisementTable, RemoteSubscriptions, expression_of, is_parsable, region_of

STARTING_TICKS = 2
"""A broker that becomes known after this many ticks may already have subscriptions, and receives an inquiry."""


@dataclass(slots=True)
class _Exported:
    """A subscription that this broker exports into the domain: a client's, or one from another cluster. `sent_to` lists
    the brokers that received it."""

    change: Subscribe
    region: Region
    sent_to: dict[str, None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Offer:
    """An entry as one source sent it. Of several offers, the one with the shortest path is used."""

    source: str
    change: Advertise | Subscribe


class Domain:
    """One broker's tables and updates in one domain."""

    def __init__(
        self,
        multicast: MulticastLayer,
        incarnation: int,
        matcher: str,
        learned_subscriptions: list[LearnedSubscription] | None = None,
    ) -> None:
        """`learned_subscriptions` collects subscriptions that are new here, or that a new incarnation of their source
        repeated."""
        self.name = multicast.domain
        self.me = multicast.me
        self.multicast = multicast
        self.advertisements = AdvertisementTable()
        self.subscriptions = RemoteSubscriptions(matcher)
        self.settings = RouterSettings()
        self.changed_entries: list[EntryId] = []
        """Entries that changed since the owner last emptied this list. An edge broker passes them on."""
        self._learned_subscriptions = learned_subscriptions if learned_subscriptions is not None else []
        self.update_sender = UpdateSender(self.me, incarnation, self.name)
        self._update_receiver = UpdateReceiver(self.me, incarnation, self.name)
        self._exported: dict[EntryId, _Exported] = {}
        self._advertised: dict[EntryId, Advertise] = {}
        self._advertisement_offers: dict[EntryId, dict[str, _Offer]] = {}
        self._subscription_offers: dict[EntryId, dict[str, _Offer]] = {}
        self._used_offers: dict[EntryId, _Offer] = {}
        """The offer of each subscription that is in the R-PRT."""
        self._gaps: dict[EntryId, _Offer] = {}
        """The used offers that announce gaps."""
        self._unreachable: set[str] = set()
        self._returned: dict[str, None] = {}
        """Brokers that are reachable again, and have not confirmed yet that they sent all changes."""
        self._converging_ticks = 0
        """Remaining ticks in which brokers that are reachable again, or others behind them, may send more changes."""
        self._known_digest = b""
        self._is_recovering = False
        self._awaited_openings: dict[str, int] = {}
        """Brokers whose opening is not complete, with their present incarnation."""
        self._silence: Silence[str] = Silence()
        """How long brokers have been silent or had a gap. One state may follow the other."""
        self._first_known_ticks: dict[str, int] = {}
        """The tick in which a broker became known."""
        self._former_members: dict[str, None] = {}
        """Names, restored from the store, of brokers that were in the domain before a restart."""

    def export_advertisement(self, change: Advertise) -> None:
        """Sends an advertisement to all brokers of the domain."""
        if self._advertised.get(change.entry) != change:
            self._advertised[change.entry] = change
            self.update_sender.send_to_all(change)

    def withdraw_advertisement(self, entry: EntryId) -> None:
        if self._advertised.pop(entry, None) is not None:
            self.update_sender.send_to_all(Unadvertise(entry))

    def export_subscription(self, change: Subscribe, region: Region | None = None) -> None:
        """Sends a subscription to the brokers with an advertisement that it intersects, now or later. A caller that has
        the expression's region passes it."""
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
                self.update_sender.send(source, Unsubscribe(entry))

    def _send_subscription(self, exported: _Exported, source: str) -> None:
        exported.sent_to[source] = None
        self.update_sender.send(source, exported.change)

    def offers_of_advertisement(self, entry: EntryId) -> list[Advertise]:
        """Returns the advertisement as each source sent it."""
        return [change for change in self._offers(self._advertisement_offers, entry) if isinstance(change, Advertise)]

    def offers_of_subscription(self, entry: EntryId) -> list[Subscribe]:
        """Returns the subscription as each source sent it."""
        return [change for change in self._offers(self._subscription_offers, entry) if isinstance(change, Subscribe)]

    def _offers(self, offers: dict[EntryId, dict[str, _Offer]], entry: EntryId) -> list[Advertise | Subscribe]:
        """Returns the offers of an entry. The offer of an unreachable broker is stale, even if it was not sent as
        stale."""
        return [replace(offer.change, is_stale=self._is_stale(offer)) for offer in offers.get(entry, {}).values()]

    def entries(self) -> list[EntryId]:
        """Returns the entries of other brokers."""
        return [*self._advertisement_offers, *self._subscription_offers]

    def receive(self, message: Message) -> None:
        """Handles an update for this broker, or an answer to one of its own."""
        if isinstance(message, Update):
            self._receive_update(message)
        elif isinstance(message, UpdateAcknowledged):
            self.update_sender.receive_acknowledgement(message)
            if message.source in self._returned and not message.is_inquiry:
                self._send_inquiries()
        elif isinstance(message, Resend):
            self.update_sender.receive_resend_request(message)

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
        """Withdraws from the source the subscriptions that intersect none of its remaining advertisements."""
        for exported in self._exported.values():
            if source in exported.sent_to and not self.advertisements.intersects(
                source, exported.region, exported.change.crossed
            ):
                del exported.sent_to[source]
                self.update_sender.send(source, Unsubscribe(exported.change.entry))

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
            # This includes a changed offer: a broker that had to pass a publication on may have relied on this one.
            self._learn(best.change, best.source)

    def topology_changed(self) -> None:
        """Applies changed link states: resumes updates to reachable brokers, requests the openings of restarted ones,
        and removes the entries of brokers that have left."""
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
                self.update_sender.remove_destination(state.broker)
            elif state.broker in routes:
                self.update_sender.set_reachable(state.broker, state.incarnation)
            else:
                self.update_sender.set_unreachable(state.broker)
        self._set_unreachable_brokers({state.broker for state in self.multicast.states()} - routes.keys() - {self.me})
        self._send_inquiries()
        self._await_openings()
        self._request_openings()

    def begin_recovery(self) -> None:
        """Leaves openings unfinished. Their content depends on the advertisements of other brokers and, at an edge
        broker, on the entries of other clusters."""
        self._is_recovering = True
        self._await_openings()
        self.update_sender.leave_openings_unfinished()

    def end_recovery(self) -> None:
        self._is_recovering = False
        self.update_sender.finish_openings()
        self._converging_ticks = self.settings.detection_ticks

    @property
    def has_all_openings(self) -> bool:
        return not self._missing_openings()

    def _await_openings(self) -> None:
        """Sets the brokers whose openings are not complete. An opening is awaited only from a broker with known
        entries, unless this broker itself recovers from a restart."""
        self._awaited_openings = {
            state.broker: state.incarnation
            for state in self.multicast.states()
            if state.broker != self.me
            and not state.has_left
            and not self._update_receiver.is_complete(state.broker, state.incarnation)
            and (self._is_recovering or self._update_receiver.has_older_entries(state.broker, state.incarnation))
        }

    def _missing_openings(self) -> list[str]:
        """Returns reachable brokers whose present incarnation has not completed its opening."""
        return [
            broker
            for broker, incarnation in self._awaited_openings.items()
            if broker not in self._unreachable and not self._update_receiver.is_complete(broker, incarnation)
        ]

    def _send_inquiries(self) -> None:
        """Sends inquiries to brokers that are reachable again and have acknowledged all changes. Their own changes may
        depend on these."""
        for broker in self._returned:
            if self.update_sender.is_up_to_date(broker):
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
        """Returns former members of which no link state has arrived since the restart."""
        return [broker for broker in self._former_members if self.multicast.state_of(broker) is None]

    def silent_members(self) -> dict[str, int]:
        """Returns the brokers of the domain that cannot send their subscriptions at present, and for how many ticks."""
        states = {broker: self.multicast.state_of(broker) for broker in (*self._unreachable, *self._returned)}
        present = [broker for broker, state in states.items() if state is not None and not state.has_left]
        silent = sorted({*present, *self._missing_openings(), *self._missing_former_members()})
        return {broker: self._ticks_silent(broker) for broker in silent}

    def _ticks_silent(self, broker: str) -> int:
        return self._silence.ticks(broker, self._first_known_ticks.get(broker, 0))

    @property
    def is_converging(self) -> bool:
        return bool(self._converging_ticks or self._returned)

    def gaps(self, crossed: tuple[str, ...] | None) -> dict[str, int]:
        """Returns the brokers that announced a gap, and for how many ticks. Leaves out gaps that crossed a cluster in
        `crossed`, the clusters that a publication has crossed."""
        return {
            offer.source: self._ticks_silent(offer.source)
            for offer in self._gaps.values()
            if not set(offer.change.crossed) & set(crossed or ())
        }

    def _set_unreachable_brokers(self, unreachable: set[str]) -> None:
        """Records the unreachable brokers. Chooses the used offers again, and marks entries as changed whose offers
        became stale or fresh."""
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
        """Sends the collected changes."""
        for update in self.update_sender.flush():
            self.multicast.send(update)

    def tick(self, detection_ticks: int) -> None:
        for update in self.update_sender.repeat():
            self.multicast.send(update)
        silent = {**self.silent_members(), **self.gaps(None)}
        known = {broker: self._first_known_ticks.get(broker, 0) for broker in silent}
        self._silence.tick(known, remember=detection_ticks)
        self._converging_ticks = max(0, self._converging_ticks - 1)
        self._send_inquiries()
        self._request_openings()

    def idle_ticks(self) -> int:
        """Returns how many ticks from now on only count, if the last tick sent nothing and no message comes."""
        if self.update_sender.is_repeating:
            return 0
        # The tick in which the countdown ends changes `is_converging`.
        return self._converging_ticks - 1 if self._converging_ticks else ANY_NUMBER

    def skip_ticks(self, count: int, detection_ticks: int) -> None:
        """Counts ticks without running them: at most `idle_ticks`."""
        self.update_sender.skip_ticks(count)
        self._silence.skip_ticks(count, remember=detection_ticks)
        self._converging_ticks = max(0, self._converging_ticks - count)

    @property
    def unacknowledged(self) -> int:
        return self.update_sender.unacknowledged


def _drop_offer(offers: dict[EntryId, dict[str, _Offer]], entry: EntryId, source: str) -> bool:
    """Removes an offer. Returns False if there was none: an entry that cannot be parsed is never added."""
    if source not in offers.get(entry, {}):
        return False
    del offers[entry][source]
    if not offers[entry]:
        del offers[entry]
    return True
