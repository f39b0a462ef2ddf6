"""Counts of the destination lists of 10,000 random publications [THESIS 10.1.2]."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from experiments.figures.figure import PROTOCOLS, Point, Row, X
from experiments.sweeps.sweep import RunOutcome, RunSpec
from routing.registry import info

MEAN, AT_SOURCE = "mean", "at source"

SETTING = (
    "Sources and interested brokers are drawn at random for each publication; lists are counted without simulating "
    "time, by the brokers' own rule for next hops (a test holds the count equal to the simulation)."
)
MODEL = (
    "Overlays are uniform random graphs with an exact mean degree (the paper: GT-ITM, model not stated); for MERC, "
    "transit-stub overlays: a transit node and its stub nodes are a cluster, the transit nodes are the backbone."
)


@dataclass(frozen=True, slots=True)
class ListParameters:
    """The sizes of an experiment on destination lists."""

    brokers: tuple[int, ...]
    interested: tuple[float, ...]
    publications: int


def count_lists_point(
    protocol: str,
    *,
    brokers: int,
    degree: float,
    interested: float,
    publications: int,
    series: str = "",
    x: X | None = None,
    cluster_size: int = 0,
    seed: int = 1,
) -> Point:
    """A point that counts destination lists on one overlay, without simulated time."""
    parameters: dict[str, str | int | float] = {
        "protocol": protocol,
        "brokers": brokers,
        "degree": degree,
        "interested": interested,
        "publications": publications,
        "seed": seed,
    }
    if info(protocol).needs_clusters:
        parameters["cluster_size"] = cluster_size
    spec = RunSpec("count-lists", parameters)
    return Point(series or PROTOCOLS[protocol], brokers if x is None else x, spec)


def mean_row(point: Point, outcome: RunOutcome) -> Iterable[Row]:
    return [Row(MEAN, point.series, point.x, outcome.numbers["mean"])]


def at_source_row(point: Point, outcome: RunOutcome) -> Iterable[Row]:
    return [Row(AT_SOURCE, point.series, point.x, outcome.numbers["mean_at_source"])]


def percent(share: float) -> str:
    return f"{share:.0%} interested"
