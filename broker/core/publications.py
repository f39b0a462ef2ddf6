"""A publication's way through one broker: accepted from a client or received from a neighbour, served, forwarded,
settled.

    accept   ── matched by the router ──► serve local clients
                                      └─► retain it, forward it along its legs ──► settled, when all destinations are
    receive  ── as above, as far as it is new here; the broker that sent it hears when it is settled

Everything may arrive twice, late or never; see `retransmission`, `retention` and `routing.reliable_updates`. A broker
settles a publication with brokers nearer to its publisher when all is done, and with all others at once. So a broker
waits only for brokers that are further away, and never in a circle.
"""

from __future__ import annotations

from functools import partial

from broker.core.client import Client
from broker.core.context import CoreContext
from broker.core.deduplication import PublishLedger, SeenPublications
from broker.core.effects import Accept, Deliver, MatchedRow, Persist, Record, Refuse, SetTimer
from broker.core.eviction import MOST_NAMED, Eviction
from broker.core.inputs import Published
from broker.core.late_subscriptions import LateSubscriptions
from broker.core.links import Links
from broker.core.once_ids import OnceIds
from broker.core.pending_writes import PendingWrites
from broker.core.recovery import Recovery
from broker.core.retention import AdvertisementUse, RetainedPublication, Retention
from broker.core.retransmission import PendingPublication, Retransmission
from broker.core.sessions import Sessions
from broker.core.stored_arrivals import StoredArrivals, arrival_key
from matching import MatchingError
from routing.messages import (
    BOTH_DUTIES,
    DEFAULT_HOP_LIMIT,
    PASS_ON,
    SERVE,
    EntryId,
    OnceId,
    PublicationId,
    Publish,
    Settled,
)
from routing.multicast import destinations_of, forwarded, narrowed
from routing.router import ForwardingLeg, RoutingDecision

SETTLE = "acknowledge"
"""The timer at whose end settled publications are reported."""
SETTLED_IN_A_FRAME = 1_000
PUBLISHED_BEFORE = "published before"
"""The reason for a drop: the client received a publication with the same once id."""

Sender = tuple[str, str]
"""A domain, and the broker in it that sent a publication here."""


