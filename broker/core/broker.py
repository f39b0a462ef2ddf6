"""The broker, without I/O: inputs and the time go in, effects come out.

Three parties meet here. The router decides where things go. Custody keeps what this broker answers for. Clients have
their requests and deliveries. The core connects them and owns nothing else: a driver owns bytes, sockets and clocks.

    Published ── matched by the router ──► Deliver to local clients
                                       └─► held in custody, sent along its stretches ──► Settled, when all are done
    FrameReceived(Publish) ── passed on by the router; if it is for this broker and new: as above,
                              and Settled goes back to whoever sent it here

Everything may arrive twice, late or never; see `retransmission`, `retention` and `reliable_updates` for what is done
about it. A broker settles a publication, when all is done, with brokers that are nearer to its publisher, and with all
others at once. So a broker only ever waits for others that are further away, and never in a circle.
"""

from __future__ import annotations

from collections import Counter

from broker.core.client import Client, Clients
from broker.core.deduplication import SeenPublications
from broker.core.effects import (
    Accept,
    Deliver,
    DroppedRow,
    Effect,
    Failed,
    Forget,
    MatchedRow,
    Persist,
    Record,
    Refuse,
    ResetLink,
    Send,
    SetTimer,
)
from broker.core.inputs import (
    Advertised,
    ClientConnected,
    ClientLeft,
    ClientLost,
    ClientPaused,
    ClientResumed,
    DeliveryAcknowledged,
    FrameReceived,
    Input,
    LeaveRequested,
    PeerLost,
    PeerUp,
    Persisted,
    Published,
    Restored,
    RightsNarrowed,
    Subscribed,
    TimerFired,
    Unadvertised,
    Unsubscribed,
)
from broker.core.links import Links
from broker.core.pending_writes import PendingWrites
from broker.core.recovery import Recovery
from broker.core.retention import LateInterest, Passage, Retention
from broker.core.retransmission import PendingPublication, Retransmission
from broker.core.sessions import Sessions
from broker.core.settings import Settings
from matching import MatchingError
from matching.expressions.model import TRUE
from routing.messages import (
    BOTH_DUTIES,
    DEFAULT_HOP_LIMIT,
    PASS_ON,
    SERVE,
    Credit,
    EntryId,
    Message,
    PublicationId,
    Publish,
    Settled,
)
from routing.multicast import narrowed
from routing.router import ForwardingLeg, LearnedSubscription, Pace, Router, RoutingDecision, UnknownInterest
from routing.tables import EVERYBODY

TICK = "tick"
ACKNOWLEDGE = "acknowledge"
REORGANISE = "reorganise"
CATCH_UP = "catch up"
LATE_INTEREST = "late interest"
SETTLED_IN_A_FRAME = 1_000
MOST_NAMED = 5
"""Brokers in the text of a drop."""


