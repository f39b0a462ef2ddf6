"""A line of brokers with one publisher at its head and 100 subscribers at its tail [THESIS 10.1.1]."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.figures.figure import PROTOCOLS, Claim, Figure, Panel, PaperPoint, Point, Rows, Scale, Shape, is_rising
from experiments.figures.points import rows_from_summary, simulation_point

LATENCY, MATCHES = "latency", "matches"


@dataclass(frozen=True, slots=True)
class LineParameters:
    brokers: tuple[int, ...]
    publications: int


PARAMETERS: dict[Scale, LineParameters] = {
    "quick": LineParameters((2, 10), 50),
    "paper": LineParameters(tuple(range(1, 11)), 600),
}
SUBSCRIBERS = 100
SYMBOLS = 10
"""Few symbols, so that every publication has a subscriber. Without one it would be matched at its source only."""
LONGEST = 10


def line_point(protocol: str, brokers: int, subscriptions: int, publications: int) -> Point:
    """A simulation of a line of brokers."""
    settings = {
        "overlay.brokers": brokers,
        "clients.subscriptions_each": subscriptions // SUBSCRIBERS,
        "workload.symbols": SYMBOLS,
        "workload.publications": publications,
        "run.drain_s": 300,
    }
    return simulation_point("line", protocol, brokers, settings)


def latency_figure(name: str, subscriptions: int, minutes: dict[Scale, float], claim: str) -> Figure:
    """The figure of latency against the length of a line, with this number of subscriptions."""

    def points(scale: Scale) -> list[Point]:
        chosen = PARAMETERS[scale]
        return [
            line_point(protocol, brokers, subscriptions, chosen.publications)
            for protocol in PROTOCOLS
            for brokers in chosen.brokers
        ]

    return Figure(
        name=name,
        title=f"Latency on a line of brokers with {subscriptions:,} subscriptions",
        reference=f"[THESIS 10.1.1, Fig. {name.removeprefix('fig-')}]",
        claim=claim,
        setting=(
            f"One publisher at the head, {SUBSCRIBERS} subscribers with {subscriptions:,} subscriptions in all at the "
            "tail, 3,000 publications a minute. MERC: two clusters, the middle broker is in both. Ours where the paper "
            "is silent: 1 ms for each link, 600 publications for each point (50 at quick scale), quotes of ten "
            "symbols, so that every publication interests someone."
        ),
        points=points,
        rows=rows_from_summary(latency="latency_ms_mean", matches="matches_mean"),
        panels=(
            Panel(LATENCY, "Mean delivery latency", "brokers in the line", "milliseconds"),
            Panel(
                MATCHES,
                "Brokers that match a publication",
                "brokers in the line",
                "brokers",
                paper=(
                    PaperPoint("FBR", LONGEST, 10),
                    PaperPoint("D-DBR", LONGEST, 2),
                    PaperPoint("MERC", LONGEST, 3),
                ),
            ),
        ),
        claims=(
            Claim(
                "FBR: brokers that match, ten in the line",
                10,
                lambda rows: rows.y(MATCHES, "FBR", LONGEST),
                why=MATCHES_WHY,
            ),
            Claim("D-DBR: brokers that match", 2, lambda rows: rows.y(MATCHES, "D-DBR", LONGEST)),
            Claim("MERC: brokers that match", 3, lambda rows: rows.y(MATCHES, "MERC", LONGEST)),
            *((_merc_to_ddbr(),) if subscriptions == 2000 else ()),
        ),
        shapes=(
            Shape("latency grows with brokers under all three", _all_are_rising),
            Shape("D-DBR and MERC are below FBR on the longest line", _fbr_is_slowest),
            Shape("MERC is above D-DBR", lambda rows: _ratio(rows) is not None and (_ratio(rows) or 0) > 1),
        ),
        minutes=minutes,
        has_generated_quotes=True,
    )


MATCHES_WHY = (
    "FBR matches at every broker on the way, D-DBR at the source and at the destination, MERC at the edge as well."
)


def _merc_to_ddbr() -> Claim:
    return Claim(
        "MERC's latency, in times of D-DBR's, ten brokers",
        1.5,
        _ratio,
        why=(
            "Three matches against two make 1.5 where matching is all. Frames and links, which both protocols have in "
            "equal measure, bring the ratio down."
        ),
    )


def _ratio(rows: Rows) -> float | None:
    merc, ddbr = rows.y(LATENCY, "MERC", LONGEST), rows.y(LATENCY, "D-DBR", LONGEST)
    return merc / ddbr if merc is not None and ddbr else None


def _all_are_rising(rows: Rows) -> bool:
    return all(is_rising(rows.values(LATENCY, series)) for series in PROTOCOLS.values())


def _fbr_is_slowest(rows: Rows) -> bool | None:
    fbr, ddbr, merc = (rows.y(LATENCY, series, LONGEST) for series in PROTOCOLS.values())
    return None if fbr is None or ddbr is None or merc is None else fbr > max(ddbr, merc)