class Publications:
    def __init__(
        self,
        context: CoreContext,
        links: Links,
        sessions: Sessions,
        pending_writes: PendingWrites,
        served: SeenPublications,
        arrivals: StoredArrivals,
        retention: Retention,
        advertisements: AdvertisementUse,
        eviction: Eviction,
        once_ids: OnceIds,
        recovery: Recovery,
        late_subscriptions: LateSubscriptions,
    ) -> None:
        """`served`: the publications that local clients were served with."""
        settings = context.settings
        self._context = context
        self._me = context.me
        self._settings = settings
        self._router = context.router
        self._effects = context.effects
        self._links = links
        self._sessions = sessions
        self._clients = sessions.clients.by_name
        self._subscription_names = sessions.clients.subscription_names
        self._delivery_queues = sessions.delivery_queues
        self._pending_writes = pending_writes
        self._served = served
        self._arrivals = arrivals
        self._retention = retention
        self._advertisements = advertisements
        self._eviction = eviction
        self._once_ids = once_ids
        self._recovery = recovery
        self._late_subscriptions = late_subscriptions
        self._retransmission = Retransmission(settings.patience, settings.longest_patience, settings.hold_unreachable)
        self._next_counter = 0
        self._own_unsettled: dict[int, PublicationId] = {}
        """Publications of clients here that are not settled everywhere, by counter, in ascending order."""
        self._to_settle: dict[tuple[str, str, int], list[PublicationId]] = {}
        """Settled publications to report, by domain, broker and duties."""

    # Publications of clients here.

    def accept(self, request: Published) -> None:
        """Accepts or refuses a client's publication. A durable broker accepts it when it is stored."""
        publisher = self._clients.get(request.client)
        session = publisher.session if publisher is not None else ""
        ledger = publisher.ledger if publisher is not None else None
        if self.is_repeated(request):
            return
        overload = self.overload() or self._make_room()
        if overload is not None:
            self._refuse(request, overload, "overloaded", overload)
            return
        size, limit = len(request.attributes), self._settings.attribute_bytes
        if size > limit:
            self._refuse(request, f"{size} bytes of attributes are too much; the limit is {limit}", "too-large")
            return
        size += len(request.payload)
        limit = self._settings.publication_bytes
        if size > limit:
            self._refuse(request, f"{size} bytes are too much; the limit is {limit}", "too-large")
            return
        try:
            decision = self._router.match_own(request.client, request.attributes)
        except MatchingError as error:
            self._refuse(request, str(error), "invalid")
            return
        if decision is None:
            self._refuse(request, "not advertised", "not-advertised")
            return
        id = PublicationId(self._me, self._context.incarnation, self._next_counter)
        self._next_counter += 1
        self._own_unsettled[id.counter] = id
        self._served.add_if_new(id)
        body = (request.attributes, request.payload)
        ends = ("", (), (), *body, (), decision.tree)
        once = OnceId(request.client, request.once) if request.once else None
        message = Publish(id, self._me, *ends, 0, request.expires, DEFAULT_HOP_LIMIT, request.is_traced, once)
        if not self._settings.is_durable:
            self._finish_accept(request, session, ledger, message, decision, None)
            return
        if ledger is not None:
            ledger.begin_store(request.reference)
            self._effects.append(Persist(("taken", request.client), ledger.to_record()))
        self._advertisements.begin_store(id, decision.advertisement)
        accept = partial(self._finish_accept, request, session, ledger, message, decision, self._known_subscriptions)
        record = (message, request.client, decision.legs)
        self._pending_writes.write(("publication", *map(str, id)), record, accept)

    def _finish_accept(
        self,
        request: Published,
        session: str,
        ledger: PublishLedger | None,
        message: Publish,
        decision: RoutingDecision,
        known: tuple[int, int] | None,
    ) -> None:
        """Answers the client and sends the publication on. `known`: the subscriptions known when it was matched, if it
        was stored meanwhile."""
        self._advertisements.end_store(message.id)
        if ledger is not None:
            ledger.accept(request.reference)
        publisher = self._clients.get(request.client)
        if publisher is None or publisher.session == session:
            # Another session's publication may have the same reference.
            self._effects.append(Accept(request.client, request.reference, message.id))
        # A subscription that came while the publication was being stored was confirmed before its acceptance.
        changed = None
        if known is not None and self._known_subscriptions != known:
            changed = self._router.match_own(request.client, message.attributes)
        retained = RetainedPublication(message.id, message, None, self._context.now, 0, [], decision.advertisement)
        self._retain_own(retained)
        self._serve(message, changed or decision, retained)

    @property
    def _known_subscriptions(self) -> tuple[int, int]:
        """A value that changes when a subscription becomes known."""
        return self._sessions.subscriptions_added, self._late_subscriptions.batches

    def is_repeated(self, request: Published) -> bool:
        """Whether a client sent the publication again while it was being stored. One answer serves both."""
        publisher = self._clients.get(request.client)
        ledger = publisher.ledger if publisher is not None else None
        return ledger is not None and not ledger.is_new(request.reference)

    def _refuse(self, request: Published, reason: str, code: str, counted: str | None = None) -> None:
        self._context.drops[f"refused: {counted or code}"] += 1
        client = self._clients.get(request.client)
        if client is not None and client.ledger is not None:
            client.ledger.refuse(request.reference)
        self._effects.append(Refuse(request.client, request.reference, reason, code))

    def overload(self) -> str | None:
        """Returns why no publication can be accepted now: a full queue of a neighbour, or a full window whose oldest
        publication its destinations may still settle."""
        if self._links.is_congested:
            return "overloaded: a neighbour's queue is full"
        if self._is_window_full and not self._is_droppable(next(iter(self._own_unsettled.values()))):
            return self._full_window
        return None

    @property
    def _full_window(self) -> str:
        return f"overloaded: {self._settings.window} publications are not settled"

    @property
    def _is_window_full(self) -> bool:
        oldest = next(iter(self._own_unsettled), self._next_counter)
        return self._next_counter - oldest >= self._settings.window

    def _is_droppable(self, id: PublicationId) -> bool:
        """Whether the publication waits only for destinations that cannot be reached."""
        pending = self._retransmission
        return id in pending and pending.is_unreachable(id, self._router.is_reachable)

    def _make_room(self) -> str | None:
        """Drops the oldest publications of a full window, whose destinations cannot be reached. Returns the reason if
        the window is still full."""
        while self._is_window_full:
            id = next(iter(self._own_unsettled.values()))
            if not self._is_droppable(id):
                return self._full_window
            self._context.drop("unreachable", id, "made room for newer ones")
            self._retransmission.remove(id)
            self._close(self._retention.find(id))
        return None

    # Publications of neighbours.

    def arrive(self, message: Publish, peer: str) -> None:
        """Receives a publication from a neighbour, or postpones it while this broker recovers."""
        if self._recovery.is_active and self._me in message.transit:
            self._recovery.postpone(message, peer)
        else:
            self.receive(message, peer)

    def receive(self, message: Publish, peer: str) -> None:
        """Serves clients here and forwards the publication, as far as this was not done before."""
        sender = (message.domain, message.source)
        duties = (SERVE if self._me in message.local else 0) | (PASS_ON if self._me in message.transit else 0)
        retained = self._retention.find(message.id)
        is_served = not duties & SERVE or self._is_served(message)
        is_passed = not duties & PASS_ON or (retained is not None and retained.knows_tree(message.tree))
        if duties & PASS_ON and retained is not None and self._is_nearer(message, retained):
            # The sender waits until all is done. Any other sender is answered at once: this broker may wait for it.
            if sender not in retained.upstream:
                retained.upstream.append(sender)
            answer = 0
        else:
            answer = duties
        if is_served and is_passed:
            if answer and arrival_key(message.id) not in self._pending_writes:
                self._settle_with(sender, message.id, answer)
            return
        if message.expires is not None and self._is_expired(message):
            self._context.drop("expired", message.id, "on arrival")
            self._settle_with(sender, message.id, duties)
            return
        if is_served or is_passed:
            # One duty is left.
            message = forwarded(message, () if is_served else message.local, () if is_passed else message.transit, 0)
        try:
            decision = self._router.match_arrived(message, peer)
        except MatchingError as error:
            self._context.drop("unreadable", message.id, str(error))
            self._settle_with(sender, message.id, duties)
            return
        if decision.dropped is not None:
            self._context.drop(decision.dropped, message.id, f"from {peer}")
        if not is_passed:
            if retained is None:
                retained = RetainedPublication(message.id, message, peer, self._context.now, message.hops, [sender])
                answer = 0
            else:
                retained.switch_tree(message, peer)
            self._retention.open(retained)
        self._serve(message, decision, None if is_passed else retained, sender, answer)

    def _is_served(self, message: Publish) -> bool:
        """Marks the publication as served. Returns True if it was before, or if it is too old to tell, which is a
        drop."""
        if self._served.add_if_new(message.id):
            return False
        if message.id not in self._served:
            self._context.drop("beyond the window", message.id, f"from {message.source}")
        return True

    def _is_nearer(self, message: Publish, retained: RetainedPublication) -> bool:
        """Whether the sender is nearer to the publisher's broker than this one, and this one has yet to settle."""
        travelled = self._settings.hop_limit - message.hop_limit
        return retained.is_open and message.hops - travelled < retained.depth

    # Both kinds.

    def _serve(
        self,
        message: Publish,
        decision: RoutingDecision,
        retained: RetainedPublication | None,
        sender: Sender = ("", ""),
        answer: int = 0,
    ) -> None:
        """Delivers to local clients, then forwards the publication if it is retained. `answer`: the duties to settle
        with the sender when clients are served, whatever happens to the rest."""
        if self._settings.records_matches or message.is_traced:
            for work in decision.work:
                self._effects.append(Record(MatchedRow(message.id, work)))
        found = [self._delivery(message, client, entries) for client, entries in decision.clients.items()]
        deliveries = [each for each in found if each is not None]
        stored: tuple[Deliver, ...] = ()
        is_repeated = False
        if self._settings.is_durable:
            stored = tuple(delivery for _, delivery in deliveries if delivery.number)
            if message.once is not None:
                # A repeated publication is settled when the first one is stored. Otherwise a crash could lose both.
                is_repeated = None in found
                if stored:
                    self._once_ids.store(message.once)
        if not stored and not is_repeated:
            self._finish_serve(message, deliveries, decision.legs, retained, sender, answer, was_stored=False)
            return
        self._arrivals.add(message.id, stored)
        if retained is not None:
            retained.is_storing = True
        serve = partial(
            self._finish_serve, message, deliveries, decision.legs, retained, sender, answer, was_stored=True
        )
        self._pending_writes.write(arrival_key(message.id), stored, serve)

    def _finish_serve(
        self,
        message: Publish,
        deliveries: list[tuple[Client, Deliver]],
        legs: tuple[ForwardingLeg, ...],
        retained: RetainedPublication | None,
        sender: Sender,
        answer: int,
        *,
        was_stored: bool,
    ) -> None:
        for client, delivery in deliveries:
            # Another session may have the client's name by now, with numbers of its own.
            if self._clients.get(client.name) is client:
                self._delivery_queues.offer(client, delivery, self._context.now, self._effects)
            else:
                self._arrivals.forget_delivery(delivery)
        if answer:
            self._settle_with(sender, message.id, answer)
        if retained is not None:
            if was_stored:
                retained.is_storing = False
            self._forward(retained, legs)

    def _delivery(self, message: Publish, name: str, entries: tuple[EntryId, ...]) -> tuple[Client, Deliver] | None:
        """Returns None if the client left, or withdrew its subscriptions, while the publication was being stored. Also
        returns None if the client received a publication with the same once id."""
        client = self._clients.get(name)
        subscriptions = self._names_of(entries)
        if client is None or not subscriptions:
            return None
        if message.once is not None and not self._once_ids.add_if_new(message.once, client):
            self._context.drop(PUBLISHED_BEFORE, message.id, f"{message.once.id} for {name}")
            return None
        number = 0
        if client.is_reliable:
            number = client.last_number = client.last_number + 1
        body = (message.attributes, message.payload)
        expires = None if message.expires is None else self._expiry(message)
        return client, Deliver(name, message.id, subscriptions, *body, message.hops, number, expires)

    def _expiry(self, message: Publish) -> int | None:
        """The time of this broker's clock from which the publication counts as expired. The clock of another broker
        may be ahead or behind, so its publications expire later by that much, and never early."""
        if message.expires is None or message.id.broker == self._me:
            return message.expires
        return message.expires + self._settings.clock_skew

    def _is_expired(self, message: Publish) -> bool:
        expiry = self._expiry(message)
        return expiry is not None and expiry <= self._context.now

    def _names_of(self, entries: tuple[EntryId, ...]) -> tuple[str, ...]:
        """The sorted names of the subscriptions. Leaves out those that were withdrawn since they matched."""
        names = self._subscription_names
        if len(entries) == 1:
            name = names.get(entries[0])
            return () if name is None else (name,)
        return tuple(sorted([names[entry] for entry in entries if entry in names]))

    def _copy(self, message: Publish, leg: ForwardingLeg) -> Publish:
        """The publication as this broker sends it along a leg."""
        return Publish(
            message.id,
            self._me,
            leg.domain,
            leg.local,
            leg.transit,
            message.attributes,
            message.payload,
            leg.crossed,
            leg.tree,
            message.hops,
            message.expires,
            self._settings.hop_limit,
            message.is_traced,
            message.once,
        )

    def _forward(self, retained: RetainedPublication, legs: tuple[ForwardingLeg, ...]) -> None:
        """Sends the publication to the brokers of the legs that were not sent it before."""
        copies = [self._copy(retained.message, each) for each in self._mark_new_legs(retained, legs)] if legs else ()
        if copies:
            if not retained.is_open and not self._reopen(retained):
                return
            self._retransmission.add(retained.id, copies, self._context.now, self._router.is_reachable)
            for message in copies:
                self._router.send(message)
        if retained.id not in self._retransmission:
            self._close(retained)

    def _mark_new_legs(self, retained: RetainedPublication, legs: tuple[ForwardingLeg, ...]) -> list[ForwardingLeg]:
        """Marks the duties of the legs as given. Returns legs with the duties that were not given before.

        A broker serves its clients once. It passes a publication on again if it has restarted since.
        """
        new: list[ForwardingLeg] = []
        for leg in legs:
            local = tuple([each for each in leg.local if each not in retained.served])
            retained.served.update(local)
            transit: list[str] = []
            for broker in leg.transit:
                route, incarnation = (leg.domain, broker), self._router.incarnation_of(broker)
                if retained.passed.get(route) != incarnation:
                    # A duty that the broker has yet to settle is sent to it again in any case.
                    if route not in retained.passed or not self._retransmission.is_pass_on_pending(retained.id, *route):
                        transit.append(broker)
                    retained.passed[route] = incarnation
            if local or transit:
                new.append(ForwardingLeg(leg.domain, local, tuple(transit), leg.crossed, leg.tree))
        return new

    def match_late(self) -> None:
        """Forwards retained publications to subscriptions that were confirmed before they arrived and learned of
        after."""
        interest = self._late_subscriptions.pop()
        for retained in self._retention:
            message = retained.message
            sources = interest.sources(retained.arrived_at, message.attributes, message.tree)
            if sources:
                self._forward_late(retained, sources)
        self._own_unsettled = dict(sorted(self._own_unsettled.items()))
        for past in self._retention.evicted_early():
            sources = interest.sources(past.arrived_at, past.attributes, past.tree).difference(past.sent_to)
            if sources:
                self._context.drop("wanted too late", past.id, f"by {', '.join(sorted(sources)[:MOST_NAMED])}")

    def _forward_late(self, retained: RetainedPublication, sources: set[str]) -> None:
        if self._is_expired(retained.message):
            if not sources <= retained.sent_to:
                self._context.drop("expired", retained.id, "before it was known who wants it")
            return
        legs = self._router.current_legs(retained.message, retained.peer)
        self._forward(retained, tuple(each.only_to(sources) for each in legs))

    def _retain_own(self, retained: RetainedPublication) -> None:
        self._advertisements.retain(retained.advertisement)
        self._retention.open(retained)

    def _reopen(self, retained: RetainedPublication) -> bool:
        """Opens a settled publication again. Returns False if so many newer ones were published since that destinations
        could not tell whether they have served it."""
        if self._is_own(retained.id):
            if self._next_counter - retained.id.counter >= self._settings.window:
                self._context.drop("beyond the window", retained.id, "wanted too late")
                return False
            self._own_unsettled[retained.id.counter] = retained.id
        self._retention.open(retained)
        return True

    # Settlement.

    def settle(self, settled: Settled) -> None:
        """Receives a destination's word that it has done its duties."""
        for publication in settled.publications:
            if self._retransmission.settle(publication, settled.source, settled.duties):
                self._close(self._retention.find(publication))

    def _close(self, retained: RetainedPublication | None) -> None:
        """Settles a publication with the brokers upstream, unless it is being stored. All destinations have settled
        it."""
        if retained is None or not retained.is_open or retained.is_storing:
            return
        self._retention.close(retained)
        if retained.upstream:
            done = BOTH_DUTIES if retained.id in self._served else PASS_ON
            for sender in retained.upstream:
                self._settle_with(sender, retained.id, done)
            retained.upstream.clear()
        if self._is_own(retained.id):
            self._own_unsettled.pop(retained.id.counter, None)
        if self._retention.is_over_limit:
            self._eviction.evict()

    def _is_own(self, id: PublicationId) -> bool:
        """Whether it was published here, in this incarnation."""
        return id.broker == self._me and id.incarnation == self._context.incarnation

    def _settle_with(self, sender: Sender, id: PublicationId, duties: int) -> None:
        if not self._to_settle:
            self._effects.append(SetTimer(SETTLE, self._context.now + self._settings.acknowledge_after))
        self._to_settle.setdefault((*sender, duties), []).append(id)

    def send_settled(self) -> None:
        """Reports the settled publications to the brokers that wait for them."""
        for (domain, broker, duties), publications in self._to_settle.items():
            for start in range(0, len(publications), SETTLED_IN_A_FRAME):
                some = tuple(publications[start : start + SETTLED_IN_A_FRAME])
                self._router.send(Settled(self._me, domain, (broker,), some, duties=duties))
        self._to_settle.clear()

    # Retransmission.

    def retry_now(self) -> None:
        """Makes retransmission due: a link was lost, and frames with it."""
        self._retransmission.retry_now()

    def retransmit(self) -> None:
        """Sends publications again that are due, replaces lost edge brokers, and drops publications that were not
        delivered in time."""
        again, lost, given_up = self._retransmission.collect_due(self._context.now, self._router.is_reachable)
        for message in again:
            self._router.send(message)
        for pending, message, broker in lost:
            substitute = self._router.substitute_leg(message, broker)
            if substitute is not None and pending.id in self._retransmission:
                self._substitute(pending, message, substitute)
        for each in given_up:
            self._context.drop("unreachable", each.publication, f"destination {each.broker}")
            retained = self._retention.find(each.publication)
            if retained is not None:
                retained.given_up |= {each.broker}
        for id in self._retransmission.pop_settled():
            self._close(self._retention.find(id))

    def _substitute(self, pending: PendingPublication, message: Publish, leg: ForwardingLeg) -> None:
        retained = self._retention.find(pending.id)
        assert retained is not None
        if leg.domain == message.domain:
            self._forward(retained, (leg,))
            return
        copy = self._copy(message, leg)
        known = {(each.message.domain, broker) for each in pending.legs for broker in destinations_of(each.message)}
        others = [broker for broker in destinations_of(copy) if (copy.domain, broker) not in known]
        if others:
            copy = narrowed(copy, others)
            self._retransmission.reroute(pending.id, copy, self._context.now)
            self._router.send(copy)

    def idle_until(self) -> int:
        """Returns the last time at which a tick would send nothing again, drop nothing and evict nothing."""
        now = self._context.now
        if self._to_settle:
            return now
        return min(
            self._retransmission.idle_until(now, self._router.is_reachable),
            self._retention.idle_until(now, is_settling=self._router.is_converging),
        )

    def skip_retransmission(self, now: int) -> None:
        """Does what `retransmit` does at a time when nothing is due."""
        self._retransmission.skip(now, self._router.is_reachable)

    # Restart.

    def restore_arrival(self, id: PublicationId, record: object) -> None:
        """Restores the deliveries of a publication that clients have not acknowledged."""
        assert isinstance(record, tuple)
        self._served.add_if_new(id)
        self._arrivals.add(id, [each for each in record if self._sessions.restore_delivery(each)])

    def restore_publication(self, record: object, settled: set[tuple[int, int]]) -> None:
        """Restores a publication that was accepted before the restart. Unless it was settled, it is sent to all its
        destinations again."""
        assert isinstance(record, tuple)
        message, client, legs = record
        decision = self._router.match_own(client, message.attributes)
        has_arrived = message.id in self._arrivals
        self._served.add_if_new(message.id)
        # A tree of an earlier incarnation is gone.
        legs = tuple(each for each in legs if self._router.is_valid(each))
        if decision is None:
            # It is sent to the brokers known to want it. Others cannot say so without its advertisement.
            self._context.drop("unknown interest", message.id, "its advertisement was withdrawn")
            decision = RoutingDecision()
        tree = message._replace(tree=decision.tree)
        retained = RetainedPublication(message.id, tree, None, self._context.now, 0, [], decision.advertisement)
        self._retain_own(retained)
        if (message.id.incarnation, message.id.counter) in settled:
            self._mark_new_legs(retained, legs)
            self._close(retained)
        else:
            self._serve(message, RoutingDecision({} if has_arrived else decision.clients, legs), retained)

    # Status.

    def is_responsible_for(self, publication: PublicationId) -> bool:
        """Whether this broker has yet to store the publication, to pass it on, or to receive its settlement."""
        retained = self._retention.find(publication)
        return (retained is not None and retained.is_open) or publication in self._recovery

    def awaited(self, publication: PublicationId) -> frozenset[str]:
        """The brokers that have yet to settle the publication with this one."""
        return self._retransmission.awaited(publication)

    @property
    def pending(self) -> int:
        """The number of publications that destinations have yet to settle."""
        return len(self._retransmission)

    @property
    def unsettled(self) -> int:
        """The number of publications of clients here that are not settled everywhere."""
        return len(self._own_unsettled)
