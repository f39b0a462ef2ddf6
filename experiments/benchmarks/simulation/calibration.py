"""Measures the costs of matching and forwarding on this machine, for the simulation's cost profile `native`.

An index is measured at several sizes and with different numbers of matching subscriptions. Its cost is modelled as
linear in a constant, the stored subscriptions and the matched subscriptions, which every exact index has. The
coefficients are fitted by least squares and are not negative. Forwarding is decoding a frame, handling it in a broker's
core, and encoding it again.
"""

from __future__ import annotations

import gc
import itertools
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import msgpack
import tomli_w
from msgspec.structs import asdict

from broker.core.broker import Broker
from broker.core.effects import Send
from broker.core.inputs import FrameReceived, PeerUp
from broker.core.settings import Settings
from broker.progress import ShowProgress
from broker.simulation.cost_file import IndexCosts, MeasuredCosts
from broker.trace.code_version import code_version
from broker.wire.broker_codec import Limits, decode, encode
from experiments.cpu_timing import BestTimes, garbage_collection_paused
from experiments.workloads import registry as workloads
from experiments.workloads.be_gen import BeGenParameters
from matching.indexes.with_fallback import for_any_expression
from matching.matcher import Matcher
from matching.registry import describe_backend
from routing.messages import LinkState, Neighbour, PublicationId, Publish
from routing.registry import create as create_router

SIZES = (500, 1_000, 2_000, 4_000)
PROBABILITIES = (0.005, 0.05)
PUBLICATIONS = 60
ROUNDS = 3
FRAMES = 500


@dataclass(frozen=True, slots=True)
class Observation:
    """The measured cost of an index for one publication."""

    stored: int
    matched: float
    """Mean number of matching subscriptions."""
    ns: float
    """Time for one publication."""


def calibrate(
    indexes: Sequence[str], progress: ShowProgress, *, sizes: Sequence[int] = SIZES, publications: int = PUBLICATIONS
) -> MeasuredCosts:
    costs: dict[str, IndexCosts] = {}
    with garbage_collection_paused():
        for done, name in enumerate(indexes):
            progress("indexes calibrated", done, len(indexes))
            costs[name] = fit_costs(
                [_observe(name, size, probability, publications) for size in sizes for probability in PROBABILITIES]
            )
        frame_ns = round(_forwarding_ns() / 2)
    progress("indexes calibrated", len(indexes), len(indexes))
    code = code_version()
    machine = {
        "mercast": code.version,
        "commit": code.commit,
        "python": platform.python_version(),
        "backend": describe_backend(),
        "processor": f"{platform.machine()}, {os.cpu_count()} cores",
        "system": platform.system(),
        "workload": f"be-gen, {min(sizes)} to {max(sizes)} subscriptions, {publications} publications",
    }
    return MeasuredCosts(frame_ns, frame_ns, costs, machine, "this machine")


def _observe(name: str, size: int, probability: float, publications: int) -> Observation:
    parameters = BeGenParameters(matching_probability=probability)
    workload = workloads.create(parameters, subscriptions=size, publications=publications, seed=1)
    index: Matcher = for_any_expression(name)
    for number, expression in enumerate(workload.subscriptions()):
        index.add(number, expression)
    packed = [msgpack.packb(publication) for publication in workload.publications()]
    matched = sum(index.match_packed(each).matched for each in packed)
    gc.collect()
    times = BestTimes()
    for _ in range(ROUNDS):
        times.measure(0, lambda: [index.match_packed(each) for each in packed])
    return Observation(size, matched / len(packed), times.total() * 1e9 / len(packed))


