"""Random overlays with random clients, churn and faults, and an oracle that knows the owed deliveries.

A scenario depends on its seed and its steps only, so that a failure can be replayed. Each step draws its choices from a
generator of its own, so a schedule with fewer steps does the same in those that are left.

The oracle's rule: an accepted publication is owed to each client with a matching subscription that was confirmed before
and is not withdrawn. It is delivered exactly once, or a counted drop names it. In memory mode it may also be lost with
a crashed broker that alone knew it. The rule allows no delay: it holds from the first moment after a subscription or a
fault.

Each scenario ends with a check of liveness. After all faults are repaired, a probe from each broker arrives at each
broker. Then no publication, frame or change is left in a queue or store.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from functools import cache

import topologies
from broker.core.effects import DroppedRow
from broker.core.settings import MILLISECOND, SECOND, Settings
from experiments.simulate.drop_reasons import TERMINAL_DROPS
from experiments.torture.overlay_shapes import SHAPES, overlay_of
from experiments.torture.schedule import BASIC_FAULTS, DURABLE_FAULTS, FAULTS, STEPS, Step, steps_of, text_of
from experiments.torture.world import FailingCommit, Link, World, link
from matching.expressions.intersection import intersects
from matching.expressions.model import TRUE, Expression
from matching.expressions.values import Value
from matching.languages.sql import parse
from routing.messages import PublicationId

FOREVER = 2**62
SETTLED = 20 * SECOND
"""After this time without a change, all brokers that must know of an entry do."""
REACH = 70 * SECOND
"""The longest time that a publication is in the overlay while no broker restarts."""
MOST_UNREST = 300 * SECOND
"""The longest time after `heal` until all queues are empty."""

EXPRESSIONS = (
    "a < 3",
    "a >= 3",
    "a = 2 AND b > 1",
    "b IN (1, 2)",
    "s STARTS WITH 'x'",
    "a < 2 OR b = 3",
    "NOT (a = 1)",
    "EXISTS s",
    "a = 1 XOR b = 1",
    "TRUE",
)
ADVERTISEMENTS = ("TRUE", "a < 4", "a >= 2", "b < 3 AND a < 4", "s = 'x'", "EXISTS s")
PROBES = "EXISTS probe"


CLOCK_OFFSETS = (0, SECOND, 4 * SECOND, 8 * SECOND)
"""How far a broker's clock may be ahead."""


class ScheduleFailedError(AssertionError):
    """A scenario broke a promise: a delivery is missing, repeated or not owed, or the overlay does not come to rest."""


def require(condition: object, message: str) -> None:
    if not condition:
        raise ScheduleFailedError(message)


@cache
def parsed(text: str) -> Expression:
    """The expression of a text. Schedules have few texts."""
    return parse(text)


@dataclass(slots=True)
class Entry:
    """A subscription or advertisement of a client."""

    broker: str
    client: str
    name: str
    expression: Expression
    added: int
    removed: int = FOREVER
    removed_as: int | None = None
    """The moment of its withdrawal, see `World.moment`."""

    @property
    def is_live(self) -> bool:
        return self.removed == FOREVER


@dataclass(frozen=True, slots=True)
class Sent:
    """An accepted publication, with the time at which it was published."""

    id: PublicationId
    attributes: dict[str, Value]
    at: int


