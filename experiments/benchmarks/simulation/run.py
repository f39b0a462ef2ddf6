"""Measures the speed of the simulation: hops a second, the set-up of a large overlay, the cost of a publication.

Times are CPU time of this process, the best of several rounds. The trace is written as in any run.
"""

from __future__ import annotations

import heapq
import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgpack

import topologies
from broker.core.inputs import Advertised, Published, Subscribed
from broker.core.settings import SECOND, Settings
from broker.progress import ShowProgress
from broker.simulation.costs import PADRES_2015
from broker.simulation.simulated_overlay import SimulatedOverlay
from broker.trace.files import TraceWriter
from broker.trace.schema import Trace
from experiments.cpu_timing import BestTimes, collecting_rarely

LINE = 50
RATE = 2_000
"""Publications a second of simulated time."""
HEAP_MESSAGES, HEAP_HOPS = 10_000, 5
HOP_NS = 1_400_000
"""Simulated time of a hop on an idle overlay: a millisecond on the link, and work for two frames."""
CLUSTERS, CLUSTER_BROKERS = 10, 100
ADVERTISEMENTS, SUBSCRIPTIONS = 100, 10_000
QUIET = Settings(is_open=False, tick=3600 * SECOND, dead_after=3 * 3600 * SECOND, patience=3600 * SECOND)
"""Settings without heartbeats, so that only frames of publications count."""


@dataclass(frozen=True, slots=True)
class Forwarding:
    """Speed of D-DBR along a line with one subscriber at its end. Brokers between the ends read headers only."""

    brokers: int
    hops: int
    """Hops of publications in all rounds, without acknowledgements."""
    hops_per_s: float
    heap_hops_per_s: float
    """Speed of a bare loop over a heap, which removes a message and schedules its next hop."""
    share_of_heap: float


@dataclass(frozen=True, slots=True)
class SetUp:
    """Set-up of MERC on stub clusters and a backbone of edge brokers, until all subscriptions have arrived."""

    brokers: int
    clusters: int
    advertisements: int
    subscriptions: int
    seconds: float
    memory_bytes_max: int
    """Peak memory of the process since its start."""
    messages: int


@dataclass(frozen=True, slots=True)
class PublicationCost:
    """Cost of a publication under D-DBR on a random overlay of degree 6."""

    brokers: int
    destinations: int
    hops: float
    """Frames of one publication."""
    inputs: float
    """Inputs that brokers handled for one publication, acknowledgements included."""
    evaluated: float
    """Subscriptions that were evaluated in all tables."""
    microseconds: float


@dataclass(frozen=True, slots=True)
class BenchResult:
    forwarding: Forwarding
    set_up: SetUp | None
    publications: tuple[PublicationCost, ...]


@dataclass(slots=True)
class EvaluatedCount:
    """A trace that counts the evaluated subscriptions."""

    trace: Trace
    evaluated: int = 0

    def record(self, row: object) -> None:
        self.trace.record(row)  # type: ignore[arg-type]
        self.evaluated += getattr(row, "evaluated", 0)


def simulated_overlay(overlay: topologies.Overlay, protocol: str, trace: Trace) -> SimulatedOverlay:
    return SimulatedOverlay(
        overlay,
        protocol,
        matcher="auto",
        settings=QUIET,
        profile=PADRES_2015,
        trace=trace,
        random=random.Random(1),
        cores={broker.id: 1 for broker in overlay.brokers},
        queue_frames=1_000_000,
    )


