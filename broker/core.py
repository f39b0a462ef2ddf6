"""The broker, without I/O: inputs and the time go in, effects come out.

Three parties meet here. The router decides where things go. Custody keeps what this broker answers for. Clients have
their requests and deliveries. The core connects them and owns nothing else: a driver owns bytes, sockets and clocks.

    Published ── matched by the router ──► Deliver to local clients
                                       └─► held in custody, sent along its stretches ──► Settled, when all are done
    FrameReceived(Publish) ── passed on by the router; if it is for this broker and new: as above,
                              and Settled goes back to whoever sent it here

Everything may arrive twice, late or never; see `custody` and `routing.correspondence` for what is done about it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from broker.clients import Client, Clients
from broker.custody import Custody, Held
from broker.effects import (
    Accept,
    Deliver,
    DroppedRow,
    Effect,
    Forget,
    MatchedRow,
    Persist,
    Record,
    Refuse,
    ResetLink,
    Send,
    SetTimer,
)
from broker.inputs import (
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
from broker.links import Links
from broker.persisting import Persisting
from broker.seen import SeenPublications
from broker.sessions import Sessions
from broker.settings import Settings
from matching import MatchingError
from matching.model import TRUE
from routing.messages import Credit, EntryId, Message, PublicationId, Publish, Settled
from routing.multicast import narrowed
from routing.router import Matched, Router, Stretch
from routing.tables import EVERYBODY

TICK = "tick"
ACKNOWLEDGE = "acknowledge"
REORGANISE = "reorganise"
CATCH_UP = "catch up"
SETTLED_IN_A_FRAME = 1_000
RELEARNING_TICKS = 5
"""After a restart, by then the neighbours have told what they want."""


class Broker:
    def __init__(
        self,
        router: Router,
        me: str,
        incarnation: int,
        settings: Settings | None = None,
        has_lived: bool | None = None,
    ) -> None:
        """`has_lived`: there were earlier incarnations. None: if this is not the first."""
        self.me = me
        self.incarnation = incarnation
        self.router = router
        self.drops: Counter[str] = Counter()
        self._settings = settings or Settings()
        self._links = Links(self._settings)
        self._seen = SeenPublications(self._settings.window)
        self._custody = Custody(
            self._settings.patience, self._settings.longest_patience, self._settings.hold_unreachable
        )
        self._now = 0
        self._effects: list[Effect] = []
        """Collected here by all parts; `handle` hands them out."""
        self._persisting = Persisting(self._effects)
        self._sessions = Sessions(
            self._settings,
            router,
            self._effects,
            self._persisting,
            self.drops,
            self._drop,
            self._forget_delivery,
            self._entry,
        )
        self._clients = self._sessions.clients
        self._next_entry = 0
        self._next_publication = 0
        self._own_in_flight: dict[int, PublicationId] = {}
        self._to_settle: dict[tuple[str, str], list[PublicationId]] = {}
        self._arrivals: dict[PublicationId, set[str]] = {}
        self._half_done: dict[PublicationId, None] = {}
        """Restored arrivals: taken in for clients here before a crash, and perhaps not passed on."""
        self._known_losses = 0
        self._is_to_catch_up = False
        # After a restart, what others want is not known at once; publications for those behind this broker wait.
        has_lived = incarnation > 1 if has_lived is None else has_lived
        self._relearning = RELEARNING_TICKS if has_lived else 0
        self._has_relearned = has_lived
        self._postponed: dict[PublicationId, Callable[[], tuple[Stretch, ...]]] = {}
        self._waiting_onward: list[tuple[Publish, list[tuple[str, str]]]] = []
        if self._settings.reorganise_every:
            self.router.reorganise_with(self._settings.most_links)
        if self._settings.is_open:
            self.router.advertise(self._entry(), EVERYBODY, TRUE)

    def handle(self, happened: Input, now: int) -> list[Effect]:
        if now > self._now:
            self._now = now
        self._react(happened)
        self._flush()
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
        elif name == REORGANISE:
            self.router.reorganise()
            self._effects.append(SetTimer(REORGANISE, self._now + self._settings.reorganise_every))

    def _flush(self) -> None:
        for peer, message in self.router.drain():
            self._send(peer, message)
        self._effects += self.router.wishes()
        if self.router.is_behind and not self._is_to_catch_up:
            self._is_to_catch_up = True
            self._effects.append(SetTimer(CATCH_UP, self._now + self._settings.catch_up_after))
        losses = self.router.counts_of_losses()
        if losses > self._known_losses:
            self._known_losses = losses
            self._custody.impatient()

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
        mine = self.router.take(frame.message, frame.peer)
        if isinstance(mine, Publish):
            self._arrived(mine.on_its_way(mine.local, mine.transit, further=1), frame.peer)
        elif isinstance(mine, Settled):
            for publication in mine.publications:
                self._close(self._custody.settle(publication, mine.source))
        elif isinstance(mine, Credit):
            self._effects += self._links.credited(frame.peer, mine.taken)

    def _arrived(self, message: Publish, peer: str) -> None:
        if self._relearning and not self.router.still_leads(Stretch(message.domain, (), (), tree=message.tree)):
            # Whoever sent it will repeat it, and by then this broker knows more.
            return
        is_half_done = message.id in self._half_done and self.me in message.transit
        if not self._seen.take(message.id) and not is_half_done:
            if message.id in self._custody:
                self._custody.add_upstream(message.id, message.domain, message.source)
            elif message.id in self._postponed:
                return
            elif message.id not in self._arrivals or not self._is_waiting_for_store(message.id):
                self._settle_with(message.domain, message.source, message.id)
            return
        if message.expires is not None and message.expires <= self._now:
            self._drop("expired", message.id, "on arrival")
            self._settle_with(message.domain, message.source, message.id)
            return
        try:
            matched = self.router.match_arrived(message, peer)
        except MatchingError as error:
            self._drop("unreadable", message.id, str(error))
            self._settle_with(message.domain, message.source, message.id)
            return
        if matched.dropped is not None:
            self._drop(matched.dropped, message.id, f"from {peer}")
        if is_half_done:
            del self._half_done[message.id]
            matched = Matched({}, matched.stretches, matched.work)
        if self._relearning and self.me in message.transit:
            self._postponed[message.id] = lambda: self.router.match_arrived(message, peer).stretches
            matched = Matched(matched.clients, (), matched.work)
        self._serve(message, matched, [(message.domain, message.source)])

    def _serve(self, message: Publish, matched: Matched, upstream: list[tuple[str, str]]) -> None:
        """Local clients first; then the brokers behind this one. Settled when all have it."""
        if self._settings.records_matches or message.is_traced:
            for work in matched.work:
                self._effects.append(Record(MatchedRow(message.id, work)))
        found = [self._delivery(message, client, entries) for client, entries in matched.clients.items()]
        deliveries = [each for each in found if each is not None]
        onward = self._onward(message, matched.stretches) if matched.stretches else ()

        def go() -> None:
            self._sessions.deliver(deliveries, self._now)
            if message.id in self._postponed:
                self._waiting_onward.append((message, upstream))
            else:
                self._forward(message.id, onward, upstream)

        if self._settings.is_durable:
            reliable = tuple(delivery for _, delivery in deliveries if delivery.number)
            if reliable:
                self._arrivals[message.id] = {delivery.client for delivery in reliable}
                self._persisting.persist(("arrival", *map(str, message.id)), reliable, go)
                return
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

    def _onward(self, message: Publish, stretches: tuple[Stretch, ...]) -> tuple[Publish, ...]:
        """The publication as this broker sends it on, for each stretch."""
        return tuple(
            Publish(
                message.id,
                self.me,
                stretch.domain,
                stretch.local,
                stretch.transit,
                message.attributes,
                message.payload,
                stretch.crossed,
                stretch.tree,
                message.hops,
                message.expires,
                self._settings.hop_limit,
                message.is_traced,
            )
            for stretch in stretches
        )

    def _is_waiting_for_store(self, publication: PublicationId) -> bool:
        return ("arrival", *map(str, publication)) in self._persisting

    def _forward(self, id: PublicationId, onward: tuple[Publish, ...], upstream: list[tuple[str, str]]) -> None:
        if not onward:
            for domain, broker in upstream:
                self._settle_with(domain, broker, id)
            if not upstream:
                self._own_settled(id)
            return
        self._custody.hold(id, onward, upstream, self._now, self.router.is_reachable)
        for message in onward:
            self.router.send(message)

    def _close(self, held: Held | None) -> None:
        if held is None:
            return
        for domain, broker in held.upstream:
            self._settle_with(domain, broker, held.id)
        if not held.upstream:
            self._own_settled(held.id)

    def _own_settled(self, id: PublicationId) -> None:
        self._own_in_flight.pop(id.counter, None)
        if self._settings.is_durable:
            self._effects.append(Forget(("publication", *map(str, id))))

    def _settle_with(self, domain: str, broker: str, id: PublicationId) -> None:
        if not self._to_settle:
            self._effects.append(SetTimer(ACKNOWLEDGE, self._now + self._settings.acknowledge_after))
        self._to_settle.setdefault((domain, broker), []).append(id)

    def _acknowledge(self) -> None:
        for (domain, broker), publications in self._to_settle.items():
            for start in range(0, len(publications), SETTLED_IN_A_FRAME):
                some = tuple(publications[start : start + SETTLED_IN_A_FRAME])
                self.router.send(Settled(self.me, domain, (broker,), some))
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
        self._seen.take(id)
        body = (request.attributes, request.payload)
        message = Publish(id, self.me, "", (), (), *body, expires=request.expires, is_traced=request.is_traced)
        accepted = matched

        def go() -> None:
            if taken is not None:
                taken.accept(request.reference)
            present = self._clients.find(request.client)
            if present is None or present.session == session:
                # Another session's publication may have the same reference.
                self._effects.append(Accept(request.client, request.reference, id))
            self._serve(message, accepted, [])

        if self._settings.is_durable:
            if taken is not None:
                taken.store(request.reference)
                self._effects.append(Persist(("taken", request.client), taken.record()))
            record = (message, request.client, accepted.stretches, tuple(accepted.clients))
            self._persisting.persist(("publication", *map(str, id)), record, go)
        else:
            go()

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
    def is_relearning(self) -> bool:
        """After a restart: what others want may not be known yet, and a publication might miss them."""
        return self._relearning > 0

    def _refusal(self) -> str | None:
        """Admission: the window of unsettled publications has an end, and so have the neighbours' queues."""
        if self._links.is_congested:
            return "overloaded: a neighbour's queue is full"
        while self._own_in_flight:
            oldest = next(iter(self._own_in_flight))
            if self._next_publication - oldest < self._settings.window:
                return None
            id = self._own_in_flight[oldest]
            if id not in self._custody or not self._custody.stranded(id, self.router.is_reachable):
                return f"overloaded: {self._settings.window} publications are not settled"
            self._drop("unreachable", id, "made room for newer ones")
            self._close(self._custody.release(id))
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
        for past in [each for each, clients in self._arrivals.items() if not clients and self._seen.is_past(each)]:
            del self._arrivals[past]
            self._half_done.pop(past, None)
            self._effects.append(Forget(("arrival", *map(str, past))))

    def _entry(self) -> EntryId:
        self._next_entry += 1
        return EntryId(self.me, self.incarnation, self._next_entry)

    def _peer_changed(self, happened: PeerUp | PeerLost) -> None:
        if isinstance(happened, PeerLost):
            self._lose(happened.peer)
            return
        if happened.remembers and not self._has_relearned:
            self._relearning, self._has_relearned = RELEARNING_TICKS, True
        self._links.up(happened.peer, self._now)
        self.router.neighbour_up(happened.peer, happened.greeting, happened.cost)
        self._repeat_publications()

    def _lose(self, peer: str) -> None:
        if self._links.down(peer):
            self.router.neighbour_lost(peer)
            self._custody.impatient()

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
        self._relearning = max(0, self._relearning - 1)
        if not self._relearning:
            self._relearned()
        self._acknowledge()
        self._forget_arrivals()
        self._sessions.end_overdue(self._now)
        self._repeat_publications()

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
        for done in self._custody.closed():
            self._close(done)

    def _substitute(self, held: Held, message: Publish, stretch: Stretch) -> None:
        (copy,) = self._onward(message, (stretch,))
        known = {(each.message.domain, broker) for each in held.stretches for broker in each.message.destinations}
        others = [broker for broker in copy.destinations if (copy.domain, broker) not in known]
        if others:
            copy = narrowed(copy, others)
            self._custody.extend(held.id, copy, self._now)
            self.router.send(copy)

    def _restore(self, restored: Restored) -> None:
        self._sessions.restore(restored.records, self._now)
        for key, record in restored.records.items():
            if key[0] == "arrival":
                self._restore_arrival(PublicationId(key[1], int(key[2]), int(key[3])), record)
        self._sessions.sort_restored()
        for key, record in restored.records.items():
            if key[0] == "publication":
                self._restore_publication(record)

    def _restore_arrival(self, id: PublicationId, record: object) -> None:
        assert isinstance(record, tuple)
        self._seen.take(id)
        self._half_done[id] = None
        self._arrivals[id] = set()
        for delivery in record:
            if self._sessions.restore_delivery(delivery):
                self._arrivals[id].add(delivery.client)

    def _restore_publication(self, record: object) -> None:
        """Accepted before the crash and not settled: it goes to all its destinations again."""
        assert isinstance(record, tuple)
        message, client, stretches, clients = record
        matched = self.router.match_own(client, message.attributes)
        wanted = matched.clients if matched is not None else {}
        entries = {name: wanted[name] for name in clients if name in wanted}
        has_arrived = message.id in self._arrivals
        self._seen.take(message.id)
        if not all(map(self.router.still_leads, stretches)):
            self._postponed[message.id] = lambda: self._stretches_of_own(client, message)
        self._serve(message, Matched({} if has_arrived else entries, stretches), [])

    def _stretches_of_own(self, client: str, message: Publish) -> tuple[Stretch, ...]:
        matched = self.router.match_own(client, message.attributes)
        return matched.stretches if matched is not None else ()

    def _relearned(self) -> None:
        """By now the neighbours have told what they want: what had to wait for that goes on."""
        for message, upstream in self._waiting_onward:
            stretches = self._postponed.pop(message.id)()
            self._forward(message.id, self._onward(message, stretches), upstream)
        self._waiting_onward.clear()

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
        """Does someone to whom this broker sent it still have to settle it?"""
        return publication in self._custody

    @property
    def unsettled(self) -> int:
        """Own publications that are not settled everywhere."""
        return len(self._own_in_flight)
