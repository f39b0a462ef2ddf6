"""A SimPy driver of broker cores: links, queues, cores and clients in virtual time.

Time is an integer number of nanoseconds. Nothing here reads a clock: the same seed gives the same run, event by event.
A broker has cores and a bounded queue. `handle` runs when a core takes an input up, its effects leave when the work is
done. Heartbeats, acknowledgements, credits and timers have their own lane: they are handled at once and cost nothing.

SimPy's processes are not used: a callback on its events costs a fraction of a generator.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import simpy

from broker.core import Broker
from broker.effects import (
    Accept,
    CloseLink,
    Deliver,
    DroppedRow,
    Effect,
    Forget,
    MatchedRow,
    OpenLink,
    Persist,
    Record,
    Refuse,
    ResetLink,
    Send,
    SetTimer,
)
from broker.inputs import (
    FrameReceived,
    Input,
    PeerLost,
    PeerUp,
    Persisted,
    Published,
    Restored,
    TimerFired,
)
from broker.settings import SECOND, Settings
from broker.simulation.costs import CostProfile, is_free
from broker.simulation.links import MILLISECOND, SimulatedLink
from broker.trace import BrokerRow, DeliveryRow, DropRow, HopRow, LinkRow, MatchRow, PublicationRow, Trace, seconds
from broker.wire import header_size
from matching.matcher import unpack_attributes
from routing.messages import LinkState, Message, Neighbour, PublicationId, Publish
from routing.registry import create
from topologies import Overlay

REDIAL_AFTER = SECOND
NEW_LINK_LATENCY = MILLISECOND


@dataclass(slots=True)
class Node:
    """A broker's place: what it runs on, and what waits for it."""

    name: str
    clusters: tuple[str, ...]
    cores: int
    queue_limit: int
    broker: Broker | None = None
    incarnation: int = 0
    working: int = 0
    busy_ns: int = 0
    queue: deque[tuple[int, Input]] = field(default_factory=deque)
    timers: dict[str, int] = field(default_factory=dict)
    store: dict[tuple[str, ...], object] = field(default_factory=dict)


