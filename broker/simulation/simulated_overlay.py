"""The simulation's driver of broker cores: links, queues, processor cores and clients in virtual time, on SimPy.

Time is an integer number of nanoseconds. Nothing here reads a clock: the same seed gives the same run, event by event.
A broker has processor cores and a bounded queue of inputs. `handle` runs when a processor core starts on an input. The
driver performs the effects when the work ends. Heartbeats, acknowledgements, credits and timers bypass the queue: they
are handled at once and cost nothing.

The driver does not use SimPy's processes: a callback on an event costs a fraction of a generator.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping

import simpy

from broker.core.broker import Broker
from broker.core.effects import (
    Accept,
    CloseLink,
    Deliver,
    DroppedRow,
    Effect,
    Failed,
    Forget,
    OpenLink,
    Persist,
    Record,
    Refuse,
    ResetLink,
    Send,
    SetTimer,
)
from broker.core.inputs import FrameReceived, Input, PeerLost, PeerUp, Persisted, Published, Restored, TimerFired
from broker.core.settings import SECOND, Settings
from broker.simulation.broker_node import BrokerNode
from broker.simulation.costs import CostProfile
from broker.simulation.events import ActionDue, Callbacks, FrameArrives, WorkEnds
from broker.simulation.links import MILLISECOND, SimulatedLink
from broker.simulation.memory_estimate import estimated_bytes
from broker.trace.recorder import TraceRecorder
from broker.trace.schema import Trace
from broker.wire.broker_codec import header_size
from routing.messages import LinkState, Neighbour, PublicationId, Publish, is_free
from routing.registry import create, info
from topologies import Overlay
from topologies.broker_and_link import Metric

REDIAL_AFTER = SECOND
NEW_LINK_LATENCY = MILLISECOND


class SimulatedOverlay:
    """The brokers and links of an overlay in virtual time."""

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
        metric: Metric = "hops",
        starts_known: bool = True,
        options: Mapping[str, object] | None = None,
    ) -> None:
        self.env = simpy.Environment()
        self.protocol = protocol
        self.nodes: dict[str, BrokerNode] = {}
        self.links: dict[tuple[str, str], SimulatedLink] = {}
        self.sent: Counter[str] = Counter()
        self.handled = 0
        """The number of inputs that brokers have handled."""
        self.on_accepted: Callable[[PublicationId, str, int, int], None] = _ignore
        """Called with the publication's id, its client and reference, and the time of publishing."""
        self.on_delivered: Callable[[Deliver, int], None] = _ignore
        self.on_refused: Callable[[Refuse], None] = _ignore
        self.on_confirmed: Callable[[str, str], None] = _ignore
        """Called with the client and the name of the entry that it added or withdrew."""
        self._overlay = overlay
        self._costs = {link.ends: link.cost(metric) for link in overlay.links}
        self._matcher = matcher
        self._router_options = options or {}
        self._settings = settings
        self._profile = profile
        self._when_frame_arrives: Callbacks = [self._frame_arrives]
        self._when_work_ends: Callbacks = [self._work_ends]
        self._random = random
        self._published_at: dict[PublicationId, int] = {}
        for broker in overlay.brokers:
            recorder = TraceRecorder(broker.id, trace, self._published_at)
            self.nodes[broker.id] = BrokerNode(broker.id, broker.clusters, cores[broker.id], queue_frames, recorder)
        for each in overlay.links:
            speed = None if each.bandwidth_mbit is None else round(each.bandwidth_mbit * 125_000)
            latency = round(each.latency_ms * MILLISECOND)
            self._add_link(each.a, each.b, latency, speed)
        states = self._known_states() if starts_known else ()
        for name in self.nodes:
            self._start(name, states)
        for first, second in self.links:
            self.connect(first, second)

    @property
    def now(self) -> int:
        """The virtual time in nanoseconds."""
        return int(self.env.now)

    def run_until(self, at: int) -> None:
        """Runs the simulation until the virtual time `at`. Does nothing if that is not later than now."""
        if at > self.now:
            self.env.run(until=at)

    def schedule(self, at: int, action: Callable[[], None]) -> None:
        """Calls `action` at the virtual time `at`, or now if that is past."""
        self.env.schedule(ActionDue(action), delay=max(0, at - self.now))

    def _add_link(self, first: str, second: str, latency: int, bytes_per_second: int | None = None) -> None:
        link = SimulatedLink(*_ends(first, second), latency, bytes_per_second, is_up=False)
        self.links[_ends(first, second)] = link
        self.nodes[first].links[second] = self.nodes[second].links[first] = link

    def _known_states(self) -> tuple[LinkState, ...]:
        """The link states of the whole overlay, as every broker would have learned them, in each domain."""
        states: list[LinkState] = []
        for name, node in self.nodes.items():
            for domain in self._domains(node):
                neighbours = tuple(
                    Neighbour(other, self._cost(name, other))
                    for other in self._overlay.neighbours(name)
                    if domain in self._domains(self.nodes[other])
                )
                states.append(LinkState(name, 1, 1, domain, neighbours, tuple(self._domains(node))))
        return tuple(states)

    def _cost(self, first: str, second: str) -> int:
        """The cost of a link. A link that brokers opened themselves costs 1, as at a deployed broker."""
        return self._costs.get(_ends(first, second), 1)

    def _domains(self, node: BrokerNode) -> tuple[str, ...]:
        return info(self.protocol).domains(node.clusters)

    def _start(self, name: str, states: tuple[LinkState, ...]) -> None:
        node = self.nodes[name]
        node.incarnation += 1
        node.timers.clear()
        router = create(
            self.protocol, name, node.incarnation, self._matcher, node.clusters, options=self._router_options
        )
        node.broker = Broker(router, name, node.incarnation, self._settings)
        router.load_link_states(states)
        if node.store:
            self._perform(node, node.broker.handle(Restored(dict(node.store)), self.now), self.now)
        self._perform(node, node.broker.start(self.now), self.now)

    def crash(self, name: str) -> None:
        """Stops a broker, which loses its memory. Its neighbours notice when the links break."""
        node = self.nodes[name]
        node.broker = None
        node.queue.clear()
        if not self._settings.is_durable:
            node.store.clear()
        for link in self.links.values():
            if link.is_up and name in (link.first, link.second):
                self.cut(link.first, link.second)

    def restart(self, name: str) -> None:
        """Starts a crashed broker with its store, and connects its links."""
        if self.nodes[name].broker is None:
            self._start(name, ())
            for first, second in self.links:
                if name in (first, second):
                    self.connect(first, second)

    def connect(self, first: str, second: str) -> None:
        """Connects a link. Does nothing if it is up or broken, or if one of its brokers is down."""
        link = self.links.get(_ends(first, second))
        one, other = self.nodes[first].broker, self.nodes[second].broker
        if link is None or link.is_up or link.is_broken or one is None or other is None:
            return
        link.is_up = True
        link.generation += 1
        link.up_since = self.now
        greetings = one.router.greeting(), other.router.greeting()
        cost = self._cost(first, second)
        self._handle_now(self.nodes[first], PeerUp(second, greetings[1], cost))
        self._handle_now(self.nodes[second], PeerUp(first, greetings[0], cost))

    def cut(self, first: str, second: str) -> None:
        """Disconnects a link that is up. Both brokers notice at once."""
        link = self.links[_ends(first, second)]
        if not link.is_up:
            return
        link.is_up = False
        self._record_link(link, self.now)
        self._handle_now(self.nodes[first], PeerLost(second))
        self._handle_now(self.nodes[second], PeerLost(first))

    @property
    def has_backlog(self) -> bool:
        """Whether a broker is busy, or a frame is in flight."""
        now = self.now
        return any(node.busy_cores or node.queue for node in self.nodes.values()) or any(
            link.is_carrying(now) for link in self.links.values()
        )

    def submit(self, name: str, happened: Input) -> None:
        """Gives a client's input to a broker. It waits for a free processor core."""
        node = self.nodes[name]
        if isinstance(happened, Published):
            node.recorder.requested(happened, self.now)
        self._handle_or_enqueue(node, happened, self.now)

    def _handle_or_enqueue(self, node: BrokerNode, happened: Input, now: int) -> None:
        if node.broker is None:
            return
        if node.busy_cores < node.cores:
            self._work(node, node.broker, happened, now)
        elif len(node.queue) < node.queue_limit:
            node.queue.append((node.incarnation, happened))
        else:
            self._drop(node, "broker queue full", happened)

    def _work(self, node: BrokerNode, broker: Broker, happened: Input, now: int) -> None:
        self.handled += 1
        effects = broker.handle(happened, now)
        cost = self._profile.cost(happened, effects)
        node.recorder.handled(effects, now, self._profile.match_cost)
        if cost == 0:
            self._perform(node, effects, now)
            return
        node.busy_cores += 1
        node.busy_ns += cost
        self.env.schedule(WorkEnds(self._when_work_ends, node, broker, effects), delay=cost)

    def _work_ends(self, work: WorkEnds) -> None:
        node, now = work.node, self.now
        node.busy_cores -= 1
        if node.broker is work.broker:
            self._perform(node, work.effects, now)
        # Work that costs nothing ends at once and leaves the core free for more.
        while node.queue and node.busy_cores < node.cores and node.broker is not None:
            incarnation, happened = node.queue.popleft()
            if incarnation == node.incarnation:
                self._work(node, node.broker, happened, now)

    def _handle_now(self, node: BrokerNode, happened: Input) -> None:
        """Handles an input that costs nothing, without queueing it."""
        if node.broker is not None:
            now = self.now
            self.handled += 1
            effects = node.broker.handle(happened, now)
            node.recorder.handled(effects, now, self._profile.match_cost)
            self._perform(node, effects, now)

    def _drop(self, node: BrokerNode, reason: str, happened: Input) -> None:
        publication = None
        if isinstance(happened, FrameReceived) and isinstance(happened.message, Publish):
            publication = happened.message.id
        node.recorder.dropped(DroppedRow(reason, publication, f"{node.queue_limit} inputs wait"), self.now)
        if isinstance(happened, Published):
            self._refuse(node, Refuse(happened.client, happened.reference, reason))

    def _perform(self, node: BrokerNode, effects: list[Effect], now: int) -> None:
        for effect in effects:
            match effect:
                case Send():
                    self._send(node, effect, now)
                case Deliver():
                    self._deliver(node, effect)
                case Accept():
                    self._accept(node, effect)
                case SetTimer():
                    self._set_timer(node, effect)
                case Refuse():
                    self._refuse(node, effect)
                case Persist():
                    node.store[effect.key] = effect.record
                    self._handle_now(node, Persisted(effect.key))
                case Forget():
                    node.store.pop(effect.key, None)
                case ResetLink() | CloseLink():
                    self._close(node, effect)
                case OpenLink():
                    self._open(node.name, effect.peer)
                case Failed():
                    raise effect.error
                case Record():
                    pass

    def _close(self, node: BrokerNode, effect: ResetLink | CloseLink) -> None:
        first, second = node.name, effect.peer
        if _ends(first, second) in self.links:
            self.cut(first, second)
            if isinstance(effect, ResetLink):
                self.schedule(self.now + REDIAL_AFTER, lambda: self.connect(first, second))

    def _open(self, first: str, second: str) -> None:
        ends = _ends(first, second)
        if ends not in self.links:
            self._add_link(*ends, NEW_LINK_LATENCY)
        self.schedule(self.now + NEW_LINK_LATENCY, lambda: self.connect(first, second))

    def _accept(self, node: BrokerNode, effect: Accept) -> None:
        if isinstance(effect.reference, str):
            self.on_confirmed(effect.client, effect.reference)
            return
        if effect.publication is None:
            return
        at = node.recorder.accepted(effect.client, effect.reference, effect.publication, self.now)
        self.on_accepted(effect.publication, effect.client, effect.reference, at)

    def _refuse(self, node: BrokerNode, effect: Refuse) -> None:
        if isinstance(effect.reference, int):
            node.recorder.refused(effect.client, effect.reference)
        self.on_refused(effect)

    def _deliver(self, node: BrokerNode, effect: Deliver) -> None:
        published = self._published_at.get(effect.publication)
        if published is None:
            late = DroppedRow("delivered when it was over", effect.publication, f"for {effect.client}")
            node.recorder.dropped(late, self.now)
            return
        node.recorder.delivered(effect, published, self.now)
        self.on_delivered(effect, self.now)

    def _set_timer(self, node: BrokerNode, effect: SetTimer) -> None:
        node.timers[effect.name] = effect.at
        incarnation = node.incarnation

        def fire() -> None:
            if node.incarnation == incarnation and node.timers.get(effect.name) == effect.at:
                del node.timers[effect.name]
                self._handle_now(node, TimerFired(effect.name))

        self.schedule(effect.at, fire)

    def _send(self, node: BrokerNode, effect: Send, now: int) -> None:
        message = effect.message
        self.sent[type(message).__name__] += 1
        link = node.links.get(effect.peer)
        if link is None or not link.is_up:
            return
        if link.loss and self._random.random() < link.loss:
            return
        header = header_size(message, effect.sequence)
        body = len(message.attributes) + len(message.payload) if isinstance(message, Publish) else 0
        frame = FrameArrives(self._when_frame_arrives, link, node.name, effect, header, body, now)
        self.env.schedule(frame, delay=link.send_frame(node.name, header + body, now) - now)

    def _frame_arrives(self, frame: FrameArrives) -> None:
        link, effect = frame.link, frame.effect
        if not link.is_up or link.generation != frame.generation:
            return
        receiver = self.nodes[effect.peer]
        received = FrameReceived(frame.sender, effect.message, effect.sequence)
        if is_free(effect.message):
            self._handle_now(receiver, received)
        else:
            now = self.now
            receiver.recorder.received(
                frame.sender, effect.message, frame.header_bytes, frame.body_bytes, frame.sent, now
            )
            self._handle_or_enqueue(receiver, received, now)

    def forget_publication(self, publication: PublicationId) -> None:
        """Forgets when the publication was published. It will not be delivered any more."""
        self._published_at.pop(publication, None)

    def finish(self) -> None:
        """Records the links that are up and the state of the brokers, at the end of a run."""
        for link in self.links.values():
            if link.is_up:
                self._record_link(link, None)
        self.record_brokers()

    def record_brokers(self) -> None:
        """Records the present state of each broker."""
        for node in self.nodes.values():
            self._record_state(node)

    def _record_state(self, node: BrokerNode) -> None:
        """Records a broker's present state. A broker that is down has no row."""
        if node.broker is not None:
            counts, queue = node.broker.router.counts(), len(node.queue)
            memory = estimated_bytes(counts, queue, node.broker.in_custody)
            node.recorder.state(counts, at=self.now, busy=node.busy_ns, queue=queue, memory_bytes=memory)

    def _record_link(self, link: SimulatedLink, down: int | None) -> None:
        self.nodes[link.first].recorder.link(link.second, link.up_since, down)


def _ignore(*_: object) -> None:
    """The default callback, which does nothing."""


def _ends(first: str, second: str) -> tuple[str, str]:
    return (first, second) if first < second else (second, first)
