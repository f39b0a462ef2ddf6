"""Broker cores connected by queues, without sockets and sleeps, in virtual time.

Delays, losses and the order of arrivals on different links come from one seeded generator. Those of heartbeats are
functions of seed, link and time. A link keeps the order of its frames while it is up, and loses the frames in flight
when it goes down. A broker that crashes loses its memory. If it is durable it keeps the committed records. Records are
written in transactions, one at a time, and each commit is reported a moment later. The world records what clients
receive.

Most of the virtual time is idle: brokers tick and send heartbeats, and nothing else happens. The world skips these
ticks. It runs all ticks of the second after any other event. If they did nothing but send heartbeats, then the next
ones do the same until something is due (see `Broker.idle_ticks`). Outcomes are the same with and without skipping.
"""

from __future__ import annotations

import heapq
import itertools
import random
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache

import msgpack

from broker.core.broker import TICK, Broker
from broker.core.effects import (
    Accept,
    CloseLink,
    Deliver,
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
from broker.core.inputs import (
    Advertised,
    ClientConnected,
    ClientLeft,
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
from broker.core.settings import FOREVER, MILLISECOND, SECOND, Settings
from broker.wire.broker_codec import Limits, decode, encode
from experiments.simulate.oracle import is_lost_for
from matching.expressions.model import Expression
from matching.expressions.values import Value
from routing.messages import Heartbeat, Message, PublicationId, Publish
from routing.registry import create
from routing.router import Router

Link = tuple[str, str]


HEARTBEAT_DELAY_MAX = 4 * MILLISECOND


def link(first: str, second: str) -> Link:
    return (first, second) if first < second else (second, first)


def nothing_is_lost(_: Message) -> bool:
    return False


@lru_cache(maxsize=1024)
def _heartbeat_frame(heartbeat: Heartbeat) -> bytes:
    return encode(heartbeat, None)


@lru_cache(maxsize=1024)
def _heartbeat_of(frame: bytes) -> Heartbeat:
    heartbeat, _ = decode(frame, Limits())
    assert isinstance(heartbeat, Heartbeat)
    return heartbeat


def _has_only_heartbeats(effects: list[Effect]) -> bool:
    """Whether a tick did no more than to send heartbeats and to set its timer again."""
    return all(
        type(each.message) is Heartbeat if isinstance(each, Send) else isinstance(each, SetTimer) for each in effects
    )


class FailingCommit(Enum):
    """A commit that fails. A broker stops at the first one."""

    LOST = "lost"
    """Nothing is written."""
    WRITTEN = "written"
    """All is written. Only the report of success is missing."""


@dataclass(slots=True)
class Seat:
    """A broker across its restarts: its core while it is up, its incarnation, store and timers."""

    clusters: tuple[str, ...]
    broker: Broker | None = None
    incarnation: int = 0
    store: dict[tuple[str, ...], object] = field(default_factory=dict)
    """The committed records."""
    unwritten: list[Persist | Forget] = field(default_factory=list)
    is_writing: bool = False
    timers: dict[str, int] = field(default_factory=dict)
    has_left: bool = False
    clock: int = 0
    """How far the broker's clock is ahead. It changes only while the broker is down."""
    known_heartbeats: dict[str, Heartbeat] = field(default_factory=dict)
    """The neighbours' heartbeats that had no effect, since the broker last changed."""
    failing_commit: FailingCommit | None = None
    """What the next commit does instead of succeeding."""


class World:
    """The brokers, links, clients and the clock of one test."""

    def __init__(
        self,
        protocol: str,
        links: Iterable[Link],
        *,
        clusters: Mapping[str, tuple[str, ...]] | None = None,
        matcher: str = "auto",
        seed: int = 0,
        settings: Settings | None = None,
        loss: float = 0.0,
        reading: Limits | None = None,
        options: Mapping[str, object] | None = None,
        skips_idle_ticks: bool = True,
    ) -> None:
        self.protocol = protocol
        self.options = options
        """Options of the router."""
        self.matcher = matcher
        self.settings = settings or Settings()
        self.loss = loss
        self.is_lost: Callable[[Message], bool] = nothing_is_lost
        """Whether a message is lost. Tests may replace it."""
        self.now = 0
        self.skips_idle_ticks = skips_idle_ticks
        self.random = random.Random(seed)
        self.muted: set[tuple[str, str]] = set()
        """Directions of half-open links, as sender and receiver: frames vanish, and no end is told."""
        self.slow: dict[Link, int] = {}
        """Links whose frames take so much longer."""
        self.stop_broker: Callable[[str], None] = self.crash
        """Called when a broker stops because a commit failed."""
        self.links: dict[Link, int] = {}
        """Links that are up. The number is different each time that a link comes up."""
        self.seats: dict[str, Seat] = {}
        self.flaps: list[tuple[Link, int, int]] = []
        """Links that a broker reset because the neighbour was silent, with the start and end of the interruption."""
        self.delivered: Counter[tuple[PublicationId, str]] = Counter()
        self.delivered_in_life: Counter[tuple[PublicationId, str, str, int]] = Counter()
        """Deliveries by broker and incarnation: after a restart, a durable broker repeats those that were not
        acknowledged."""
        self.got: dict[tuple[PublicationId, str], tuple[str, ...]] = {}
        self.accepted: dict[PublicationId, dict[str, Value]] = {}
        self.published_at: dict[PublicationId, int] = {}
        self.accepted_as: dict[PublicationId, int] = {}
        """The moments of acceptance, see `moment`."""
        self.confirmed_as: dict[tuple[str, str], int] = {}
        """The moments at which subscriptions and advertisements were confirmed, by client and name."""
        self.lost_for: set[tuple[PublicationId, str]] = set()
        """In memory mode: publications lost by a crash, each with a subscriber's broker that it cannot reach."""
        self.refused: list[Refuse] = []
        self.records: list[tuple[str, Record]] = []
        """Records, each with its broker."""
        self.sent: Counter[str] = Counter()
        self.hops: list[tuple[str, str, Publish]] = []
        self._limits = reading or Limits()
        self._agenda: list[tuple[int, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._ticks: list[tuple[int, int, str, Broker]] = []
        """The next ticks, by time and order, as a heap."""
        self._last_event = 0
        """The time of the last event other than a tick that only sends heartbeats, or a heartbeat without effects."""
        self._try_skip_at = 0
        """Before this time no ticks are skipped: a broker was not idle."""
        self._seed = seed
        self._directions: dict[tuple[str, str], int] = {}
        """A number for each direction of a link, from which the fates of its heartbeats follow."""
        self._busy_until: dict[tuple[str, str], int] = {}
        self._moments = itertools.count()
        self._references = itertools.count()
        self._publishing: dict[int, tuple[int, dict[str, Value]]] = {}
        self._lives = itertools.count(1)
        self.configured = [link(*each) for each in links]
        """The links of the configuration."""
        for name in sorted({end for each in self.configured for end in each} | set(clusters or ())):
            self.seats[name] = Seat((clusters or {}).get(name, ()))
        for name in self.seats:
            self.start(name)
        for each in self.configured:
            self.connect(*each)

    def start(self, name: str) -> None:
        """Starts a broker, with the records of its store."""
        self._last_event = self.now
        seat = self.seats[name]
        seat.known_heartbeats.clear()
        seat.incarnation += 1
        seat.timers = {}
        seat.unwritten, seat.is_writing = [], False
        neighbours = {end for each in self.configured if name in each for end in each if end != name}
        here = tuple(sorted(each for each in neighbours if not self.seats[each].has_left))
        seat.broker = Broker(self.router(name), name, seat.incarnation, self.settings, expected_neighbours=here)
        seat.failing_commit = None
        if seat.store:
            self._perform(name, seat.broker.handle(Restored(dict(seat.store)), self.now + seat.clock))
        self._perform(name, seat.broker.start(self.now + seat.clock))

    def join(self, name: str, neighbours: Iterable[str], clusters: tuple[str, ...]) -> None:
        """Adds a broker and its links to the overlay."""
        links = [link(name, each) for each in neighbours]
        self.configured += links
        self.seats[name] = Seat(clusters)
        self.start(name)
        for each in links:
            self.connect(*each)

    def router(self, name: str) -> Router:
        seat = self.seats[name]
        return create(self.protocol, name, seat.incarnation, self.matcher, seat.clusters, options=self.options)

    def crash(self, name: str) -> None:
        """Ends a broker without a message. Its neighbours notice its silence after two seconds."""
        seat = self.seats[name]
        victim, seat.broker = seat.broker, None
        if not self.settings.is_durable:
            seat.store = {}
            assert victim is not None
            self._note_lost(victim)
        for each in [each for each in self.links if name in each]:
            del self.links[each]
            other = each[0] if each[1] == name else each[1]
            self._later(2 * SECOND, lambda other=other, each=each: self._notice(other, name, each))  # type: ignore[misc]

    def _note_lost(self, victim: Broker) -> None:
        """Records the publications that are lost with a crashed broker in memory mode."""
        others = [seat.broker for seat in self.seats.values() if seat.broker is not None]
        self.lost_for.update(
            (id, home) for id in self.accepted for home in self.seats if is_lost_for(home, id, victim, others)
        )

    def _notice(self, broker: str, lost: str, over: Link) -> None:
        if over not in self.links:
            self.input(broker, PeerLost(lost))

    def connect(self, first: str, second: str) -> None:
        each = link(first, second)
        one, other = self.seats[first].broker, self.seats[second].broker
        if each in self.links or one is None or other is None or self.muted & {(first, second), (second, first)}:
            return
        self.links[each] = next(self._lives)
        greetings = one.router.greeting(), other.router.greeting()
        self.input(first, PeerUp(second, greetings[1]))
        self.input(second, PeerUp(first, greetings[0]))

    def cut(self, first: str, second: str) -> None:
        if self.links.pop(link(first, second), None) is not None:
            self.input(first, PeerLost(second, self.seats[second].has_left))
            self.input(second, PeerLost(first, self.seats[first].has_left))

    def _reset(self, name: str, peer: str) -> None:
        """Does what a driver does about a silent neighbour: closes the link, waits, and dials again."""
        if link(name, peer) in self.links:
            self.flaps.append((link(name, peer), self.now, self.now + SECOND))
            self.cut(name, peer)
            self._later(SECOND, lambda: self.connect(name, peer))

    def leave(self, name: str) -> None:
        self.seats[name].has_left = True
        self.input(name, LeaveRequested())

    def input(self, name: str, happened: Input) -> None:
        self._last_event = self.now
        seat = self.seats[name]
        seat.known_heartbeats.clear()
        if seat.broker is not None:
            self._perform(name, seat.broker.handle(happened, self.now + seat.clock))

    def _perform(self, name: str, effects: list[Effect]) -> None:
        seat = self.seats[name]
        for effect in effects:
            match effect:
                case Send():
                    self._send(name, effect)
                case Deliver():
                    self._deliver(name, effect)
                case Accept():
                    self._accept(effect)
                case Refuse():
                    self.refused.append(effect)
                case SetTimer():
                    self._set_timer(name, effect)
                case Persist() | Forget():
                    seat.unwritten.append(effect)
                case Failed():
                    raise effect.error
                case Record():
                    self.records.append((name, effect))
                case ResetLink():
                    self._reset(name, effect.peer)
                case OpenLink():
                    self._later(MILLISECOND, lambda peer=effect.peer: self.connect(name, peer))  # type: ignore[misc]
                case CloseLink():
                    self._later(MILLISECOND, lambda peer=effect.peer: self.cut(name, peer))  # type: ignore[misc]
        # The records of one input are in one transaction.
        self._write(name)

    def _accept(self, effect: Accept) -> None:
        if effect.publication is None:
            self.confirmed_as[effect.client, str(effect.reference)] = next(self._moments)
        else:
            published, self.accepted[effect.publication] = self._publishing[int(effect.reference)]
            self.published_at[effect.publication] = published
            self.accepted_as[effect.publication] = next(self._moments)

    def moment(self) -> int:
        """The next number in the order of all acceptances, confirmations and withdrawals."""
        return next(self._moments)

    def _write(self, name: str) -> None:
        """Writes all changes since the last commit in one transaction, and reports it later.

        A crash may happen before the commit, between commit and report, or after both.
        """
        seat = self.seats[name]
        if seat.is_writing or not seat.unwritten:
            return
        seat.is_writing = True
        broker = seat.broker
        batch, seat.unwritten = seat.unwritten, []

        def commit() -> None:
            if seat.broker is not broker:
                return
            if seat.failing_commit is not FailingCommit.LOST:
                for change in batch:
                    if isinstance(change, Persist):
                        seat.store[change.key] = change.record
                    else:
                        seat.store.pop(change.key, None)
            if seat.failing_commit is not None:
                self.stop_broker(name)
            else:
                self._later(self.random.randrange(MILLISECOND // 10), report)

        def report() -> None:
            if seat.broker is broker:
                seat.is_writing = False
                for key in dict.fromkeys(change.key for change in batch if isinstance(change, Persist)):
                    self.input(name, Persisted(key))
                self._write(name)

        if broker is None:
            # During the start. No input can come in between.
            seat.is_writing = False
            seat.unwritten = batch
            return
        self._later(self.random.randrange(1, MILLISECOND // 2), commit)

    def _deliver(self, name: str, effect: Deliver) -> None:
        self.delivered[effect.publication, effect.client] += 1
        self.delivered_in_life[effect.publication, effect.client, name, self.seats[name].incarnation] += 1
        self.got[effect.publication, effect.client] = effect.subscriptions
        if self.settings.is_durable:
            self._later_for(name, MILLISECOND, DeliveryAcknowledged(effect.client, effect.number))

    def _set_timer(self, name: str, effect: SetTimer) -> None:
        seat = self.seats[name]
        seat.timers[effect.name] = effect.at
        broker = seat.broker
        if effect.name == TICK and broker is not None:
            heapq.heappush(self._ticks, (max(effect.at - seat.clock, self.now), next(self._order), name, broker))
            return

        def fire() -> None:
            if seat.broker is broker and seat.timers.get(effect.name) == effect.at:
                del seat.timers[effect.name]
                self.input(name, TimerFired(effect.name))

        self._later(max(0, effect.at - seat.clock - self.now), fire)

    def _send(self, name: str, effect: Send) -> None:
        each = link(name, effect.peer)
        life = self.links.get(each)
        self.sent[type(effect.message).__name__] += 1
        if isinstance(effect.message, Publish):
            self.hops.append((name, effect.peer, effect.message))
        direction = (name, effect.peer)
        if life is None or direction in self.muted:
            return
        if isinstance(effect.message, Heartbeat):
            self._send_heartbeat(direction, effect.message)
            return
        if self.random.random() < self.loss or self.is_lost(effect.message):
            return
        frame = encode(effect.message, effect.sequence)
        # A link keeps the order of its frames.
        delay = self.random.randrange(1, 5) * MILLISECOND
        if each in self.slow:
            delay += self.random.randrange(self.slow[each])
        at = max(self._busy_until.get(direction, 0), self.now + delay)
        self._busy_until[direction] = at

        def arrive() -> None:
            if self.links.get(each) == life:
                message, sequence = decode(frame, self._limits)
                self.input(effect.peer, FrameReceived(name, message, sequence))

        self._later(at - self.now, arrive)

    def _send_heartbeat(self, direction: tuple[str, str], heartbeat: Heartbeat) -> None:
        is_lost, delay = self._heartbeat_fate(direction, self.now)
        if is_lost or self.is_lost(heartbeat):
            return
        sender, receiver = direction
        each = link(*direction)
        life = self.links[each]
        frame = _heartbeat_frame(heartbeat)
        at = max(self._busy_until.get(direction, 0), self.now + delay + self.slow.get(each, 0))
        self._busy_until[direction] = at

        def arrive() -> None:
            if self.links.get(each) == life:
                self._receive_heartbeat(self.seats[receiver], receiver, sender, _heartbeat_of(frame))

        self._later(at - self.now, arrive)

    def _receive_heartbeat(self, seat: Seat, receiver: str, sender: str, heartbeat: Heartbeat) -> None:
        if seat.broker is None:
            return
        now = self.now + seat.clock
        if seat.known_heartbeats.get(sender) == heartbeat:
            seat.broker.links.mark_alive(sender, now)
            return
        effects = seat.broker.handle(FrameReceived(sender, heartbeat), now)
        if effects:
            self._last_event = self.now
            seat.known_heartbeats.clear()
            self._perform(receiver, effects)
        else:
            seat.known_heartbeats[sender] = heartbeat

    def _heartbeat_fate(self, direction: tuple[str, str], at: int) -> tuple[bool, int]:
        """Whether a heartbeat is lost, and its delay. No generator: skipped heartbeats would change what follows."""
        number = self._directions.get(direction)
        if number is None:
            number = self._directions[direction] = zlib.crc32(f"{self._seed} {direction}".encode())
        mixed = (at ^ (number << 20)) * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF
        mixed = (mixed ^ (mixed >> 29)) * 0xBF58476D1CE4E5B9 & 0xFFFFFFFFFFFFFFFF
        return (mixed >> 32) < self.loss * 2**32, (1 + (mixed >> 5) % 4) * MILLISECOND

    def _later_for(self, name: str, delay: int, happened: Input) -> None:
        broker = self.seats[name].broker
        self._later(delay, lambda: self.input(name, happened) if self.seats[name].broker is broker else None)

    def _later(self, delay: int, action: Callable[[], None]) -> None:
        heapq.heappush(self._agenda, (self.now + delay, next(self._order), action))

    def run(self, duration: int) -> None:
        end = self.now + duration
        agenda, ticks = self._agenda, self._ticks
        while True:
            next_time = min(agenda[0][0] if agenda else FOREVER, ticks[0][0] if ticks else FOREVER)
            if next_time > end:
                break
            if not ticks or (agenda and agenda[0][:2] < ticks[0][:2]):
                self.now, _, action = heapq.heappop(agenda)
                action()
            elif not (self.skips_idle_ticks and self._skip_ticks(end)):
                self._tick()
        self.now = end

    def _tick(self) -> None:
        """Runs the next tick."""
        self.now, _, name, broker = heapq.heappop(self._ticks)
        seat = self.seats[name]
        if seat.broker is not broker:
            return
        was_recovering = broker.is_recovering
        effects = broker.handle(TimerFired(TICK), self.now + seat.clock)
        if broker.is_recovering != was_recovering or not _has_only_heartbeats(effects):
            self._last_event = self.now
            seat.known_heartbeats.clear()
        self._perform(name, effects)

    def _skip_ticks(self, end: int) -> bool:
        """Skips the ticks of all brokers until something else may happen. Returns False if there is none to skip."""
        period = self.settings.tick
        first = self._ticks[0][0]
        slowest = HEARTBEAT_DELAY_MAX + max(self.slow.values(), default=0)
        is_quiet = first >= max(self._last_event + period + slowest, self._try_skip_at)
        if not is_quiet or self.is_lost is not nothing_is_lost:
            return False
        # The heartbeats of skipped ticks arrive before anything else happens.
        last = min(self._agenda[0][0] - 1 if self._agenda else end, end) - slowest
        if first > last:
            return False
        ticks = sorted(each for each in self._ticks if self.seats[each[2]].broker is each[3])
        for at, _, _, broker in ticks:
            idle = broker.idle_ticks(at + self.seats[broker.me].clock)
            last = min(last, at + idle * period - 1 - slowest)
            if first > last:
                self._try_skip_at = first + period
                return False
        next_ticks = {name: at for at, _, name, _ in ticks}
        pairs = [(peer, broker) for _, _, _, broker in ticks for peer in broker.links.peers()]
        for peer, broker in pairs:
            if self.loss and peer in next_ticks and not self._is_known(peer, broker.me):
                # A heartbeat that was lost might have shown that the neighbours differ.
                return False
            last = self._hear(peer, broker, next_ticks.get(peer), last)[1]
        if first > last:
            return False
        self._ticks.clear()
        skipped: list[tuple[int, int, int, str, Broker]] = []
        for at, order, name, broker in ticks:
            count = (last - at) // period + 1 if at <= last else 0
            if count:
                broker.skip_ticks(count, at + (count - 1) * period + self.seats[name].clock)
                self.sent["Heartbeat"] += count * len(broker.links.peers())
                skipped.append((at + count * period, -at, order, name, broker))
            else:
                self._ticks.append((at, order, name, broker))
        for at, _, _, name, broker in sorted(skipped, key=lambda each: each[:3]):
            # Ticks at the same time keep their order.
            self.seats[name].timers[TICK] = at + self.seats[name].clock
            self._ticks.append((at, next(self._order), name, broker))
        heapq.heapify(self._ticks)
        for peer, broker in pairs:
            heard, _ = self._hear(peer, broker, next_ticks.get(peer), last)
            broker.links.mark_alive(peer, heard + self.seats[broker.me].clock)
        return True

    def _hear(self, peer: str, broker: Broker, next_tick: int | None, last: int) -> tuple[int, int]:
        """When the broker last heard of the neighbour, if ticks until `last` only send heartbeats, and the last time at
        which this is so: a silence may become too long. `next_tick`: the neighbour's next heartbeat, if it is up."""
        each, direction = link(peer, broker.me), (peer, broker.me)
        heard = self._last_heard(peer, broker)
        # Heartbeats of skipped ticks arrive before the broker resets the link.
        patience = self.settings.dead_after - HEARTBEAT_DELAY_MAX - max(self.slow.values(), default=0)
        if next_tick is None or each not in self.links or direction in self.muted:
            return heard, min(last, heard + patience)
        period = self.settings.tick
        if not self.loss:
            # Only the last heartbeat matters.
            next_tick += max(0, last - next_tick) // period * period
        for at in range(next_tick, last + 1, period):
            is_lost, delay = self._heartbeat_fate(direction, at)
            delay += self.slow.get(each, 0)
            if not is_lost:
                if self.loss and at + delay > heard + patience:
                    return heard, min(heard + patience, at - 1)
                heard = at + delay
        return heard, min(last, heard + patience)

    def _is_known(self, peer: str, name: str) -> bool:
        """Whether the neighbour's present heartbeat had no effect since the broker last changed."""
        return self.seats[name].known_heartbeats.get(peer) == self.broker(peer).router.greeting()

    def _last_heard(self, peer: str, broker: Broker) -> int:
        return broker.links.last_received(peer) - self.seats[broker.me].clock

    def settle(self) -> None:
        """Runs long enough for all retransmissions."""
        self.run(20 * SECOND)

    def broker(self, name: str) -> Broker:
        broker = self.seats[name].broker
        assert broker is not None, f"{name} is down"
        return broker

    def connect_client(self, broker: str, client: str) -> None:
        self.input(broker, ClientConnected(client))

    def subscribe(self, broker: str, client: str, name: str, expression: str | Expression) -> None:
        self.input(broker, Subscribed(client, name, expression))

    def unsubscribe(self, broker: str, client: str, name: str) -> None:
        self.input(broker, Unsubscribed(client, name))

    def advertise(self, broker: str, client: str, name: str, expression: str | Expression) -> None:
        self.input(broker, Advertised(client, name, expression))

    def unadvertise(self, broker: str, client: str, name: str) -> None:
        self.input(broker, Unadvertised(client, name))

    def narrow_rights(
        self, broker: str, client: str, subscriptions: Iterable[str], advertisements: Iterable[str]
    ) -> None:
        self.input(broker, RightsNarrowed(client, tuple(subscriptions), tuple(advertisements), frozenset()))

    def client_leaves(self, broker: str, client: str) -> None:
        self.input(broker, ClientLeft(client))

    def publish(self, broker: str, client: str, attributes: dict[str, Value], once: str = "") -> PublicationId | None:
        """Returns the id, or None if the broker refused the publication or has not committed it yet."""
        reference = next(self._references)
        self._publishing[reference] = (self.now, attributes)
        before = set(self.accepted)
        self.input(broker, Published(client, reference, msgpack.packb(attributes), b"body", once=once))
        return next((each for each in self.accepted if each not in before), None)