def publish(world: SimulatedOverlay, broker: str, publications: int) -> None:
    """Publishes at a steady rate from now on, and runs until all publications have arrived and are acknowledged."""
    attributes = msgpack.packb({"a": 1})

    def request(number: int) -> Callable[[], None]:
        return lambda: world.submit(broker, Published("publisher", number, attributes))

    for number in range(publications):
        world.schedule(world.now + number * SECOND // RATE, request(number))
    world.run_until(world.now + publications * SECOND // RATE + 10 * SECOND)


def forwarding(publications: int, rounds: int, folder: Path, progress: ShowProgress) -> Forwarding:
    """Alternates with the bare loop in short rounds, so that other processes disturb both equally."""
    overlay = topologies.generate("line", {"brokers": LINE})
    first, last = overlay.brokers[0].id, overlay.brokers[-1].id
    simulated, heap = BestTimes(), BestTimes()
    with TraceWriter(folder / "forwarding", "bench") as trace, collecting_rarely():
        world = simulated_overlay(overlay, "d-dbr", trace)
        world.submit(first, Advertised("publisher", "all", "TRUE"))
        world.run_until(5 * SECOND)
        world.submit(last, Subscribed("subscriber", "all", "a = 1"))
        world.run_until(10 * SECOND)
        for round in range(rounds):
            progress("rounds of forwarding", round, rounds)
            simulated.measure(0, publish, world, first, publications)
            heap.measure(0, heap_loop, HEAP_MESSAGES)
        hops = world.sent["Publish"]
    speed, bare = publications * (LINE - 1) / simulated.total(), HEAP_MESSAGES * HEAP_HOPS / heap.total()
    return Forwarding(LINE, hops, speed, bare, speed / bare)


def heap_loop(messages: int) -> int:
    """Moves messages by five hops each between a hundred brokers; all are scheduled at the start. Returns the hops."""
    queue = [(number * 1_000, number, number % 100, HEAP_HOPS) for number in range(messages)]
    order = messages
    hops = 0
    while queue:
        at, _, broker, left = heapq.heappop(queue)
        hops += 1
        if left > 1:
            heapq.heappush(queue, (at + HOP_NS, order, (broker + 1) % 100, left - 1))
            order += 1
    return hops


def set_up(folder: Path, progress: ShowProgress) -> SetUp:
    parameters = {"transit_nodes": CLUSTERS, "stub_nodes": CLUSTER_BROKERS - 1, "degree": 6}
    overlay = topologies.cluster_by_domain(topologies.generate("transit-stub", parameters, seed=1))
    names = [broker.id for broker in overlay.brokers]
    rng = random.Random(1)
    started = time.process_time()
    with TraceWriter(folder / "set-up", "bench") as trace, collecting_rarely():
        world = simulated_overlay(overlay, "merc", trace)
        for number in range(ADVERTISEMENTS):
            broker = names[number * len(names) // ADVERTISEMENTS]
            world.submit(broker, Advertised(f"p{number}", "all", f"topic = {number} AND x >= 0"))
        for second in range(1, 11):
            progress("simulated seconds of set-up", second, 30)
            world.run_until(second * SECOND)
        for number in range(SUBSCRIPTIONS):
            text = f"topic = {rng.randrange(ADVERTISEMENTS)} AND x >= {rng.randrange(100)}"
            world.submit(names[number % len(names)], Subscribed(f"s{number}", "all", text))
        for second in range(11, 31):
            progress("simulated seconds of set-up", second, 30)
            world.run_until(second * SECOND)
    seconds = time.process_time() - started
    return SetUp(
        len(names),
        len(overlay.clusters),
        ADVERTISEMENTS,
        SUBSCRIPTIONS,
        seconds,
        peak_memory_bytes(),
        sum(world.sent.values()),
    )


def peak_memory_bytes() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def publication_cost(
    overlay: topologies.Overlay, destinations: int, publications: int, folder: Path
) -> PublicationCost:
    """The cost with a publisher at the first broker and a subscriber at each of the next `destinations` brokers."""
    names = [broker.id for broker in overlay.brokers]
    with TraceWriter(folder, "bench") as writer, collecting_rarely():
        trace = EvaluatedCount(writer)
        world = simulated_overlay(overlay, "d-dbr", trace)
        world.submit(names[0], Advertised("publisher", "all", "TRUE"))
        world.run_until(5 * SECOND)
        for name in names[1 : destinations + 1]:
            world.submit(name, Subscribed(f"subscriber at {name}", "all", "a = 1"))
        world.run_until(10 * SECOND)
        handled, sent, trace.evaluated = world.handled, world.sent["Publish"], 0
        times = BestTimes()
        times.measure(0, publish, world, names[0], publications)
    return PublicationCost(
        brokers=len(names),
        destinations=destinations,
        hops=(world.sent["Publish"] - sent) / publications,
        inputs=(world.handled - handled) / publications,
        evaluated=trace.evaluated / publications,
        microseconds=times.total() * 1e6 / publications,
    )


def measure(publications: int, rounds: int, progress: ShowProgress, *, with_set_up: bool = True) -> BenchResult:
    with tempfile.TemporaryDirectory(prefix="mercast-bench-") as name:
        folder = Path(name)
        speed = forwarding(publications, rounds, folder, progress)
        costs: list[PublicationCost] = []
        settings = [(brokers, destinations) for destinations in (5, 20, 80) for brokers in (100, 400)]
        for done, (brokers, destinations) in enumerate(settings):
            progress("overlays", done, len(settings))
            overlay = topologies.generate("random", {"brokers": brokers, "degree": 6}, seed=1)
            costs.append(publication_cost(overlay, destinations, publications // 2, folder / f"cost-{done}"))
        large = set_up(folder, progress) if with_set_up else None
    return BenchResult(speed, large, tuple(costs))