class Broker:
    def __init__(
        self,
        router: Router,
        me: str,
        incarnation: int,
        settings: Settings | None = None,
        has_lived: bool | None = None,
        expected_neighbours: tuple[str, ...] = (),
    ) -> None:
        """`has_lived`: there were earlier incarnations. None: if this is not the first.

        `expected_neighbours`: those of the configuration. After a restart, recovery gives their links time to come up.
        """
        self.me = me
        self.incarnation = incarnation
        self.router = router
        self.drops: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()
        """Inputs that made the core raise, by kind: defects."""
        self._settings = settings or Settings()
        self._links = Links(self._settings)
        window = self._settings.window
        self._served = SeenPublications(window)
        """Publications that local clients were served with."""
        self._custody = Retransmission(
            self._settings.patience, self._settings.longest_patience, self._settings.hold_unreachable
        )
        self._retention = Retention(window, self._settings.retain_bytes, self._settings.hold_unreachable)
        self._now = 0
        self._effects: list[Effect] = []
        """Collected here by all parts; `handle` hands them out."""
        self._persisting = PendingWrites(self._effects)
        self._sessions = Sessions(
            self._settings,
            router,
            self._effects,
            self._persisting,
            self.drops,
            self._drop,
            self._forget_delivery,
            self._entry,
            lambda: self._now,
            self._unadvertise,
        )
        self._clients = self._sessions.clients
        self._next_entry = 0
        self._next_publication = 0
        self._own_in_flight: dict[int, PublicationId] = {}
        self._to_settle: dict[tuple[str, str, int], list[PublicationId]] = {}
        self._arrivals: dict[PublicationId, set[str]] = {}
        self._known_losses = 0
        self._is_to_catch_up = False
        self._learned: list[LearnedSubscription] = []
        """Others' subscriptions that are to be matched with retained publications."""
        self._lessons = 0
        """How often something was learned."""
        self._being_stored: dict[PublicationId, EntryId | None] = {}
        """Publications of clients here that are accepted when they are stored, with what permits them."""
        self._used_advertisements: Counter[EntryId] = Counter()
        """How many publications are retained under each."""
        self._ending: dict[EntryId, None] = {}
        """Advertisements that clients have withdrawn, and under which publications are retained."""
        self._stored_members: dict[str, tuple[str, ...]] = {}
        self._stored_settled: tuple[tuple[int, int], ...] = ()
        noticed = self._settings.ticks(self._settings.noticed_within)
        self._recovery = Recovery(noticed, 4 * window)
        kept_for = self._settings.ticks(2 * self._settings.hold_unreachable)
        self.router.pace = Pace(noticed, kept_for, settles_early=not self._settings.is_durable)
        self._expected_neighbours = expected_neighbours
        self.router.expect_neighbours(expected_neighbours)
        self._has_lived = incarnation > 1 if has_lived is None else has_lived
        if self._has_lived:
            self._recovery.begin()
            self.router.begin_recovery()
        if self._settings.reorganise_every:
            self.router.reorganise_with(self._settings.most_links)
        if self._settings.is_open:
            self.router.advertise(self._entry(), EVERYBODY, TRUE)

    def handle(self, happened: Input, now: int) -> list[Effect]:
        if now > self._now:
            self._now = now
        try:
            self._react(happened)
            self._flush()
        except Exception as error:
            # A defect here must not stop the broker: what was to be done so far is done, timers included.
            self.failures[type(happened).__name__] += 1
            self._effects.append(Failed(_in_words(happened), error))
        effects = self._effects[:]
        self._effects.clear()
        return effects

    def start(self, now: int) -> list[Effect]:
        """The first tick; call once, after `Restored` if there is a store."""
        effects = self.handle(TimerFired(TICK), now)
        if self._settings.reorganise_every:
            effects.append(SetTimer(REORGANISE, now + self._settings.reorganise_every))
        return effects

    def _react(self, happened: Input) -> None:
        match happened:
            case FrameReceived():
                self._received(happened)
            case Published():
                self._published(happened)
            case DeliveryAcknowledged():
                self._sessions.acknowledged(happened, self._now)
            case Persisted():
                self._persisting.persisted(happened.key)
            case TimerFired():
                self._timer_fired(happened.name)
            case PeerUp() | PeerLost():
                self._peer_changed(happened)
            case Subscribed() | Advertised() | Unsubscribed() | Unadvertised():
                self._sessions.requested(happened, self._now)
            case ClientConnected() | ClientLost() | ClientLeft() | ClientPaused() | ClientResumed() | RightsNarrowed():
                self._sessions.changed(happened, self._now)
            case Restored():
                self._restore(happened)
            case LeaveRequested():
                self.router.leave()

    def _timer_fired(self, name: str) -> None:
        if name == TICK:
            self._tick()
        elif name == ACKNOWLEDGE:
            self._acknowledge()
        elif name == CATCH_UP:
            self._is_to_catch_up = False
            self.router.catch_up()
        elif name == LATE_INTEREST:
            self._match_late()
        elif name == REORGANISE:
            self._effects.append(SetTimer(REORGANISE, self._now + self._settings.reorganise_every))
            self.router.reorganise()

    def _flush(self) -> None:
        for peer, message in self.router.drain():
            self._send(peer, message)
        self._effects += self.router.link_requests()
        if self.router.is_behind and not self._is_to_catch_up:
            self._is_to_catch_up = True
            self._effects.append(SetTimer(CATCH_UP, self._now + self._settings.catch_up_after))
        if self.router.learned:
            self._learn(self.router.learned)
            self.router.learned.clear()
        losses = self.router.link_losses()
        if losses > self._known_losses:
            self._known_losses = losses
            self._custody.retry_now()

    def _send(self, peer: str, message: Message) -> None:
        if not isinstance(message, Publish):
            if self._links.is_up(peer):
                self._effects.append(Send(peer, message))
            return
        refusal = self._links.offer(peer, message, self._effects)
        if refusal is not None:
            self._drop(refusal, message.id, f"to {peer}")

    def _drop(self, reason: str, publication: PublicationId | None, detail: str) -> None:
        self.drops[reason] += 1
        self._effects.append(Record(DroppedRow(reason, publication, detail)))

    def _received(self, frame: FrameReceived) -> None:
        if not self._links.heard_from(frame.peer, self._now):
            return
        if frame.sequence is not None:
            taken = self._links.took(frame.peer, frame.sequence)
            if taken is not None:
                self._effects.append(Send(frame.peer, Credit(taken)))
        mine = self.router.receive(frame.message, frame.peer)
        if isinstance(mine, Publish):
            self._arrived(mine.forwarded(mine.local, mine.transit, further=1), frame.peer)
        elif isinstance(mine, Settled):
            for publication in mine.publications:
                if self._custody.settle(publication, mine.source, mine.duties):
                    self._close(self._retention.find(publication))
        elif isinstance(mine, Credit):
            self._effects += self._links.credited(frame.peer, mine.taken)

    def _arrived(self, message: Publish, peer: str) -> None:
        if self._recovery.is_recovering and self.me in message.transit:
            self._recovery.postpone(message, peer)
        else:
            self._take_in(message, peer)

    def _take_in(self, message: Publish, peer: str) -> None:
        """Serves clients here and passes the publication on, as far as it was not done before."""
        sender = (message.domain, message.source)
        duties = (SERVE if self.me in message.local else 0) | (PASS_ON if self.me in message.transit else 0)
        passage = self._retention.find(message.id)
        is_served = not duties & SERVE or self._is_served(message)
        is_passed = not duties & PASS_ON or (passage is not None and passage.knows(message.tree))
        if duties & PASS_ON and passage is not None and self._is_nearer(message, passage):
            # It waits until all is done. Another one is answered at once: this broker may wait for it.
            if sender not in passage.upstream:
                passage.upstream.append(sender)
            answer = 0
        else:
            answer = duties
        if is_served and is_passed:
            if answer and not self._is_waiting_for_store(message.id):
                self._settle_with(*sender, message.id, answer)
            return
        if message.expires is not None and message.expires <= self._now:
            self._drop("expired", message.id, "on arrival")
            self._settle_with(*sender, message.id, duties)
            return
        if is_served or is_passed:
            # One duty is left.
            message = message.forwarded(() if is_served else message.local, () if is_passed else message.transit, 0)
        try:
            matched = self.router.match_arrived(message, peer)
        except MatchingError as error:
            self._drop("unreadable", message.id, str(error))
            self._settle_with(*sender, message.id, duties)
            return
        if matched.dropped is not None:
            self._drop(matched.dropped, message.id, f"from {peer}")
        if not is_passed:
            if passage is None:
                passage = Passage(message.id, message, peer, self._now, message.hops, [sender])
                answer = 0
            else:
                passage.enter(message, peer)
            self._retention.open(passage)
        self._serve(message, matched, None if is_passed else passage, sender, answer)

    def _is_served(self, message: Publish) -> bool:
        """Clients here were served with it before; or it is so old that nobody knows, which is a drop."""
        if self._served.add_if_new(message.id):
            return False
        if self._served.is_past(message.id):
            self._drop("beyond the window", message.id, f"from {message.source}")
        return True

    def _is_nearer(self, message: Publish, passage: Passage) -> bool:
        """The sender is nearer to the publisher's broker than this one, and this one has yet to settle."""
        travelled = self._settings.hop_limit - message.hop_limit
        return passage.is_open and message.hops - travelled < passage.depth

    def _serve(
        self,
        message: Publish,
        matched: RoutingDecision,
        passage: Passage | None,
        sender: tuple[str, str] = ("", ""),
        answer: int = 0,
    ) -> None:
        """Local clients first; then the brokers behind this one, if there is a passage. `answer`: the duties that the
        sender hears to be done when clients are served, whatever becomes of the passage."""
        if self._settings.records_matches or message.is_traced:
            for work in matched.work:
                self._effects.append(Record(MatchedRow(message.id, work)))
        found = [self._delivery(message, client, entries) for client, entries in matched.clients.items()]
        deliveries = [each for each in found if each is not None]
        reliable: tuple[Deliver, ...] = ()
        if self._settings.is_durable:
            reliable = tuple(delivery for _, delivery in deliveries if delivery.number)

        def go() -> None:
            self._sessions.deliver(deliveries, self._now)
            if answer:
                self._settle_with(*sender, message.id, answer)
            if passage is not None:
                passage.is_storing = passage.is_storing and not reliable
                self._pass_on(passage, matched.legs)

        if reliable:
            self._arrivals[message.id] = {delivery.client for delivery in reliable}
            if passage is not None:
                passage.is_storing = True
            self._persisting.persist(("arrival", *map(str, message.id)), reliable, go)
        else:
            go()

    def _delivery(self, message: Publish, name: str, entries: tuple[EntryId, ...]) -> tuple[Client, Deliver] | None:
        """None: the client left, or withdrew what matched, while the publication was being stored."""
        client = self._clients.find(name)
        subscriptions = self._clients.names_of(entries)
        if client is None or not subscriptions:
            return None
        number = 0
        if client.is_reliable:
            number = client.last_number = client.last_number + 1
        body = (message.attributes, message.payload)
        return client, Deliver(name, message.id, subscriptions, *body, message.hops, number, message.expires)

    def _copy(self, message: Publish, leg: ForwardingLeg) -> Publish:
        """The publication as this broker sends it on along a stretch."""
        return Publish(
            message.id,
            self.me,
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
        )

    def _is_waiting_for_store(self, publication: PublicationId) -> bool:
        return ("arrival", *map(str, publication)) in self._persisting

    def _pass_on(self, passage: Passage, legs: tuple[ForwardingLeg, ...]) -> None:
        """Sends the publication to the brokers of the stretches that were not asked yet."""
        copies = [self._copy(passage.message, each) for each in self._unasked(passage, legs)] if legs else ()
        if copies:
            if not passage.is_open and not self._reopen(passage):
                return
            self._custody.hold(passage.id, copies, self._now, self.router.is_reachable)
            for message in copies:
                self.router.send(message)
        if passage.id not in self._custody:
            self._close(passage)

    def _unasked(self, passage: Passage, legs: tuple[ForwardingLeg, ...]) -> list[ForwardingLeg]:
        """A broker serves its clients once. It is asked again to pass on if it started anew since it was asked."""
        unasked: list[ForwardingLeg] = []
        for leg in legs:
            local = tuple([each for each in leg.local if each not in passage.served])
            passage.served.update(local)
            transit: list[str] = []
            for broker in leg.transit:
                way, incarnation = (leg.domain, broker), self.router.incarnation_of(broker)
                if passage.passed.get(way) != incarnation:
                    # What the broker has yet to settle is sent to it again in any case.
                    if way not in passage.passed or not self._custody.is_asked_to_pass_on(passage.id, *way):
                        transit.append(broker)
                    passage.passed[way] = incarnation
            if local or transit:
                unasked.append(ForwardingLeg(leg.domain, local, tuple(transit), leg.crossed, leg.tree))
        return unasked

    def _open_own(self, passage: Passage) -> None:
        if passage.advertisement is not None:
            self._used_advertisements[passage.advertisement] += 1
        self._retention.open(passage)

    def _reopen(self, passage: Passage) -> bool:
        """False: so many newer ones were published since that destinations would take it for an old one."""
        if self._is_own(passage.id):
            if self._next_publication - passage.id.counter >= self._settings.window:
                self._drop("beyond the window", passage.id, "wanted too late")
                return False
            self._own_in_flight[passage.id.counter] = passage.id
        self._retention.open(passage)
        return True

    def _close(self, passage: Passage | None) -> None:
        """Everybody has settled the publication: those who wait for it hear that, unless it is still being stored."""
        if passage is None or not passage.is_open or passage.is_storing:
            return
        self._retention.close(passage)
        if passage.upstream:
            done = BOTH_DUTIES if passage.id in self._served else PASS_ON
            for sender in passage.upstream:
                self._settle_with(*sender, passage.id, done)
            passage.upstream.clear()
        if self._is_own(passage.id):
            self._own_in_flight.pop(passage.id.counter, None)
        if self._retention.is_crowded:
            self._evict()

    def _is_own(self, id: PublicationId) -> bool:
        """It was published here, in this incarnation."""
        return id.broker == self.me and id.incarnation == self.incarnation

    def _evict(self) -> None:
        """Lets go of retained publications. If a broker could not say in time whether it wants one, that is a drop."""
        known: dict[tuple[object, ...], UnknownInterest] = {}
        for passage in self._retention.evict(self._now, is_settling=self.router.is_settling):
            message = passage.message
            key = (passage.peer, message.domain, message.crossed, message.tree)
            if key not in known:
                known[key] = self.router.unknown_interest(message, passage.peer)
            brokers = self._without_word(passage, known[key]) if any(known[key]) else []
            if brokers:
                more = f" and {len(brokers) - MOST_NAMED} more" if len(brokers) > MOST_NAMED else ""
                self._drop("unknown interest", passage.id, f"of {', '.join(brokers[:MOST_NAMED])}{more}")
            if passage.peer is None:
                self._let_go_own(passage)

    def _let_go_own(self, passage: Passage) -> None:
        if self._settings.is_durable:
            self._effects.append(Forget(("publication", *map(str, passage.id))))
        entry = passage.advertisement
        if entry is not None:
            self._used_advertisements[entry] -= 1
            if not self._used_advertisements[entry]:
                del self._used_advertisements[entry]

    def _without_word(self, passage: Passage, unknown: UnknownInterest) -> list[str]:
        """Brokers that may want the publication, were not sent it, and could not say that they want it."""
        asked = {broker: incarnation for (_, broker), incarnation in passage.passed.items()}
        out_of_reach = {**unknown.own, **unknown.behind}

        def is_looked_after(broker: str) -> bool:
            """A broker that was asked to pass it on looks after those behind it, unless that incarnation is gone. That
            it may still crash is accepted in memory mode alone."""
            if self._settings.is_durable or broker in out_of_reach:
                return False
            return asked.get(broker) == self.router.incarnation_of(broker)

        # What was confirmed before a broker fell silent was told in time. One that fell silent soon after it was asked
        # to pass the publication on may not have known yet who wants it.
        age = (self._now - passage.came - self._settings.noticed_within) // self._settings.tick
        return sorted(
            {
                *(broker for broker, ticks in unknown.own.items() if ticks >= age and broker not in passage.served),
                *(
                    broker
                    for broker, ticks in unknown.behind.items()
                    if ticks >= age and broker not in passage.given_up
                ),
                *(broker for broker, ticks in unknown.gaps.items() if ticks >= age and not is_looked_after(broker)),
            }
        )

    def _unadvertise(self, entry: EntryId) -> None:
        """Other brokers keep the advertisement while publications under it are retained: their interest in these
        comes here because of it."""
        self.router.close_advertisement(entry)
        if self._is_used(entry):
            self._ending[entry] = None
        else:
            self.router.unadvertise(entry)

    def _end_advertisements(self) -> None:
        for entry in [each for each in self._ending if not self._is_used(each)]:
            del self._ending[entry]
            self.router.unadvertise(entry)

    def _is_used(self, entry: EntryId) -> bool:
        return entry in self._used_advertisements or entry in self._being_stored.values()

    def _learn(self, learned: list[LearnedSubscription]) -> None:
        self._lessons += 1
        if not len(self._retention):
            return
        if not self._learned:
            self._effects.append(SetTimer(LATE_INTEREST, self._now + self._settings.catch_up_after))
        self._learned += learned

    def _match_late(self) -> None:
        """Matches retained publications with subscriptions that were confirmed before they came and heard of after."""
        learned, self._learned = self._learned, []
        interest = LateInterest(learned, self._settings.clock_skew)
        for passage in self._retention:
            message = passage.message
            sources = interest.sources(passage.came, message.attributes, message.tree)
            if sources:
                self._send_late(passage, sources)
        self._own_in_flight = dict(sorted(self._own_in_flight.items()))
        for past in self._retention.let_go():
            sources = interest.sources(past.came, past.attributes, past.tree).difference(past.asked)
            if sources:
                self._drop("wanted too late", past.id, f"by {', '.join(sorted(sources)[:MOST_NAMED])}")

    def _send_late(self, passage: Passage, sources: set[str]) -> None:
        expires = passage.message.expires
        if expires is not None and expires <= self._now:
            if not sources <= passage.asked:
                self._drop("expired", passage.id, "before it was known who wants it")
            return
        legs = self.router.legs_now(passage.message, passage.peer)
        self._pass_on(passage, tuple(each.only_to(sources) for each in legs))

    def _settle_with(self, domain: str, broker: str, id: PublicationId, duties: int) -> None:
        if not self._to_settle:
            self._effects.append(SetTimer(ACKNOWLEDGE, self._now + self._settings.acknowledge_after))
        self._to_settle.setdefault((domain, broker, duties), []).append(id)

    def _acknowledge(self) -> None:
        for (domain, broker, duties), publications in self._to_settle.items():
            for start in range(0, len(publications), SETTLED_IN_A_FRAME):
                some = tuple(publications[start : start + SETTLED_IN_A_FRAME])
                self.router.send(Settled(self.me, domain, (broker,), some, duties=duties))
        self._to_settle.clear()

    def _published(self, request: Published) -> None:
        publisher = self._clients.find(request.client)
        session = publisher.session if publisher is not None else ""
        taken = publisher.taken if publisher is not None else None
        if self.is_repeated(request):
            return
        size = len(request.attributes) + len(request.payload)
        reason = self._refusal()
        if reason is not None:
            self._refuse_publication(request, reason, "overloaded", reason)
            return
        if size > self._settings.publication_bytes:
            limit = self._settings.publication_bytes
            self._refuse_publication(request, f"{size} bytes are too much; the limit is {limit}", "too-large")
            return
        try:
            matched = self.router.match_own(request.client, request.attributes)
        except MatchingError as error:
            self._refuse_publication(request, str(error), "invalid")
            return
        if matched is None:
            self._refuse_publication(request, "not advertised", "not-advertised")
            return
        id = PublicationId(self.me, self.incarnation, self._next_publication)
        self._next_publication += 1
        self._own_in_flight[id.counter] = id
        self._served.add_if_new(id)
        attributes, payload, expires = request.attributes, request.payload, request.expires
        ends = ("", (), (), attributes, payload, (), matched.tree)
        message = Publish(id, self.me, *ends, 0, expires, DEFAULT_HOP_LIMIT, request.is_traced)
        at_first = matched
        known = self._knowledge if self._settings.is_durable else None

        def go() -> None:
            self._being_stored.pop(id, None)
            if taken is not None:
                taken.accept(request.reference)
            present = self._clients.find(request.client)
            if present is None or present.session == session:
                # Another session's publication may have the same reference.
                self._effects.append(Accept(request.client, request.reference, id))
            # What was subscribed to while it was being stored was there before it was accepted.
            changed = None
            if known is not None and self._knowledge != known:
                changed = self.router.match_own(request.client, message.attributes)
            passage = Passage(id, message, None, self._now, 0, [], at_first.advertisement)
            self._open_own(passage)
            self._serve(message, changed or at_first, passage)

        if self._settings.is_durable:
            if taken is not None:
                taken.store(request.reference)
                self._effects.append(Persist(("taken", request.client), taken.record()))
            self._being_stored[id] = at_first.advertisement
            record = (message, request.client, at_first.legs)
            self._persisting.persist(("publication", *map(str, id)), record, go)
        else:
            go()

    @property
    def _knowledge(self) -> tuple[int, int]:
        """Changes when a subscription becomes known."""
        return self._sessions.entered, self._lessons

    def is_repeated(self, request: Published) -> bool:
        """Sent again by a client that connected while it was being stored: there is one answer for both."""
        publisher = self._clients.find(request.client)
        taken = publisher.taken if publisher is not None else None
        return taken is not None and not taken.is_new(request.reference)

    def _refuse_publication(self, request: Published, reason: str, code: str, counted: str | None = None) -> None:
        self.drops[f"refused: {counted or code}"] += 1
        client = self._clients.find(request.client)
        if client is not None and client.taken is not None:
            client.taken.refuse(request.reference)
        self._effects.append(Refuse(request.client, request.reference, reason, code))

    @property
    def admits(self) -> bool:
        """Would a publication be taken in now? A driver may let clients wait rather than refuse."""
        return self._refusal() is None

    @property
    def is_recovering(self) -> bool:
        """After a restart: what others want may not be known yet."""
        return self._recovery.is_recovering

    def _refusal(self) -> str | None:
        """Admission: the window of unsettled publications has an end, and so have the neighbours' queues."""
        if self._links.is_congested:
            return "overloaded: a neighbour's queue is full"
        while self._own_in_flight:
            oldest = next(iter(self._own_in_flight))
            if self._next_publication - oldest < self._settings.window:
                return None
            id = self._own_in_flight[oldest]
            if id not in self._custody or not self._custody.is_unreachable(id, self.router.is_reachable):
                return f"overloaded: {self._settings.window} publications are not settled"
            self._drop("unreachable", id, "made room for newer ones")
            self._custody.release(id)
            self._close(self._retention.find(id))
        return None

    def _forget_delivery(self, delivery: Deliver) -> None:
        """The record of the arrival stays while a copy might come, so that a restart does not deliver it twice."""
        waiting = self._arrivals.get(delivery.publication)
        if waiting is None or delivery.client not in waiting:
            return
        waiting.discard(delivery.client)
        if not waiting:
            self._effects.append(Persist(("arrival", *map(str, delivery.publication)), ()))

    def _forget_arrivals(self) -> None:
        for past in [each for each, clients in self._arrivals.items() if not clients and self._served.is_past(each)]:
            del self._arrivals[past]
            self._effects.append(Forget(("arrival", *map(str, past))))

    def _entry(self) -> EntryId:
        self._next_entry += 1
        return EntryId(self.me, self.incarnation, self._next_entry)

    def _peer_changed(self, happened: PeerUp | PeerLost) -> None:
        if isinstance(happened, PeerLost):
            self._lose(happened.peer)
            if happened.has_left:
                self.router.neighbour_left(happened.peer)
            return
        if happened.remembers and not self._has_lived:
            self._has_lived = True
            self._recovery.begin()
            self.router.begin_recovery()
        self._links.up(happened.peer, self._now)
        self.router.neighbour_up(happened.peer, happened.greeting, happened.cost)
        self._store_members()
        self._repeat_publications()

    def _lose(self, peer: str) -> None:
        if self._links.down(peer):
            self.router.neighbour_lost(peer)
            self._custody.retry_now()

    def _tick(self) -> None:
        self._effects.append(SetTimer(TICK, self._now + self._settings.tick))
        for peer in self._links.silent(self._now):
            self._lose(peer)
            self._effects.append(ResetLink(peer))
        greeting = self.router.greeting()
        for peer in self._links.peers():
            self._effects.append(Send(peer, greeting))
        self._effects += self._links.tick()
        self.router.tick()
        self._recover()
        self._acknowledge()
        self._forget_arrivals()
        self._sessions.end_overdue(self._now)
        self._repeat_publications()
        self._evict()
        self._end_advertisements()
        self._store_members()
        self._store_settled()

    def _recover(self) -> None:
        is_linked = all(map(self._links.is_up, self._expected_neighbours))
        if self._recovery.tick(is_informed=is_linked and self.router.is_informed):
            self.router.end_recovery()
            for message, peer in self._recovery.release():
                self._take_in(message, peer)

    def _store_members(self) -> None:
        """A broker that is down while this one restarts must not be forgotten."""
        if self._settings.is_durable:
            for domain, members in self.router.members():
                if self._stored_members.get(domain) != members:
                    self._stored_members[domain] = members
                    self._effects.append(Persist(("members", domain), members))

    def _store_settled(self) -> None:
        """Publications that are retained and settled need not be sent again after a restart."""
        if self._settings.is_durable:
            own = (each.id for each in self._retention.closed() if each.peer is None)
            settled = tuple((id.incarnation, id.counter) for id in own)
            if settled != self._stored_settled:
                self._stored_settled = settled
                self._effects.append(Persist(("settled",), settled))

    def _repeat_publications(self) -> None:
        again, lost, given_up = self._custody.due(self._now, self.router.is_reachable)
        for message in again:
            self.router.send(message)
        for held, message, broker in lost:
            substitute = self.router.substitutes(message, broker)
            if substitute is not None and held.id in self._custody:
                self._substitute(held, message, substitute)
        for each in given_up:
            self._drop("unreachable", each.publication, f"destination {each.broker}")
            passage = self._retention.find(each.publication)
            if passage is not None:
                passage.given_up |= {each.broker}
        for id in self._custody.take_settled():
            self._close(self._retention.find(id))

    def _substitute(self, held: PendingPublication, message: Publish, leg: ForwardingLeg) -> None:
        passage = self._retention.find(held.id)
        assert passage is not None
        if leg.domain == message.domain:
            self._pass_on(passage, (leg,))
            return
        copy = self._copy(message, leg)
        known = {(each.message.domain, broker) for each in held.legs for broker in each.message.destinations}
        others = [broker for broker in copy.destinations if (copy.domain, broker) not in known]
        if others:
            copy = narrowed(copy, others)
            self._custody.reroute(held.id, copy, self._now)
            self.router.send(copy)

    def _restore(self, restored: Restored) -> None:
        self._sessions.restore(restored.records, self._now)
        settled: set[tuple[int, int]] = set()
        for key, record in restored.records.items():
            if key[0] == "arrival":
                self._restore_arrival(PublicationId(key[1], int(key[2]), int(key[3])), record)
            elif key[0] == "members":
                assert isinstance(record, tuple)
                self._stored_members[key[1]] = record
                self.router.restore_members(key[1], record)
            elif key[0] == "settled":
                assert isinstance(record, tuple)
                settled = {(incarnation, counter) for incarnation, counter in record}
        self._sessions.sort_restored()
        for key, record in restored.records.items():
            if key[0] == "publication":
                self._restore_publication(record, settled)

    def _restore_arrival(self, id: PublicationId, record: object) -> None:
        assert isinstance(record, tuple)
        self._served.add_if_new(id)
        self._arrivals[id] = set()
        for delivery in record:
            if self._sessions.restore_delivery(delivery):
                self._arrivals[id].add(delivery.client)

    def _restore_publication(self, record: object, settled: set[tuple[int, int]]) -> None:
        """Accepted before the crash. Unless it was settled, it goes to all its destinations again."""
        assert isinstance(record, tuple)
        message, client, legs = record
        matched = self.router.match_own(client, message.attributes)
        has_arrived = message.id in self._arrivals
        self._served.add_if_new(message.id)
        # A tree of an earlier incarnation is gone.
        legs = tuple(each for each in legs if self.router.is_valid(each))
        if matched is None:
            # It is sent to those that are known to want it. Others cannot say so without its advertisement.
            self._drop("unknown interest", message.id, "its advertisement was withdrawn")
            matched = RoutingDecision()
        passage = Passage(message.id, message._replace(tree=matched.tree), None, self._now, 0)
        passage.advertisement = matched.advertisement
        self._open_own(passage)
        if (message.id.incarnation, message.id.counter) in settled:
            self._unasked(passage, legs)
            self._close(passage)
        else:
            self._serve(message, RoutingDecision({} if has_arrived else matched.clients, legs), passage)

    def client(self, name: str) -> Client | None:
        return self._clients.find(name)

    @property
    def clients(self) -> Clients:
        return self._clients

    @property
    def links(self) -> Links:
        return self._links

    @property
    def in_custody(self) -> int:
        return len(self._custody)

    def answers_for(self, publication: PublicationId) -> bool:
        """This broker has yet to store the publication, to pass it on, or to hear that it is settled."""
        passage = self._retention.find(publication)
        return (passage is not None and passage.is_open) or publication in self._recovery

    def awaits(self, publication: PublicationId) -> frozenset[str]:
        """The brokers that have yet to settle the publication with this one."""
        return self._custody.awaited(publication)

    def retains(self, publication: PublicationId) -> bool:
        """This broker would still send the publication to brokers whose interest it hears of late."""
        return self._retention.find(publication) is not None

    def unknown_interest(self, publication: PublicationId) -> list[str]:
        """Brokers that may want a retained publication and could not say so yet."""
        passage = self._retention.find(publication)
        if passage is None:
            return []
        return self._without_word(passage, self.router.unknown_interest(passage.message, passage.peer))

    @property
    def retained(self) -> int:
        """Publications that are kept for interest which is heard of late."""
        return len(self._retention)

    @property
    def postponed(self) -> int:
        """Publications that wait for the end of recovery."""
        return len(self._recovery)

    @property
    def unsettled(self) -> int:
        """Own publications that are not settled everywhere."""
        return len(self._own_in_flight)


def _in_words(happened: Input) -> str:
    """What a log says of an input that made the core raise."""
    kind = type(happened).__name__
    if isinstance(happened, FrameReceived):
        return f"{kind}: {type(happened.message).__name__} from {happened.peer}"
    if isinstance(happened, Persisted):
        return f"{kind}: {'/'.join(happened.key)}"
    return f"{kind}: {happened.name}" if isinstance(happened, TimerFired) else kind
