"""[THESIS Fig. 10.1.20]: memory of the routing tables, and messages for one reconfiguration."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from experiments.figures.figure import Claim, Figure, Panel, PaperPoint, Point, Row, Rows, Scale, Shape
from experiments.sweeps.sweep import RunOutcome, RunSpec

MEMORY, MESSAGES = "memory", "messages"
DDBR = "D-DBR"
DEGREE = 6


@dataclass(frozen=True, slots=True)
class MemoryParameters:
    most_brokers: int
    cluster_sizes: tuple[int, ...]


PARAMETERS: dict[Scale, MemoryParameters] = {
    "quick": MemoryParameters(300, (70, 100)),
    "paper": MemoryParameters(1000, (70, 100)),
}


def merc(size: int) -> str:
    return f"MERC, clusters of {size}"


def points(scale: Scale) -> list[Point]:
    chosen = PARAMETERS[scale]
    sizes = [(DDBR, "d-dbr", 100), *((merc(size), "merc", size) for size in chosen.cluster_sizes)]
    return [
        Point(
            series,
            brokers,
            RunSpec(
                "routing-memory",
                {"protocol": protocol, "brokers": brokers, "degree": DEGREE, "seed": 1, "cluster_size": size},
            ),
        )
        for series, protocol, size in sizes
        for brokers in range(size, chosen.most_brokers + 1, size)
    ]


def rows(point: Point, outcome: RunOutcome) -> Iterable[Row]:
    numbers = outcome.numbers
    yield Row(MEMORY, point.series, point.x, numbers["bytes_inside"] / 1000)
    yield Row(MESSAGES, point.series, point.x, numbers["messages_multicast"])
    if point.series == DDBR:
        yield Row(MESSAGES, "D-DBR, flooded", point.x, numbers["messages_flooded"])
    else:
        yield Row(MEMORY, f"{point.series}, edge", point.x, numbers["bytes_at_edges"] / 1000)


def _largest(series: str) -> Claim:
    paper = {merc(70): 5, merc(100): 11}[series]
    return Claim(
        f"{series}: most at an inner broker",
        paper,
        lambda results: max(results.values(MEMORY, series), default=None),
        unit=" KB",
        why=(
            "n² + 8n bytes for n brokers, a byte for each pair and 8 for each next hop: the paper gives no formula, "
            "and this one was chosen because it fits both of its numbers."
        ),
    )


def _is_square(results: Rows) -> bool | None:
    line = results.line(MEMORY, DDBR)
    if len(line) < 2:
        return None
    (first, small), (last, large) = line[0], line[-1]
    return large / small > 0.8 * (float(last) / float(first)) ** 2


def _last_messages(results: Rows, series: str) -> float | None:
    values = results.values(MESSAGES, series)
    return values[-1] if values else None


FIGURE = Figure(
    name="fig-10.1.20",
    title="Memory of routing tables",
    reference="[THESIS 10.1.2, Fig. 10.1.20]",
    claim=(
        "MERC needs at most 5 KB with clusters of 70 and 11 KB with clusters of 100, whatever the overlay's size; "
        "D-DBR grows fast. A reconfiguration takes as many messages as there are brokers in the system (D-DBR) or in "
        "the cluster (MERC)."
    ),
    setting=(
        "Random overlays of degree 6 and, for MERC, transit-stub overlays, up to 1,000 brokers. Counted for TRT and "
        "SPRT as brokers report their size. An edge broker holds the tables of all its clusters. Messages of one "
        "change of a broker's links: multicast along shortest paths, where all agree on the overlay; flooded around "
        "failures."
    ),
    points=points,
    rows=rows,
    panels=(
        Panel(
            MEMORY,
            "Routing tables of a broker, at most",
            "brokers",
            "kilobytes",
            is_log=True,
            paper=(PaperPoint(merc(70), 980, 5), PaperPoint(merc(100), 1000, 11)),
        ),
        Panel(MESSAGES, "Messages for one reconfiguration", "brokers", "messages", is_log=True),
    ),
    claims=(
        _largest(merc(70)),
        _largest(merc(100)),
        Claim(
            "D-DBR: messages for a reconfiguration of 1,000 brokers",
            1000,
            lambda results: results.y(MESSAGES, DDBR, 1000),
            why="All but the broker that changed get one message. A change by failure is flooded: five times as many.",
        ),
        Claim(
            "MERC: messages in clusters of 100",
            100,
            lambda results: _last_messages(results, merc(100)),
            why="As above, inside the cluster.",
        ),
    ),
    shapes=(
        Shape("D-DBR's tables grow with the square of the brokers", _is_square),
        Shape(
            "MERC's tables do not grow with the overlay",
            lambda results: len(set(results.values(MEMORY, merc(100)))) == 1,
        ),
    ),
    minutes={"quick": 0.1, "paper": 0.3},
)