@dataclass(slots=True)
class Scenario:
    """One random run, with its kind in the fields and its result in `pairs`."""

    seed: int
    protocol: str
    matcher: str = "auto"
    is_durable: bool = False
    is_open: bool = True
    loss: float = 0.0
    has_faults: bool = False
    reorganises: bool = False
    options: dict[str, object] = field(default_factory=dict)
    """Options of the router. Each is switched on."""
    faults: tuple[str, ...] = BASIC_FAULTS
    """The kinds of faults, if there are any."""
    steps: tuple[Step, ...] | None = None
    """The schedule; None: the one of the seed."""
    skips_idle_ticks: bool = True
    random: random.Random = field(init=False)
    world: World = field(init=False)
    shape: str = field(init=False)
    overlay: topologies.Overlay = field(init=False)
    subscriptions: list[Entry] = field(default_factory=list)
    advertisements: list[Entry] = field(default_factory=list)
    outages: list[tuple[str, int, int]] = field(default_factory=list)
    """Brokers that were down, with start and end."""
    departed: dict[str, int] = field(default_factory=dict)
    links: list[Link] = field(default_factory=list)
    """The links of the overlay, up or down."""
    pairs: Counter[str] = field(default_factory=Counter)
    """The number of expected pairs of publication and client by result. Set by `check`."""
    _names: int = 0

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.shape = self.random.choice(SHAPES)
        self.overlay = overlay_of(self.shape, self.random)
        cycle = 5 * SECOND if self.reorganises else 0
        self.links = [link(each.a, each.b) for each in self.overlay.links]
        settings = Settings(
            is_durable=self.is_durable,
            is_open=self.is_open,
            reorganise_every=cycle,
            most_links=3,
            # An allowance where clocks agree would hide brokers that compare times wrongly.
            clock_skew=max(CLOCK_OFFSETS) if any(step.kind == "clock" for step in self.schedule) else 0,
        )
        self.world = World(
            self.protocol,
            self.links,
            clusters={broker.id: broker.clusters for broker in self.overlay.brokers},
            matcher=self.matcher,
            seed=self.seed,
            settings=settings,
            loss=self.loss,
            options=self.options,
            skips_idle_ticks=self.skips_idle_ticks,
        )
        self.world.stop_broker = self._crash
        self.world.run(self.random.choice((0, MILLISECOND, SECOND)))

    def command(self) -> str:
        """The command that replays the scenario."""
        words = [f"mercast torture --seed {self.seed} --protocol {self.protocol}"]
        words += [f"--mode {'durable' if self.is_durable else 'memory'}"]
        words += [f"--matcher {self.matcher}"] * (self.matcher != "auto")
        words += ["--open" if self.is_open else "--strict", f"--loss {self.loss:g}", *self._fault_words()]
        words += ["--reorganise" if self.reorganises else "--no-reorganise"]
        words += [f"--option {option}" for option in self.options or ("none",)]
        words += [f"--steps '{text_of(self.steps)}'"] if self.steps is not None else []
        return " ".join(words)

    def _fault_words(self) -> list[str]:
        if not self.has_faults:
            return ["--no-faults"]
        return ["--faults"] if self.faults == FAULTS else [f"--fault {kind}" for kind in self.faults]

    @property
    def schedule(self) -> tuple[Step, ...]:
        """The steps that `run` executes."""
        if self.steps is not None:
            return self.steps
        kinds = [kind for kind in self.faults if self.is_durable or kind not in DURABLE_FAULTS]
        return steps_of(self.seed, kinds if self.has_faults else (), is_open=self.is_open)

    def run(self) -> None:
        """Executes the schedule, repairs all faults, and checks the result."""
        actions = {kind: getattr(self, kind.replace("-", "_")) for kind in STEPS}
        for step in self.schedule:
            self.random = random.Random(step.draw)
            actions[step.kind]()
        self.finish()

    def finish(self) -> None:
        """Repairs all faults, waits until all queues are empty, and checks the result."""
        self.heal()
        self.world.loss = 0.0
        self.settle_all()
        self.check()
        self.check_liveness()

    @property
    def sent(self) -> list[Sent]:
        """The accepted publications."""
        world = self.world
        return [Sent(id, attributes, world.published_at[id]) for id, attributes in world.accepted.items()]

    def brokers(self) -> list[str]:
        """The brokers that are up and have not left."""
        return [
            name for name, seat in self.world.seats.items() if seat.broker is not None and name not in self.departed
        ]

    def pause(self) -> None:
        short = (0, 0, MILLISECOND, 3 * MILLISECOND, 30 * MILLISECOND)
        self.world.run(self.random.choice((*short, 300 * MILLISECOND, 2 * SECOND, 6 * SECOND, SETTLED, 40 * SECOND)))

    def churn(self, steps: int) -> None:
        actions = (
            *(self.subscribe,) * 4,
            *(self.publish,) * 9,
            self.withdraw,
            *(self.advertise,) * (1 if self.is_open else 3),
        )
        for _ in range(steps):
            self.random.choice(actions)()
            self.pause()

    def subscribe(self) -> None:
        broker, client = self._someone()
        self._subscribe(broker, client, self.random.choice(EXPRESSIONS))

    def _subscribe(self, broker: str, client: str, text: str) -> None:
        self._names += 1
        expression = parsed(text)
        self.subscriptions.append(Entry(broker, client, f"n{self._names}", expression, self.world.now))
        self.world.subscribe(broker, client, f"n{self._names}", expression)

    def advertise(self) -> None:
        broker, client = self._someone()
        self._advertise(broker, client, self.random.choice(ADVERTISEMENTS))

    def _advertise(self, broker: str, client: str, text: str) -> None:
        self._names += 1
        expression = parsed(text)
        self.advertisements.append(Entry(broker, client, f"n{self._names}", expression, self.world.now))
        self.world.advertise(broker, client, f"n{self._names}", expression)

    def _someone(self) -> tuple[str, str]:
        broker = self.random.choice(self.brokers())
        return broker, f"{broker}-{self.random.choice('xyz')}"

    def withdraw(self) -> None:
        up = self.brokers()
        live = [each for each in (*self.subscriptions, *self.advertisements) if each.is_live and each.broker in up]
        if not live:
            return
        entry = self.random.choice(live)
        if self.random.random() < 0.2:
            gone = [each for each in live if (each.broker, each.client) == (entry.broker, entry.client)]
            self._end(gone)
            self.world.client_leaves(entry.broker, entry.client)
        else:
            self._end([entry])
            is_subscription = entry in self.subscriptions
            (self.world.unsubscribe if is_subscription else self.world.unadvertise)(
                entry.broker, entry.client, entry.name
            )

    def _end(self, entries: list[Entry]) -> None:
        for each in entries:
            each.removed, each.removed_as = self.world.now, self.world.moment()

    def publish(self) -> None:
        broker, client = self._someone()
        if not self.is_open and self.random.random() < 0.8:
            # A publication that is not advertised is refused. A few of them are enough.
            live = [each for each in self.advertisements if each.is_live and each.broker in self.brokers()]
            if live:
                chosen = self.random.choice(live)
                broker, client = chosen.broker, chosen.client
            else:
                self._advertise(broker, client, "TRUE")
        attributes: dict[str, Value] = {}
        if self.random.random() < 0.9:
            attributes["a"] = self.random.randrange(5)
        if self.random.random() < 0.7:
            attributes["b"] = self.random.randrange(4)
        if self.random.random() < 0.3:
            attributes["s"] = self.random.choice(("x", "xy", "z"))
        self.world.publish(broker, client, attributes)
        if self.is_durable:
            self.world.run(self.random.choice((0, MILLISECOND // 3, 2 * MILLISECOND)))

    def fault(self) -> None:
        faults = (self.cut, self.cut, self.repair, self.repair, self.crash, self.crash, self.restart, self.bounce)
        self.random.choice(faults)()

    def cut(self) -> None:
        if self.world.links:
            self.world.cut(*self.random.choice(sorted(self.world.links)))

    def repair(self) -> None:
        """Repairs about half of the links that are down, half-open or slow."""
        for each in self.links:
            if self.random.random() < 0.5:
                self._repair(each)

    def _repair(self, chosen: Link) -> None:
        first, second = chosen
        self.world.muted -= {(first, second), (second, first)}
        self.world.slow.pop(chosen, None)
        if not set(chosen) & set(self.departed):
            self.world.connect(*chosen)

    def partition(self) -> None:
        """Cuts all links between some brokers and the others."""
        apart = {name for name in self.world.seats if self.random.random() < 0.5}
        for each in [each for each in self.world.links if len(apart & set(each)) == 1]:
            self.world.cut(*each)

    def half_open(self) -> None:
        """Mutes one direction of a link. Its receiver notices the silence and resets the link, which stays down."""
        if self.world.links:
            first, second = self.random.choice(sorted(self.world.links))
            self.world.muted.add(self.random.choice(((first, second), (second, first))))

    def slow(self) -> None:
        """Delays the frames of a link, so that frames of other links overtake them."""
        if self.world.links:
            delay = self.random.choice((20 * MILLISECOND, 200 * MILLISECOND, 700 * MILLISECOND))
            self.world.slow[self.random.choice(sorted(self.world.links))] = delay

    def crash(self) -> None:
        up = self.brokers()
        if len(up) >= 3:
            self._crash(self.random.choice(up))

    def _crash(self, name: str) -> None:
        self.world.crash(name)
        self.outages.append((name, self.world.now, FOREVER))
        mine = [entry for entry in (*self.subscriptions, *self.advertisements) if entry.broker == name]
        if not self.is_durable:
            self._end([entry for entry in mine if entry.is_live])
            return
        for entry in mine:
            kind = "subscription" if entry in self.subscriptions else "advertisement"
            if (kind, entry.client, entry.name) in self.world.seats[name].store:
                # Its withdrawal was not committed.
                entry.removed, entry.removed_as = FOREVER, None

    def failed_commit(self) -> None:
        """Lets the next commit of a broker fail. The broker stops then."""
        up = self.brokers()
        if len(up) >= 3:
            seat = self.world.seats[self.random.choice(up)]
            seat.failing_commit = self.random.choice((FailingCommit.LOST, FailingCommit.WRITTEN))

    def clock(self) -> None:
        """Restarts a broker whose clock is set meanwhile, ahead or back."""
        up = self.brokers()
        if len(up) >= 3:
            name = self.random.choice(up)
            self._crash(name)
            self.world.run(self.random.choice((MILLISECOND, SECOND, 4 * SECOND)))
            self.world.seats[name].clock = self.random.choice(CLOCK_OFFSETS)
            self._restart(name)

    def restart(self) -> None:
        down = self._down()
        if down:
            self._restart(self.random.choice(down))

    def _down(self) -> list[str]:
        return [name for name, seat in self.world.seats.items() if seat.broker is None and name not in self.departed]

    def _restart(self, name: str) -> None:
        """Restarts a broker. Its clients reconnect; in memory mode they enter most of their entries again."""
        crashed = max(start for each, start, _ in self.outages if each == name)
        self.world.start(name)
        self.outages = [
            (each, start, min(end, self.world.now) if each == name else end) for each, start, end in self.outages
        ]
        for client in dict.fromkeys(each.client for each in self.subscriptions if each.broker == name):
            self.world.connect_client(name, client)
        if not self.is_durable:
            for entries, enter in ((self.subscriptions, self._subscribe), (self.advertisements, self._advertise)):
                for entry in list(entries):
                    if entry.broker == name and entry.removed == crashed and self.random.random() < 0.7:
                        enter(name, entry.client, str(entry.expression))
        for each in self.links:
            if name in each and self.random.random() < 0.8:
                self._repair(each)

    def bounce(self) -> None:
        """Crashes and restarts a broker once or twice, the second time during its recovery."""
        up = self.brokers()
        if len(up) < 3:
            return
        name = self.random.choice(up)
        for _ in range(self.random.choice((1, 2))):
            self._crash(name)
            self.world.run(self.random.choice((MILLISECOND, SECOND, 4 * SECOND)))
            self._restart(name)
            self.world.run(self.random.choice((MILLISECOND, 10 * MILLISECOND, 500 * MILLISECOND)))

    def join(self) -> None:
        """Adds a broker with one or two links, in a cluster of its first neighbour."""
        up = self.brokers()
        chosen = self.random.choice(up)
        clusters = self.world.seats[chosen].clusters
        cluster = (self.random.choice(clusters),) if clusters else ()
        others = [name for name in up if name != chosen and set(cluster) <= set(self.world.seats[name].clusters)]
        neighbours = [chosen, *self.random.sample(others, min(len(others), self.random.randrange(2)))]
        name = f"joined{len(self.world.seats)}"
        self.links += [link(name, each) for each in neighbours]
        self.world.join(name, neighbours, cluster)

    def leave(self) -> None:
        """Takes a broker out of the overlay in good order: all links are up, it has passed everything on, and the
        others stay connected."""
        is_whole = not self._down() and all(
            set(each) & set(self.departed) or self._is_whole(each) for each in self.links
        )
        up = [name for name in self.brokers() if self._is_dispensable(name)]
        if is_whole and up:
            self._leave(self.random.choice(up))

    def _is_whole(self, each: Link) -> bool:
        return each in self.world.links and not self.world.muted & {each, each[::-1]}

    def _is_dispensable(self, name: str) -> bool:
        """Whether the broker has nothing to do, and its clusters and the overlay are connected without it."""
        broker, seats = self.world.broker(name), self.world.seats
        if broker.in_custody or broker.unsettled or broker.postponed or broker.is_recovering or broker.retained:
            return False
        rest = [other for other in self.brokers() if other != name]
        groups = [rest, *([other for other in rest if each in seats[other].clusters] for each in seats[name].clusters)]
        return len(rest) >= 2 and len(seats[name].clusters) <= 1 and all(self._is_connected(group) for group in groups)

    def _is_connected(self, brokers: list[str]) -> bool:
        reached, ahead = set(brokers[:1]), brokers[:1]
        while ahead:
            name = ahead.pop()
            for each in self.links:
                if name in each:
                    other = each[0] if each[1] == name else each[1]
                    if other in brokers and other not in reached:
                        reached.add(other)
                        ahead.append(other)
        return len(reached) == len(brokers)

    def narrow(self) -> None:
        """Narrows the rights of a client: the broker withdraws some of its confirmed entries."""
        up = self.brokers()
        confirmed = self.world.confirmed_as
        live = [
            each
            for each in (*self.subscriptions, *self.advertisements)
            if each.is_live and each.broker in up and (each.client, each.name) in confirmed
        ]
        if not live:
            return
        chosen = self.random.choice(live)
        lost = [
            each for each in live if each.client == chosen.client and (each is chosen or self.random.random() < 0.5)
        ]
        lost = [each for each in lost if each.broker == chosen.broker]
        self._end(lost)
        self.world.narrow_rights(
            chosen.broker,
            chosen.client,
            [each.name for each in lost if each in self.subscriptions],
            [each.name for each in lost if each in self.advertisements],
        )

    def move(self) -> None:
        """Moves a client to another broker. It enters its subscriptions there."""
        up = self.brokers()
        live = [each for each in self.subscriptions if each.is_live and each.broker in up]
        others = [name for name in up if live and name != live[0].broker]
        if not others:
            return
        chosen = self.random.choice(live)
        target = self.random.choice([name for name in up if name != chosen.broker])
        mine = [
            each
            for each in (*self.subscriptions, *self.advertisements)
            if each.is_live and (each.broker, each.client) == (chosen.broker, chosen.client)
        ]
        self._end(mine)
        self.world.client_leaves(chosen.broker, chosen.client)
        for each in mine:
            if each in self.subscriptions:
                self._subscribe(target, chosen.client, str(each.expression))

    def _leave(self, name: str) -> None:
        self._end(
            [each for each in (*self.subscriptions, *self.advertisements) if each.broker == name and each.is_live]
        )
        self.world.leave(name)
        self.world.run(2 * SECOND)
        self.departed[name] = self.world.now
        for each in [each for each in self.world.links if name in each]:
            self.world.cut(*each)

    def heal(self) -> None:
        """Restarts all brokers that are down, and connects all links."""
        for name, seat in self.world.seats.items():
            if name not in self.departed:
                seat.failing_commit = None
        for name in self._down():
            self._restart(name)
        for each in self.links:
            self._repair(each)

    def settle_all(self) -> None:
        """Runs until `unrest` finds nothing. Fails after MOST_UNREST."""
        start = self.world.now
        while (unrest := self.unrest()) and self.world.now < start + MOST_UNREST:
            self.world.run(5 * SECOND)
        require(not unrest, f"{unrest} after {MOST_UNREST // SECOND} s\nreplay: {self.command()}")

    def unrest(self) -> list[str]:
        """The publications, deliveries, frames, changes of tables and records that brokers still have, as texts."""
        found: list[str] = []
        for name in self.brokers():
            broker, store = self.world.broker(name), self.world.seats[name].store
            pending = {
                "in custody": broker.in_custody,
                "unsettled": broker.unsettled,
                "postponed": broker.postponed,
                "retained": broker.retained,
                "frames": sum(waiting + in_flight for waiting, in_flight in broker.links.queues().values()),
                "changes": 0 if self.departed else broker.router.counts().unacknowledged_changes,
                "stored publications": sum(key[0] == "publication" for key in store),
                "stored deliveries": sum(key[0] == "arrival" and record != () for key, record in store.items()),
            }
            found += [f"{name}: {count} {what}" for what, count in pending.items() if count]
        return found

    def check(self) -> None:
        """Asserts that each expected pair was delivered once or has a reason, and that no other pair was delivered."""
        replay = f"replay: {self.command()}"
        twice = {pair: count for pair, count in self.world.delivered_in_life.items() if count > 1}
        require(not twice, f"delivered twice: {twice}\n{replay}")
        drops = self.dropped()
        if not (self.has_faults or self.loss or self.departed):
            require(not drops, f"dropped without a fault: {drops}\n{replay}")
        self.pairs.clear()
        for sent in self.sent:
            got = {client for id, client in self.world.delivered if id == sent.id}
            expected = self.expected(sent)
            self.pairs.update(self.classify(sent, client, drops) for client in expected)
            missed = {client for client in expected if self.classify(sent, client, drops) == "missed"}
            require(not missed, f"{sent} missed {missed}\n{replay}")
            strangers = got - self.allowed(sent)
            require(not strangers, f"{sent} reached {strangers}\n{replay}")

    def dropped(self) -> dict[PublicationId, str]:
        """Publications that a counted drop names, with its reason. Dropped frames are excluded: they are sent again."""
        rows = [record.row for _, record in self.world.records if isinstance(record.row, DroppedRow)]
        return {row.publication: row.reason for row in rows if row.publication and row.reason in TERMINAL_DROPS}

    def expected(self, sent: Sent) -> set[str]:
        """Clients with a matching subscription that was confirmed when the publication was accepted."""
        return {entry.client for entry in self._wanting(sent)}

    def _wanting(self, sent: Sent) -> list[Entry]:
        accepted = self.world.accepted_as[sent.id]
        return [
            entry
            for entry in self.subscriptions
            if self.world.confirmed_as.get((entry.client, entry.name), FOREVER) < accepted
            and (entry.removed_as is None or entry.removed_as > accepted)
            and entry.expression.matches(sent.attributes)
        ]

    def classify(self, sent: Sent, client: str, drops: dict[PublicationId, str]) -> str:
        if (sent.id, client) in self.world.delivered:
            return "delivered"
        homes = {entry.broker for entry in self._wanting(sent) if entry.client == client and entry.is_live}
        if not homes:
            return "withdrawn"
        if all((sent.id, home) in self.world.lost_for for home in homes):
            return "lost with a broker"
        return "dropped" if sent.id in drops else "missed"

    @property
    def is_weak(self) -> bool:
        """Whether less than half of the expected pairs are owed, so that the scenario tests little."""
        owed = self.pairs["delivered"] + self.pairs["missed"]
        return 2 * owed < self.pairs.total()

    def allowed(self, sent: Sent) -> set[str]:
        """Clients that may receive the publication: they had a matching subscription while it was in the overlay.

        Outages of brokers prolong that time. Lost frames prolong it too: an unsettled publication is sent again after
        at most a minute.
        """
        until = sent.at + (3 * REACH if self.loss else REACH)
        for _, start, end in sorted(self.outages, key=lambda outage: outage[1]):
            if sent.at <= start < until:
                until = max(until, end + REACH)
        return {
            entry.client
            for entry in self.subscriptions
            if entry.expression.matches(sent.attributes) and entry.removed + REACH > sent.at and entry.added < until
        }

    def check_liveness(self) -> None:
        """Asserts that a probe from each broker arrives at each broker without a drop, and that queues get empty."""
        names = self.brokers()
        for name in names:
            self._subscribe(name, f"{name}-probed", PROBES)
            if not self.is_open:
                self._advertise(name, f"{name}-prober", PROBES)
        self.world.run(SECOND)
        for name in names:
            self.world.publish(name, f"{name}-prober", {"probe": name})
            self.world.run(2 * MILLISECOND)
        probes = [sent for sent in self.sent if "probe" in sent.attributes]
        replay = f"replay: {self.command()}"
        require(len(probes) == len(names), f"probes were not accepted\n{replay}")
        self.settle_all()
        drops = self.dropped()
        for sent in probes:
            require(sent.id not in drops, f"probe {sent.id} was dropped: {drops.get(sent.id)}\n{replay}")
            reached = {client for id, client in self.world.delivered if id == sent.id}
            lacking = {f"{name}-probed" for name in names} - reached
            require(not lacking, f"probe {sent.id} did not reach {lacking}\n{replay}")
        self.check()

    def check_tables(self) -> None:
        """Asserts that each D-DBR broker has exactly the remote subscriptions that intersect its advertisements."""
        live = [entry for entry in self.subscriptions if entry.is_live]
        for name in self.brokers():
            own = [each.expression for each in self.advertisements if each.broker == name and each.is_live]
            own += [TRUE] if self.is_open else []
            wanted = [
                entry
                for entry in live
                if entry.broker != name and any(intersects(each, entry.expression) for each in own)
            ]
            counts = self.world.broker(name).router.counts()
            assert counts.remote_subscriptions == len(wanted), f"at {name}\nreplay: {self.command()}"
            assert counts.local_subscriptions == sum(entry.broker == name for entry in live)