class SimulatedOverlay:
    def __init__(
        self,
        overlay: Overlay,
        protocol: str,
        *,
        matcher: str,
        settings: Settings,
        profile: CostProfile,
        trace: Trace,
        random: random.Random,
        cores: Mapping[str, int],
        queue_frames: int,
        starts_known: bool = True,
    ) -> None:
        self.env = simpy.Environment()
        self.protocol = protocol
        self.nodes: dict[str, Node] = {}
        self.links: dict[tuple[str, str], SimulatedLink] = {}
        self.sent: Counter[str] = Counter()
        self.on_accepted: Callable[[PublicationId, Published, int], None] = _ignore
        self.on_delivered: Callable[[Deliver, int], None] = _ignore
        self.on_refused: Callable[[Refuse], None] = _ignore
        self.on_link: Callable[[str, str, bool], None] = _ignore
        self._overlay = overlay
        self._matcher = matcher
        self._settings = settings
        self._profile = profile
        self._trace = trace
        self._random = random
        self._requests: dict[tuple[str, str, int], tuple[Published, int]] = {}
        self._published_at: dict[PublicationId, int] = {}
        for broker in overlay.brokers:
            self.nodes[broker.id] = Node(broker.id, broker.clusters, cores[broker.id], queue_frames)
        for each in overlay.links:
            speed = None if each.bandwidth_mbit is None else round(each.bandwidth_mbit * 125_000)
            latency = round(each.latency_ms * MILLISECOND)
            self.links[_ends(each.a, each.b)] = SimulatedLink(*_ends(each.a, each.b), latency, speed, is_up=False)
        states = self._known_states() if starts_known else ()
        for name in self.nodes:
            self._start(name, states)
        for first, second in self.links:
            self.connect(first, second)

    @property
    def now(self) -> int:
        return int(self.env.now)

    def run_until(self, at: int) -> None:
        if at > self.now:
            self.env.run(until=at)

    def later(self, at: int, action: Callable[[], None]) -> None:
        event = self.env.timeout(max(0, at - self.now))
        event.callbacks.append(lambda _: action())

    def _known_states(self) -> tuple[LinkState, ...]:
        """The overlay as every broker would have learned it, in each domain."""
        states: list[LinkState] = []
        for name, node in self.nodes.items():
            for domain in self._domains(node):
                neighbours = tuple(
                    Neighbour(other, 1)
                    for other in self._overlay.neighbours(name)
                    if domain in self._domains(self.nodes[other])
                )
                states.append(LinkState(name, 1, 1, domain, neighbours, tuple(self._domains(node))))
        return tuple(states)

    def _domains(self, node: Node) -> tuple[str, ...]:
        return node.clusters if self.protocol == "merc" else ("",)

    def _start(self, name: str, states: tuple[LinkState, ...]) -> None:
        node = self.nodes[name]
        node.incarnation += 1
        node.timers.clear()
        router = create(self.protocol, name, node.incarnation, self._matcher, node.clusters)
        node.broker = Broker(router, name, node.incarnation, self._settings)
        router.start_with(states)
        if node.store:
            self._perform(node, node.broker.handle(Restored(dict(node.store)), self.now))
        self._perform(node, node.broker.start(self.now))

    def crash(self, name: str) -> None:
        """All in memory is gone; neighbours notice when the links break."""
        node = self.nodes[name]
        node.broker = None
        node.queue.clear()
        if not self._settings.is_durable:
            node.store.clear()
        for link in self.links.values():
            if link.is_up and name in (link.first, link.second):
                self.cut(link.first, link.second)

    def restart(self, name: str) -> None:
        if self.nodes[name].broker is None:
            self._start(name, ())
            for first, second in self.links:
                if name in (first, second):
                    self.connect(first, second)

    def connect(self, first: str, second: str) -> None:
        link = self.links.get(_ends(first, second))
        one, other = self.nodes[first].broker, self.nodes[second].broker
        if link is None or link.is_up or link.is_broken or one is None or other is None:
            return
        link.is_up = True
        link.life += 1
        link.up_since = self.now
        self.on_link(link.first, link.second, True)
        greetings = one.router.greeting(), other.router.greeting()
        self._now(self.nodes[first], PeerUp(second, greetings[1]))
        self._now(self.nodes[second], PeerUp(first, greetings[0]))

    def cut(self, first: str, second: str) -> None:
        link = self.links[_ends(first, second)]
        if not link.is_up:
            return
        link.is_up = False
        self._record_link(link, self.now)
        self.on_link(link.first, link.second, False)
        self._now(self.nodes[first], PeerLost(second))
        self._now(self.nodes[second], PeerLost(first))

    def submit(self, name: str, happened: Input) -> None:
        """A client's request, or a frame: it waits for a core."""
        node = self.nodes[name]
        if isinstance(happened, Published):
            self._requests[name, happened.client, happened.reference] = (happened, self.now)
        if node.broker is None:
            return
        if node.working < node.cores:
            self._work(node, happened)
        elif len(node.queue) < node.queue_limit:
            node.queue.append((node.incarnation, happened))
        else:
            self._drop(node, "broker queue full", happened)

    def _work(self, node: Node, happened: Input) -> None:
        broker = node.broker
        assert broker is not None
        effects = broker.handle(happened, self.now)
        cost = self._profile.cost(happened, effects)
        self._record_work(node, effects)
        if cost == 0:
            self._perform(node, effects)
            return
        node.working += 1
        node.busy_ns += cost

        def done() -> None:
            node.working -= 1
            if node.broker is broker:
                self._perform(node, effects)
            self._take_next(node)

        self.later(self.now + cost, done)

    def _take_next(self, node: Node) -> None:
        while node.queue and node.working < node.cores and node.broker is not None:
            incarnation, happened = node.queue.popleft()
            if incarnation == node.incarnation:
                self._work(node, happened)

    def _now(self, node: Node, happened: Input) -> None:
        """Without waiting: what costs nothing does not stand in the queue."""
        if node.broker is not None:
            effects = node.broker.handle(happened, self.now)
            self._record_work(node, effects)
            self._perform(node, effects)

    def _record_work(self, node: Node, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Record):
                if isinstance(effect.row, MatchedRow):
                    work = effect.row.work
                    row = MatchRow(
                        broker=node.name,
                        message=str(effect.row.publication),
                        table=work.table,
                        stored=work.stored,
                        candidates=work.candidates,
                        evaluated=work.evaluated,
                        matched=work.matched,
                        started_s=seconds(self.now),
                        cost_s=seconds(round(self._profile.cost_of_asking(work))),
                    )
                    self._trace.record(row)
                else:
                    self._record_drop(node.name, effect.row)

    def _record_drop(self, broker: str, row: DroppedRow) -> None:
        publication = str(row.publication) if row.publication is not None else None
        self._trace.record(
            DropRow(
                at_s=seconds(self.now),
                broker=broker,
                reason=row.reason,
                publication=publication,
                detail=row.detail,
            )
        )

    def _drop(self, node: Node, reason: str, happened: Input) -> None:
        publication = None
        if isinstance(happened, FrameReceived) and isinstance(happened.message, Publish):
            publication = happened.message.id
        self._record_drop(node.name, DroppedRow(reason, publication, f"{node.queue_limit} inputs wait"))
        if isinstance(happened, Published):
            self.on_refused(Refuse(happened.client, happened.reference, reason))

    def _perform(self, node: Node, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Send():
                    self._send(node, effect)
                case Deliver():
                    self._deliver(node, effect)
                case Accept():
                    self._accept(node, effect)
                case SetTimer():
                    self._set_timer(node, effect)
                case Refuse():
                    if isinstance(effect.reference, int):
                        self._requests.pop((node.name, effect.client, effect.reference), None)
                    self.on_refused(effect)
                case Persist():
                    node.store[effect.key] = effect.record
                    self._now(node, Persisted(effect.key))
                case Forget():
                    node.store.pop(effect.key, None)
                case ResetLink() | CloseLink():
                    self._close(node, effect)
                case OpenLink():
                    self._open(node.name, effect.peer)
                case Record():
                    pass

    def _close(self, node: Node, effect: ResetLink | CloseLink) -> None:
        first, second = node.name, effect.peer
        if _ends(first, second) in self.links:
            self.cut(first, second)
            if isinstance(effect, ResetLink):
                self.later(self.now + REDIAL_AFTER, lambda: self.connect(first, second))

    def _open(self, first: str, second: str) -> None:
        ends = _ends(first, second)
        if ends not in self.links:
            self.links[ends] = SimulatedLink(*ends, NEW_LINK_LATENCY, is_up=False)
        self.later(self.now + NEW_LINK_LATENCY, lambda: self.connect(first, second))

    def _accept(self, node: Node, effect: Accept) -> None:
        if effect.publication is None or not isinstance(effect.reference, int):
            return
        request, at = self._requests.pop((node.name, effect.client, effect.reference))
        self._published_at[effect.publication] = at
        self._trace.record(
            PublicationRow(
                publication=str(effect.publication),
                broker=node.name,
                client=effect.client,
                published_s=seconds(at),
                attribute_count=len(unpack_attributes(request.attributes)),
                bytes=len(request.attributes) + len(request.payload),
            )
        )
        self.on_accepted(effect.publication, request, at)

    def _deliver(self, node: Node, effect: Deliver) -> None:
        self._trace.record(
            DeliveryRow(
                publication=str(effect.publication),
                broker=node.name,
                client=effect.client,
                hops=effect.hops,
                published_s=seconds(self._published_at[effect.publication]),
                delivered_s=seconds(self.now),
            )
        )
        self.on_delivered(effect, self.now)

    def _set_timer(self, node: Node, effect: SetTimer) -> None:
        node.timers[effect.name] = effect.at
        incarnation = node.incarnation

        def fire() -> None:
            if node.incarnation == incarnation and node.timers.get(effect.name) == effect.at:
                del node.timers[effect.name]
                self._now(node, TimerFired(effect.name))

        self.later(effect.at, fire)

    def _send(self, node: Node, effect: Send) -> None:
        link = self.links.get(_ends(node.name, effect.peer))
        self.sent[type(effect.message).__name__] += 1
        if link is None or not link.is_up:
            return
        if link.loss and self._random.random() < link.loss:
            return
        message = effect.message
        header = header_size(message, effect.sequence)
        body = len(message.attributes) + len(message.payload) if isinstance(message, Publish) else 0
        sent, life = self.now, link.life
        at = link.arrival(node.name, header + body, sent)

        def arrive() -> None:
            if link.is_up and link.life == life:
                self._record_hop(node.name, effect, header, body, sent)
                self._arrived(self.nodes[effect.peer], FrameReceived(node.name, message, effect.sequence))

        self.later(at, arrive)

    def _arrived(self, node: Node, frame: FrameReceived) -> None:
        if is_free(frame.message):
            self._now(node, frame)
        else:
            self.submit(node.name, frame)

    def _record_hop(self, sender: str, effect: Send, header: int, body: int, sent: int) -> None:
        message = effect.message
        if is_free(message):
            return
        self._trace.record(
            HopRow(
                message=_name(message),
                kind=type(message).__name__.lower(),
                source=getattr(message, "source", sender),
                sender=sender,
                receiver=effect.peer,
                hop=message.hops + 1 if isinstance(message, Publish) else 0,
                destinations=len(getattr(message, "destinations", (effect.peer,))),
                header_bytes=header,
                body_bytes=body,
                sent_s=seconds(sent),
                received_s=seconds(self.now),
            )
        )

    def _record_link(self, link: SimulatedLink, down: int | None) -> None:
        down_s = None if down is None else seconds(down)
        self._trace.record(LinkRow(a=link.first, b=link.second, up_s=seconds(link.up_since), down_s=down_s))

    def finish(self) -> None:
        """Rows for the links that are up and the brokers as they are, at the end of a run."""
        for link in self.links.values():
            if link.is_up:
                self._record_link(link, None)
        self.record_brokers()

    def record_brokers(self) -> None:
        """A row for each broker, as it is now."""
        for name, node in self.nodes.items():
            if node.broker is None:
                continue
            counts = node.broker.router.counts()
            self._trace.record(
                BrokerRow(
                    broker=name,
                    at_s=seconds(self.now),
                    busy_s=seconds(node.busy_ns),
                    queue=len(node.queue),
                    advertisements=counts.advertisements,
                    local_subscriptions=counts.local_subscriptions,
                    remote_subscriptions=counts.remote_subscriptions,
                    routing_table_bytes=counts.routing_table_bytes,
                    memory_bytes=None,
                )
            )


def _ignore(*_: object) -> None:
    """Nobody listens."""


def _ends(first: str, second: str) -> tuple[str, str]:
    return (first, second) if first < second else (second, first)


def _name(message: Message) -> str:
    """A publication has a name of its own; other messages are known by what they are."""
    return str(message.id) if isinstance(message, Publish) else type(message).__name__.lower()
