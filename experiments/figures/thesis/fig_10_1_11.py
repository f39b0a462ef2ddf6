"""[THESIS Fig. 10.1.11]: copies of a subscription, by the share of brokers with matching advertisements."""

from __future__ import annotations

from collections.abc import Iterable

from experiments.figures.figure import (
    PROTOCOLS,
    Claim,
    Figure,
    Panel,
    PaperPoint,
    Point,
    Row,
    Rows,
    Scale,
    Shape,
    is_rising,
)
from experiments.figures.setups.hundred_brokers import BROKERS, SETTING, SUBSCRIPTIONS_EACH, hundred_brokers_point
from experiments.sweeps.sweep import RunOutcome

SHARES: dict[Scale, tuple[float, ...]] = {"quick": (0.2, 0.8), "paper": (0.2, 0.4, 0.6, 0.8)}
COPIES, DUPLICATES = "copies", "duplicates"
PUBLICATIONS = 20
RATE = 600
"""Few publications at a low rate: the number of stored subscriptions does not depend on them."""


def points(scale: Scale) -> list[Point]:
    return [
        hundred_brokers_point(
            protocol,
            scale,
            round(100 * share),
            rate=RATE,
            share=share,
            settings={"workload.publications": PUBLICATIONS},
        )
        for protocol in PROTOCOLS
        for share in SHARES[scale]
    ]


def rows(point: Point, outcome: RunOutcome) -> Iterable[Row]:
    yield Row(COPIES, point.series, point.x, float(outcome.lists["stored_subscriptions.copies_mean"][0]))
    yield Row(DUPLICATES, point.series, point.x, outcome.numbers["duplicate_advertisements"])


def _only_where_matching(results: Rows) -> bool:
    """Whether D-DBR's copies are at most the brokers with a matching advertisement. Its home may be one of them."""
    brokers = BROKERS["paper"] if results.y(COPIES, "D-DBR", 60) is not None else BROKERS["quick"]
    return all(copies <= float(x) / 100 * brokers for x, copies in results.line(COPIES, "D-DBR"))


FIGURE = Figure(
    name="fig-10.1.11",
    title="Copies of a subscription on 100 brokers",
    reference="[THESIS 10.1.1, Fig. 10.1.11]",
    claim=(
        "At 80%, FBR stores each subscription 221 times beside its home, D-DBR only where advertisements match; over "
        "38,000 duplicate advertisement messages under FBR, none under D-DBR and MERC."
    ),
    setting=f"{SETTING} Here that share varies. {SUBSCRIPTIONS_EACH['paper'] * BROKERS['paper']:,} subscriptions.",
    points=points,
    rows=rows,
    tables=("stored_subscriptions",),
    panels=(
        Panel(
            COPIES,
            "Copies of a subscription beside its home",
            "% of brokers with matching advertisements",
            "copies",
            is_log=True,
            paper=(PaperPoint("FBR", 80, 221),),
        ),
        Panel(
            DUPLICATES,
            "Advertisements that came twice",
            "% of brokers with matching advertisements",
            "messages, for 100 advertisements",
            paper=(PaperPoint("FBR", 80, 38_000),),
        ),
    ),
    claims=(
        Claim(
            "FBR: copies at 80%",
            221,
            lambda results: results.y(COPIES, "FBR", 80),
            why="A copy at each broker on the way to each matching advertisement: 80 advertisements times 2.8 hops.",
        ),
        Claim(
            "FBR: duplicate advertisement messages",
            38_000,
            lambda results: results.y(DUPLICATES, "FBR", 80),
            relation="more than",
            why="A flood over 300 links sends 501 messages, 99 of them news: 402 duplicates for each of 100.",
        ),
        Claim("D-DBR: duplicates", 0, lambda results: results.y(DUPLICATES, "D-DBR", 80)),
        Claim("MERC: duplicates", 0, lambda results: results.y(DUPLICATES, "MERC", 80)),
    ),
    shapes=(
        Shape("FBR's copies grow with the share", lambda results: is_rising(results.values(COPIES, "FBR"))),
        Shape("D-DBR stores a subscription only where advertisements match", _only_where_matching),
    ),
    minutes={"quick": 0.4, "paper": 18},
    has_generated_quotes=True,
)
