"""Random overlays with random clients, churn and faults, and an oracle that knows what is owed.

A scenario is made from a seed alone, so a failure is replayed by its seed. The oracle knows every subscription and
advertisement with the times at which they came and went, and which links and brokers were up when. From these it says
which deliveries must have happened, and which may have.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass, field

import msgpack

import topologies
from broker.settings import MILLISECOND, SECOND, Settings
from matching.intersection import intersects
from matching.language import parse
from matching.model import TRUE, Expression
from matching.values import Value
from routing.fbr import FBR
from routing.messages import PublicationId
from tests.broker.fake_wire import Link, World, link

FOREVER = 2**62
SETTLED = 20 * SECOND
"""After so long without a change, every broker that must know of an entry does."""
REACH = 70 * SECOND
"""By then, what is owed has arrived: repetitions included."""

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


@dataclass(slots=True)
class Entry:
    broker: str
    client: str
    name: str
    expression: Expression
    added: int
    removed: int = FOREVER


@dataclass(frozen=True, slots=True)
class Sent:
    id: PublicationId
    broker: str
    client: str
    attributes: dict[str, Value]
    at: int
    ways: dict[str, tuple[Link, ...]]
    """Filter-based routing alone: the links of the publication's tree from each broker that is in it to its home."""


@dataclass(slots=True)
class Scenario:
    seed: int
    protocol: str
    matcher: str = "auto"
    is_durable: bool = False
    is_open: bool = True
    loss: float = 0.0
    has_faults: bool = False
    reorganises: bool = False
    options: dict[str, object] = field(default_factory=dict)
    """The router's own; each is switched on."""
    random: random.Random = field(init=False)
    world: World = field(init=False)
    overlay: topologies.Overlay = field(init=False)
    subscriptions: list[Entry] = field(default_factory=list)
    advertisements: list[Entry] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)
    faults: list[int] = field(default_factory=list)
    """When links or brokers came or went."""
    outages: list[tuple[str, int, int]] = field(default_factory=list)
    """Brokers that were down, from and until."""
    cuts: list[tuple[Link, int, int]] = field(default_factory=list)
    departed: dict[str, int] = field(default_factory=dict)
    _names: int = 0

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.overlay = self._overlay()
        cycle = 5 * SECOND if self.reorganises else 0
        settings = Settings(is_durable=self.is_durable, is_open=self.is_open, reorganise_every=cycle, most_links=3)
        self.world = World(
            self.protocol,
            [(each.a, each.b) for each in self.overlay.links],
            clusters={broker.id: broker.clusters for broker in self.overlay.brokers},
            matcher=self.matcher,
            seed=self.seed,
            settings=settings,
            loss=self.loss,
            options=self.options,
        )
        self.world.run(SETTLED)

    def _overlay(self) -> topologies.Overlay:
        brokers = self.random.randrange(3, 9)
        seed = self.random.randrange(1000)
        model = self.random.choice(("line", "ring", "star", "tree", "random", "transit-stub"))
        if model == "transit-stub":
            overlay = topologies.generate(
                model,
                {"transit_domains": 1, "transit_nodes": 2, "stubs": 1, "stub_nodes": 2},
                seed=seed,
            )
            return topologies.cluster_by_domain(overlay)
        parameters: dict[str, object] = {"brokers": brokers}
        if model == "random":
            parameters["degree"] = 2.5 if brokers > 3 else 2.0
        overlay = topologies.generate(model, parameters, seed=seed)
        return topologies.cluster_by_size(overlay, self.random.randrange(2, max(3, brokers)))

    def command(self) -> str:
        options = {
            "--durable": self.is_durable,
            "--strict": not self.is_open,
            "--faults": self.has_faults,
            "--reorganise": self.reorganises,
        }
        chosen = " ".join(option for option, is_on in options.items() if is_on)
        return (
            f"python -m tests.broker.replay {self.seed} --protocol {self.protocol} --matcher {self.matcher} "
            f"--loss {self.loss} {chosen} {' '.join(f'--option {option}' for option in self.options)}"
        )

    def run(self) -> None:
        """Churn, with faults in between if there are to be any, then time for everything to arrive."""
        if self.has_faults:
            for _ in range(12):
                self.churn(3)
                self.fault()
                self.pause()
            self.heal()
            self.churn(4)
        else:
            self.churn(25)
        self.world.run(3 * REACH)
        self.check()

    def brokers(self) -> list[str]:
        """Those that are up and have not left."""
        return [
            name for name, seat in self.world.seats.items() if seat.broker is not None and name not in self.departed
        ]

    def pause(self) -> None:
        self.world.run(self.random.choice((0, MILLISECOND, 30 * MILLISECOND, 2 * SECOND, SETTLED, SETTLED)))

    def churn(self, steps: int) -> None:
        for _ in range(steps):
            self.random.choice(
                (
                    self.subscribe,
                    self.subscribe,
                    self.publish,
                    self.publish,
                    self.publish,
                    self.withdraw,
                    self.advertise,
                )
            )()
            self.pause()

    def subscribe(self) -> None:
        broker, client = self._someone()
        text = self.random.choice(EXPRESSIONS)
        self._names += 1
        self.world.subscribe(broker, client, f"n{self._names}", text)
        self.subscriptions.append(Entry(broker, client, f"n{self._names}", parse(text), self.world.now))

    def advertise(self) -> None:
        broker, client = self._someone()
        text = self.random.choice(ADVERTISEMENTS)
        self._names += 1
        self.world.advertise(broker, client, f"n{self._names}", text)
        self.advertisements.append(Entry(broker, client, f"n{self._names}", parse(text), self.world.now))

    def _someone(self) -> tuple[str, str]:
        broker = self.random.choice(self.brokers())
        return broker, f"{broker}-{self.random.choice('xyz')}"

    def withdraw(self) -> None:
        up = self.brokers()
        live = [
            each
            for each in (*self.subscriptions, *self.advertisements)
            if each.removed == FOREVER and each.broker in up
        ]
        if not live:
            return
        entry = self.random.choice(live)
        if self.random.random() < 0.2:
            self.world.client_leaves(entry.broker, entry.client)
            gone = [each for each in live if (each.broker, each.client) == (entry.broker, entry.client)]
        else:
            is_subscription = entry in self.subscriptions
            (self.world.unsubscribe if is_subscription else self.world.unadvertise)(
                entry.broker, entry.client, entry.name
            )
            gone = [entry]
        for each in gone:
            each.removed = self.world.now

    def publish(self) -> None:
        broker, client = self._someone()
        attributes: dict[str, Value] = {}
        if self.random.random() < 0.9:
            attributes["a"] = self.random.randrange(5)
        if self.random.random() < 0.7:
            attributes["b"] = self.random.randrange(4)
        if self.random.random() < 0.3:
            attributes["s"] = self.random.choice(("x", "xy", "z"))
        known = set(self.world.accepted)
        ways = self._ways(broker, client, attributes)
        self.world.publish(broker, client, attributes)
        at = self.world.now
        self.world.run(2 * MILLISECOND if self.is_durable else 0)
        new = [id for id in self.world.accepted if id not in known]
        self.sent += [Sent(id, broker, client, attributes, at, ways) for id in new]

    def _ways(self, home: str, client: str, attributes: dict[str, Value]) -> dict[str, tuple[Link, ...]]:
        publisher = self.world.broker(home).router
        if not isinstance(publisher, FBR):
            return {}
        tree = publisher.tree_of(client, msgpack.packb(attributes))
        if tree is None:
            return {}
        ways: dict[str, tuple[Link, ...]] = {}
        for name in self.brokers():
            way: list[Link] = []
            at = name
            while at != home and len(way) < len(self.world.seats):
                router = self.world.broker(at).router if self.world.seats[at].broker is not None else None
                parent = router.parent_in(tree) if isinstance(router, FBR) else None
                if parent is None:
                    break
                way.append(link(at, parent))
                at = parent
            if at == home:
                ways[name] = tuple(way)
        return ways

    def fault(self) -> None:
        self.random.choice((self.cut, self.cut, self.repair, self.repair, self.crash, self.restart))()
        self.faults.append(self.world.now)

    def cut(self) -> None:
        if self.world.links:
            chosen = self.random.choice(sorted(self.world.links))
            self.world.cut(*chosen)
            self.cuts.append((chosen, self.world.now, FOREVER))

    def repair(self) -> None:
        for each in self.overlay.links:
            if link(each.a, each.b) not in self.world.links and self.random.random() < 0.5:
                self._repair(link(each.a, each.b))

    def _repair(self, chosen: Link) -> None:
        if set(chosen) & set(self.departed):
            return
        self.world.connect(*chosen)
        if chosen in self.world.links:
            self.cuts = [
                (each, start, min(end, self.world.now) if each == chosen else end) for each, start, end in self.cuts
            ]

    def crash(self) -> None:
        up = self.brokers()
        if len(up) < 3:
            return
        name = self.random.choice(up)
        lost = [each for each in self.world.links if name in each]
        self.world.crash(name)
        self.outages.append((name, self.world.now, FOREVER))
        self.cuts += [(each, self.world.now, FOREVER) for each in lost]
        if not self.is_durable:
            for entry in (*self.subscriptions, *self.advertisements):
                if entry.broker == name and entry.removed == FOREVER:
                    entry.removed = self.world.now

    def restart(self) -> None:
        down = [name for name, seat in self.world.seats.items() if seat.broker is None]
        if not down:
            return
        name = self.random.choice(down)
        self.world.start(name)
        self.outages = [
            (each, start, min(end, self.world.now) if each == name else end) for each, start, end in self.outages
        ]
        for client in dict.fromkeys(each.client for each in self.subscriptions if each.broker == name):
            self.world.connect_client(name, client)
        for each in self.overlay.links:
            if name in (each.a, each.b):
                self._repair(link(each.a, each.b))

    def leave(self) -> None:
        up = self.brokers()
        if len(up) < 3:
            return
        name = self.random.choice(up)
        self.world.leave(name)
        self.world.run(2 * SECOND)
        self.departed[name] = self.world.now
        for entry in (*self.subscriptions, *self.advertisements):
            if entry.broker == name and entry.removed == FOREVER:
                entry.removed = self.world.now - 2 * SECOND
        for each in [each for each in self.world.links if name in each]:
            self.world.cut(*each)
            self.cuts.append((each, self.world.now, FOREVER))
        self.faults.append(self.world.now)

    def heal(self) -> None:
        """Everything comes back, and the system gets time."""
        while any(seat.broker is None for seat in self.world.seats.values()):
            self.restart()
        for each in self.overlay.links:
            self._repair(link(each.a, each.b))
        self.faults.append(self.world.now)
        self.world.run(2 * REACH)

    def check(self) -> None:
        replay = f"replay: {self.command()}"
        delivered = self.world.delivered_in_life if self.is_durable else self.world.delivered
        twice = {pair: count for pair, count in delivered.items() if count > 1}
        assert not twice, f"delivered twice: {twice}\n{replay}"
        for sent in self.sent:
            got = {client for id, client in self.world.delivered if id == sent.id}
            required, allowed = self.required(sent), self.allowed(sent)
            assert required <= got, f"{sent} missed {required - got}\n{replay}"
            assert got <= allowed, f"{sent} reached {got - allowed}\n{replay}"

    def check_tables(self) -> None:
        """Each D-DBR broker holds the subscriptions of the others that its advertisements call for, and no more."""
        live = [entry for entry in self.subscriptions if entry.removed == FOREVER]
        for name in self.brokers():
            own = [each.expression for each in self.advertisements if each.broker == name and each.removed == FOREVER]
            own += [TRUE] if self.is_open else []
            wanted = [
                entry
                for entry in live
                if entry.broker != name and any(intersects(each, entry.expression) for each in own)
            ]
            counts = self.world.broker(name).router.counts()
            assert counts.remote_subscriptions == len(wanted), f"at {name}\nreplay: {self.command()}"
            assert counts.local_subscriptions == sum(entry.broker == name for entry in live)

    def required(self, sent: Sent) -> set[str]:
        """Clients whose subscription was in place and that stayed connected with the publisher."""
        return {
            entry.client
            for entry in self.subscriptions
            if entry.expression.matches(sent.attributes)
            and entry.removed > sent.at + REACH
            and self._is_in_place(entry, sent)
            and self._stay_connected(sent, entry)
        }

    def allowed(self, sent: Sent) -> set[str]:
        """Clients with a subscription while the publication was about; a durable broker's outages prolong that."""
        until = sent.at + REACH
        for name, start, end in sorted(self.outages, key=lambda outage: outage[1]):
            if self.is_durable and name == sent.broker and sent.at <= start < until:
                until = end + REACH
        return {
            entry.client
            for entry in self.subscriptions
            if entry.expression.matches(sent.attributes) and entry.removed + REACH > sent.at and entry.added < until
        }

    def _is_in_place(self, entry: Entry, sent: Sent) -> bool:
        """Was there a long quiet time together after it came, and after an advertisement that calls for it?"""
        calls = [permit.added for permit in self._permits(sent) if intersects(permit.expression, entry.expression)]
        return any(
            self._was_quiet(max(entry.added, called, self._last_restart(entry, sent)), sent, entry) for called in calls
        )

    def _last_restart(self, entry: Entry, sent: Sent) -> int:
        """A broker that starts anew has to be told again: the publisher's, the subscriber's, under MERC any edge's,
        under FBR all between the two.
        """
        concerned = {sent.broker, entry.broker}.union(*sent.ways.get(entry.broker, ()))
        if "readvertise" in self.options:
            concerned = set(self.world.seats)
        moments = [end for name, _, end in self.outages if name in concerned and end <= sent.at]
        if self.protocol == "merc":
            edges = {broker.id for broker in self.overlay.brokers if len(broker.clusters) > 1}
            moments += [end for name, _, end in self.outages if name in edges and end <= sent.at]
        return max(moments, default=0)

    @property
    def changes(self) -> list[int]:
        """Faults, and links that brokers reset because too much was lost on them."""
        return sorted((*self.faults, *(moment for _, start, end in self.world.flaps for moment in (start, end))))

    def _permits(self, sent: Sent) -> list[Entry]:
        """Advertisements under which the publication may be known to others, when it was sent and long after."""
        if self.is_open:
            return [Entry(sent.broker, "*", "*", parse("TRUE"), 0)]
        own = [
            each
            for each in self.advertisements
            if each.client == sent.client
            and each.broker == sent.broker
            and each.added <= sent.at < each.removed
            and each.expression.matches(sent.attributes)
        ]
        # Filter-based routing binds a publication to one advertisement: one of everything, else the first that fits.
        own.sort(key=lambda each: each.expression != TRUE)
        chosen = own[:1] if self.protocol == "fbr" else own
        return [each for each in chosen if each.removed > sent.at + REACH]

    def _was_quiet(self, since: int, sent: Sent, entry: Entry) -> bool:
        moments = [since, *(each for each in self.changes if since < each < sent.at), sent.at]
        if "readvertise" in self.options:
            # After any change the trees may be others: only the time since then counts.
            moments = moments[-2:]
        return any(
            later - earlier >= SETTLED and self._is_connected_at(earlier, sent, entry)
            for earlier, later in itertools.pairwise(moments)
        )

    def _stay_connected(self, sent: Sent, entry: Entry) -> bool:
        end = sent.at + REACH
        if any(
            start < end and stop > sent.at for name, start, stop in self.outages if name in (sent.broker, entry.broker)
        ):
            return False
        if any(name in self.departed and self.departed[name] < end for name in (sent.broker, entry.broker)):
            return False
        moments = [sent.at, *(each for each in self.changes if sent.at < each < end)]
        return all(self._is_connected_at(moment, sent, entry) for moment in moments)

    def _is_connected_at(self, moment: int, sent: Sent, entry: Entry) -> bool:
        """In the protocol's own sense: filter-based routing does not repair its trees."""
        live = self._links_at(moment)
        if self.protocol == "fbr":
            return entry.broker in sent.ways and live.issuperset(sent.ways[entry.broker])
        if self.protocol == "merc":
            return entry.broker in self._reached_by_clusters(sent.broker, live)
        return entry.broker in _component(sent.broker, live)

    def _links_at(self, moment: int) -> set[Link]:
        """Links that the brokers made themselves are left out: what is owed over the others is owed anyway."""
        cut = {each for each, start, end in (*self.cuts, *self.world.flaps) if start <= moment < end}
        return {link(each.a, each.b) for each in self.overlay.links} - cut

    def _reached_by_clusters(self, first: str, live: set[Link]) -> set[str]:
        """Over clusters whose live brokers are all connected inside."""
        down = {end for end in self.world.seats if not any(end in each for each in live)}
        whole: dict[str, set[str]] = {}
        for cluster in self.overlay.clusters:
            members = {name for name in self.overlay.members(cluster) if name not in down or name == first}
            inside = {each for each in live if set(each) <= members}
            if members and all(_component(name, inside) >= members for name in members):
                whole[cluster] = members
        reached, grown = {first}, True
        while grown:
            grown = False
            for members in whole.values():
                if members & reached and not members <= reached:
                    reached |= members
                    grown = True
        return reached


def _component(start: str, links: set[Link]) -> set[str]:
    reached, pending = {start}, [start]
    while pending:
        name = pending.pop()
        for each in links:
            if name in each:
                other = each[0] if each[1] == name else each[1]
                if other not in reached:
                    reached.add(other)
                    pending.append(other)
    return reached
