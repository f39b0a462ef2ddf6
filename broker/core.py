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
from broker.custody import Custody, Held, arrived
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
    DeliveryAcknowledged,
    FrameReceived,
    Input,
    LeaveRequested,
    PeerLost,
    PeerUp,
    Persisted,
    Published,
    Restored,
    Subscribed,
    TimerFired,
    Unadvertised,
    Unsubscribed,
)
from broker.links import Links
from broker.seen import SeenPublications
from broker.settings import Settings
from matching import MatchingError
from matching.language import parse
from matching.matcher import unpack_attributes
from matching.model import TRUE
from routing.messages import Credit, EntryId, Message, PublicationId, Publish, Settled
from routing.multicast import narrowed
from routing.router import Matched, Router, Stretch
from routing.tables import EVERYBODY

Key = tuple[str, ...]

TICK = "tick"
ACKNOWLEDGE = "acknowledge"
REORGANISE = "reorganise"
SETTLED_IN_A_FRAME = 1_000
RELEARNING_TICKS = 5
"""After a restart, by then the neighbours have told what they want."""


class Broker:
    def __init__(self, router: Router, me: str, incarnation: int, settings: Settings | None = None) -> None:
        self.me = me
        self.incarnation = incarnation
        self.router = router
        self.drops: Counter[str] = Counter()
        self._settings = settings or Settings()
        self._links = Links(self._settings)
        self._clients = Clients()
        self._seen = SeenPublications(self._settings.window)
        self._custody = Custody(
            self._settings.patience, self._settings.longest_patience, self._settings.hold_unreachable
        )
        self._now = 0
        self._effects: list[Effect] = []
        self._next_entry = 0
        self._next_publication = 0
        self._own_in_flight: dict[int, PublicationId] = {}
        self._to_settle: dict[tuple[str, str], list[PublicationId]] = {}
        self._when_persisted: dict[Key, Callable[[], None]] = {}
        self._arrivals: dict[PublicationId, set[str]] = {}
        self._half_done: dict[PublicationId, None] = {}
        """Restored arrivals: taken in for clients here before a crash, and perhaps not passed on."""
        self._known_losses = 0
        # After a restart, what others want is not known at once; publications for those behind this broker wait.
        self._relearning = RELEARNING_TICKS if incarnation > 1 else 0
        self._postponed: dict[PublicationId, Callable[[], tuple[Stretch, ...]]] = {}
        self._waiting_onward: list[tuple[Publish, list[tuple[str, str]]]] = []
        if self._settings.reorganise_every:
            self.router.reorganise_with(self._settings.most_links)
        if self._settings.is_open:
            self.router.advertise(self._entry(), EVERYBODY, TRUE)

    def handle(self, happened: Input, now: int) -> list[Effect]:
        self._now = max(self._now, now)
        self._react(happened)
        self._flush()
        effects, self._effects = self._effects, []
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
                self._delivery_acknowledged(happened)
            case Persisted():
                self._when_persisted.pop(happened.key, lambda: None)()
            case TimerFired():
                self._timer_fired(happened.name)
            case PeerUp() | PeerLost():
                self._peer_changed(happened)
            case Subscribed() | Advertised() | Unsubscribed() | Unadvertised():
                self._request(happened)
            case ClientConnected() | ClientLost() | ClientLeft():
                self._client_changed(happened)
            case Restored():
                self._restore(happened)
            case LeaveRequested():
                self.router.leave()

    def _timer_fired(self, name: str) -> None:
        if name == TICK:
            self._tick()
        elif name == ACKNOWLEDGE:
            self._acknowledge()
        elif name == REORGANISE:
            self.router.reorganise()
            self._effects.append(SetTimer(REORGANISE, self._now + self._settings.reorganise_every))

    def _flush(self) -> None:
        for peer, message in self.router.drain():
            self._send(peer, message)
        self._effects += self.router.wishes()
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
        message = frame.message
        if isinstance(message, Publish):
            message = arrived(message)
        mine = self.router.take(message, frame.peer)
        if isinstance(mine, Publish):
            self._arrived(mine, frame.peer)
        elif isinstance(mine, Settled):
            for publication in mine.publications:
                self._close(self._custody.settle(publication, mine.source))
        elif isinstance(mine, Credit):
            self._effects += self._links.credited(frame.peer, mine.taken)

    def _arrived(self, message: Publish, peer: str) -> None:
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
        if is_half_done:
            del self._half_done[message.id]
            matched = Matched({}, matched.stretches, matched.work)
        if self._relearning and self.me in message.transit:
            self._postponed[message.id] = lambda: self.router.match_arrived(message, peer).stretches
            matched = Matched(matched.clients, (), matched.work)
        self._serve(message, matched, [(message.domain, message.source)])

    def _serve(self, message: Publish, matched: Matched, upstream: list[tuple[str, str]]) -> None:
        """Local clients first; then the brokers behind this one. Settled when all have it."""
        for work in matched.work:
            self._effects.append(Record(MatchedRow(message.id, work)))
        deliveries = [
            Deliver(
                client, message.id, self._clients.names_of(entries), message.attributes, message.payload, message.hops
            )
            for client, entries in matched.clients.items()
        ]
        onward = self._onward(message, matched.stretches)

        def go() -> None:
            self._deliver(deliveries)
            if message.id in self._postponed:
                self._waiting_onward.append((message, upstream))
            else:
                self._forward(message.id, onward, upstream)

        if self._settings.is_durable and deliveries:
            self._arrivals[message.id] = {delivery.client for delivery in deliveries}
            self._persist(("arrival", *map(str, message.id)), tuple(deliveries), go)
        else:
            go()

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
            )
            for stretch in stretches
        )

    def _is_waiting_for_store(self, publication: PublicationId) -> bool:
        return ("arrival", *map(str, publication)) in self._when_persisted

    def _deliver(self, deliveries: list[Deliver]) -> None:
        for delivery in deliveries:
            client = self._clients.find(delivery.client)
            if client is None:
                continue
            if self._settings.is_durable:
                self._remember(client, delivery)
            if client.is_connected:
                self._effects.append(delivery)

    def _remember(self, client: Client, delivery: Deliver) -> None:
        if len(client.unacknowledged) >= self._settings.deliveries_for_absent:
            oldest = next(iter(client.unacknowledged))
            self._drop("too many deliveries waiting", oldest, f"for {client.name}")
            self._forget_delivery(client, oldest)
        client.unacknowledged[delivery.publication] = delivery

    def _forward(self, id: PublicationId, onward: tuple[Publish, ...], upstream: list[tuple[str, str]]) -> None:
        if not onward:
            for domain, broker in upstream:
                self._settle_with(domain, broker, id)
            if not upstream:
                self._own_settled(id)
            return
        self._custody.hold(id, onward, upstream, self._now)
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
        size = len(request.attributes) + len(request.payload)
        reason = self._refusal()
        if size > self._settings.publication_bytes:
            reason = f"{size} bytes are too much; the limit is {self._settings.publication_bytes}"
        try:
            unpack_attributes(request.attributes)
            matched = self.router.match_own(request.client, request.attributes) if reason is None else None
        except MatchingError as error:
            reason, matched = str(error), None
        if matched is None:
            reason = reason or "not advertised"
            self.drops[f"refused: {reason}"] += 1
            self._effects.append(Refuse(request.client, request.reference, reason))
            return
        id = PublicationId(self.me, self.incarnation, self._next_publication)
        self._next_publication += 1
        self._own_in_flight[id.counter] = id
        self._seen.take(id)
        message = Publish(id, self.me, "", (), (), request.attributes, request.payload, expires=request.expires)
        accepted = matched

        def go() -> None:
            self._effects.append(Accept(request.client, request.reference, id))
            self._serve(message, accepted, [])

        if self._settings.is_durable:
            record = (message, request.client, accepted.stretches, tuple(accepted.clients))
            self._persist(("publication", *map(str, id)), record, go)
        else:
            go()

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

    def _persist(self, key: Key, record: object, then: Callable[[], None]) -> None:
        self._when_persisted[key] = then
        self._effects.append(Persist(key, record))

    def _delivery_acknowledged(self, acknowledgement: DeliveryAcknowledged) -> None:
        client = self._clients.find(acknowledgement.client)
        if client is not None and acknowledgement.publication in client.unacknowledged:
            self._forget_delivery(client, acknowledgement.publication)

    def _forget_delivery(self, client: Client, publication: PublicationId) -> None:
        """The record of the arrival stays while a copy might come, so that a restart does not deliver it twice."""
        del client.unacknowledged[publication]
        waiting = self._arrivals.get(publication, set())
        waiting.discard(client.name)
        if not waiting:
            self._effects.append(Persist(("arrival", *map(str, publication)), ()))
        for past in [each for each, clients in self._arrivals.items() if not clients and self._seen.is_past(each)]:
            del self._arrivals[past]
            self._half_done.pop(past, None)
            self._effects.append(Forget(("arrival", *map(str, past))))

    def _request(self, request: Subscribed | Advertised | Unsubscribed | Unadvertised) -> None:
        client = self._clients.get(request.client)
        if not client.is_connected:
            # Whoever asks for something is here.
            self._client_changed(ClientConnected(client.name))
        is_subscription = isinstance(request, Subscribed | Unsubscribed)
        kind = "subscription" if is_subscription else "advertisement"
        known = client.subscriptions if is_subscription else client.advertisements
        key = (kind, request.client, request.name)
        if isinstance(request, Unsubscribed | Unadvertised):
            if key in self._when_persisted:
                self._after_persisting(key, request)
                return
            if request.name not in known:
                self._effects.append(Refuse(request.client, request.name, f"no {kind} is called {request.name!r}"))
                return
            self._withdraw(client, kind, request.name)
            self._effects.append(Accept(request.client, request.name))
            return
        if request.name in known:
            self._effects.append(Refuse(request.client, request.name, f"{kind} {request.name!r} exists"))
            return
        try:
            expression = parse(request.expression)
        except MatchingError as error:
            self._effects.append(Refuse(request.client, request.name, str(error)))
            return

        def go() -> None:
            self._enter(client, kind, request.name, str(expression))
            self._effects.append(Accept(request.client, request.name))

        if self._settings.is_durable:
            self._persist(key, str(expression), go)
        else:
            go()

    def _after_persisting(self, key: Key, request: Unsubscribed | Unadvertised) -> None:
        """A client may withdraw what is not yet stored; then it does so right after."""
        first = self._when_persisted[key]

        def both() -> None:
            first()
            self._request(request)

        self._when_persisted[key] = both

    def _enter(self, client: Client, kind: str, name: str, text: str) -> None:
        entry = self._entry()
        expression = parse(text)
        if kind == "subscription":
            self._clients.add_subscription(client, name, entry)
            self.router.subscribe(entry, client.name, expression)
        else:
            client.advertisements[name] = entry
            self.router.advertise(entry, client.name, expression)

    def _withdraw(self, client: Client, kind: str, name: str) -> None:
        if kind == "subscription":
            self.router.unsubscribe(self._clients.drop_subscription(client, name))
        else:
            self.router.unadvertise(client.advertisements.pop(name))
        if self._settings.is_durable:
            self._effects.append(Forget((kind, client.name, name)))

    def _entry(self) -> EntryId:
        self._next_entry += 1
        return EntryId(self.me, self.incarnation, self._next_entry)

    def _client_changed(self, happened: ClientConnected | ClientLost | ClientLeft) -> None:
        if isinstance(happened, ClientConnected):
            client = self._clients.get(happened.client)
            client.is_connected = True
            self._effects += client.unacknowledged.values()
            return
        gone = self._clients.find(happened.client)
        if gone is None:
            return
        if isinstance(happened, ClientLost) and self._settings.is_durable:
            gone.is_connected = False
            return
        for name in list(gone.subscriptions):
            self._withdraw(gone, "subscription", name)
        for name in list(gone.advertisements):
            self._withdraw(gone, "advertisement", name)
        for publication in list(gone.unacknowledged):
            self._forget_delivery(gone, publication)
        self._clients.remove(gone.name)

    def _peer_changed(self, happened: PeerUp | PeerLost) -> None:
        if isinstance(happened, PeerLost):
            self._lose(happened.peer)
            return
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
        for key, record in restored.records.items():
            if key[0] in ("subscription", "advertisement"):
                client = self._clients.get(key[1])
                client.is_connected = False
                self._enter(client, key[0], key[2], str(record))
        for key, record in restored.records.items():
            if key[0] == "arrival":
                self._restore_arrival(PublicationId(key[1], int(key[2]), int(key[3])), record)
        for key, record in restored.records.items():
            if key[0] == "publication":
                self._restore_publication(record)

    def _restore_arrival(self, id: PublicationId, record: object) -> None:
        assert isinstance(record, tuple)
        self._seen.take(id)
        self._half_done[id] = None
        self._arrivals[id] = set()
        for delivery in record:
            client = self._clients.find(delivery.client)
            if client is not None:
                client.unacknowledged[id] = delivery
                self._arrivals[id].add(delivery.client)

    def _restore_publication(self, record: object) -> None:
        """Accepted before the crash and not settled: it goes to all its destinations again."""
        assert isinstance(record, tuple)
        message, client, stretches, clients = record
        entries = {
            name: tuple(self._clients.get(name).subscriptions.values()) for name in clients if self._clients.find(name)
        }
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

    @property
    def in_custody(self) -> int:
        return len(self._custody)

    @property
    def unsettled(self) -> int:
        """Own publications that are not settled everywhere."""
        return len(self._own_in_flight)