def _forwarding_ns() -> float:
    """Time of a frame through the middle broker of a line of three, which has no subscriptions."""
    settings = Settings(is_open=False, credit=10**9)
    broker = Broker(create_router("d-dbr", "b2", 1, "scan", ()), "b2", 1, settings)
    names = {"b1": ("b2",), "b2": ("b1", "b3"), "b3": ("b2",)}
    broker.router.load_link_states(
        tuple(LinkState(name, 1, 1, "", tuple(Neighbour(each, 1) for each in others)) for name, others in names.items())
    )
    greeting = broker.router.greeting()
    for peer in ("b1", "b3"):
        broker.handle(PeerUp(peer, greeting), 0)
    limits, attributes = Limits(), msgpack.packb({f"a{number}": number for number in range(10)})
    frames = [
        encode(Publish(PublicationId("b1", 1, number), "b1", "", ("b3",), (), attributes, b""), number + 1)
        for number in range(FRAMES)
    ]

    def forward() -> int:
        sent = 0
        for frame in frames:
            message, sequence = decode(frame, limits)
            for effect in broker.handle(FrameReceived("b1", message, sequence), 0):
                if isinstance(effect, Send):
                    sent += len(encode(effect.message, effect.sequence)) > 0
        return sent

    times = BestTimes()
    for _ in range(ROUNDS):
        times.measure(0, forward)
    return times.total() * 1e9 / FRAMES


def fit_costs(observations: Sequence[Observation]) -> IndexCosts:
    """Fits the coefficients. Minimises relative errors, so that small tables count as much as large ones."""
    best = (float("inf"), (0.0, 0.0, 0.0))
    for wanted in itertools.product((False, True), repeat=3):
        columns = [position for position, is_wanted in enumerate(wanted) if is_wanted]
        solution = _least_squares(observations, columns)
        if solution is not None and min(solution) >= 0:
            best = min(best, (_error(observations, solution), solution))
    constant, stored, matched = best[1]
    return IndexCosts(round(constant, 1), round(stored, 3), round(matched, 1))


Coefficients: TypeAlias = tuple[float, float, float]


def _factors(observation: Observation) -> Coefficients:
    """The factors of the three coefficients in a sum whose ideal value is 1."""
    return (1 / observation.ns, observation.stored / observation.ns, observation.matched / observation.ns)


def _error(observations: Sequence[Observation], solution: Coefficients) -> float:
    return sum((sum(map(float.__mul__, _factors(each), solution)) - 1) ** 2 for each in observations)


def _least_squares(observations: Sequence[Observation], columns: Sequence[int]) -> Coefficients | None:
    """Solves the normal equations for these coefficients; the others are zero.

    Returns None if the observations do not determine the coefficients.
    """
    rows = [[_factors(each)[column] for column in columns] for each in observations]
    # Scales columns to the same size: rounding would remove small ones.
    scales = [max(row[position] for row in rows) or 1.0 for position in range(len(columns))]
    rows = [[value / scale for value, scale in zip(row, scales, strict=True)] for row in rows]
    size = len(columns)
    system = [
        [sum(row[i] * row[j] for row in rows) for j in range(size)] + [sum(row[i] for row in rows)] for i in range(size)
    ]
    for pivot in range(size):
        largest = max(range(pivot, size), key=lambda row: abs(system[row][pivot]))
        system[pivot], system[largest] = system[largest], system[pivot]
        if abs(system[pivot][pivot]) < 1e-12:
            return None
        for row in range(size):
            if row != pivot:
                factor = system[row][pivot] / system[pivot][pivot]
                system[row] = [a - factor * b for a, b in zip(system[row], system[pivot], strict=True)]
    solution = [0.0, 0.0, 0.0]
    for position, column in enumerate(columns):
        solution[column] = system[position][size] / system[position][position] / scales[position]
    return (solution[0], solution[1], solution[2])


def to_toml(costs: MeasuredCosts) -> str:
    """Returns the text of the cost file."""
    document = {
        "machine": costs.machine,
        "frames": {"in_ns": costs.frame_in_ns, "out_ns": costs.frame_out_ns},
        "index": {name: asdict(index) for name, index in costs.indexes.items()},
    }
    comment = "# What matching and forwarding cost on the machine below; written by `mercast calibrate`."
    return f"{comment}\n\n{tomli_w.dumps(document)}"
