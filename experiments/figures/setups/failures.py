"""100 brokers of degree 6. Every publication is for every subscriber. A share of brokers or connections fails."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from experiments.figures.figure import PROTOCOLS, Claim, Figure, Panel, PaperPoint, Point, Row, Rows, Scale, Shape
from experiments.figures.points import simulation_spec
from experiments.sweeps.sweep import RunOutcome

DELIVERED = "delivered"
COMPARED = ("fbr", "d-dbr")
HALF = 50


@dataclass(frozen=True, slots=True)
class FailureParameters:
    brokers: int
    degree: int
    shares: tuple[float, ...]


PARAMETERS: dict[Scale, FailureParameters] = {
    "quick": FailureParameters(20, 6, (0.0, 0.5)),
    "paper": FailureParameters(100, 6, (0.0, 0.1, 0.3, 0.5, 0.7, 0.9)),
}


def failures_figure(
    name: str, what: str, key: str, paper: dict[str, float], why: dict[str, str], minutes: dict[Scale, float]
) -> Figure:
    """`key` is a key of the scenario: share_of_brokers or share_of_links. `paper` has each protocol's number at 50%."""

    def points(scale: Scale) -> list[Point]:
        chosen = PARAMETERS[scale]
        others = {"share_of_brokers", "share_of_links"} - {key}
        return [
            Point(
                PROTOCOLS[protocol],
                round(100 * share),
                simulation_spec(
                    "failures",
                    protocol,
                    {
                        "overlay.brokers": chosen.brokers,
                        "overlay.degree": chosen.degree,
                        "workload.publications": chosen.brokers,
                        f"fault_rates.{key}": share,
                        **{f"fault_rates.{other}": 0 for other in others},
                    },
                ),
            )
            for protocol in COMPARED
            for share in chosen.shares
        ]

    def rows(point: Point, outcome: RunOutcome) -> Iterable[Row]:
        brokers = int(point.spec.parameters["set.overlay.brokers"])
        yield Row(DELIVERED, point.series, point.x, 100 * outcome.numbers["delivered"] / brokers**2)

    def claim(series: str) -> Claim:
        return Claim(
            f"{series}: delivered when half of the {what} fail",
            paper[series],
            lambda results: results.y(DELIVERED, series, HALF),
            unit="%",
            why=why[series],
        )

    return Figure(
        name=name,
        title=f"Deliveries when {what} fail",
        reference=f"[THESIS 10.1.2, Fig. {name.removeprefix('fig-')}]",
        claim=f"With half of the {what} gone, D-DBR delivers {paper['D-DBR']}% and FBR {paper['FBR']}%.",
        setting=(
            "100 brokers of degree 6, a publisher and a subscriber at each; each publisher publishes once, for all "
            f"subscribers. A random share of the {what} fails before publishing starts and stays down. 100% are all "
            "pairs of publisher and subscriber, also those whose broker is down. One overlay, one draw of failures, "
            "in which a larger share holds the smaller ones."
        ),
        points=points,
        rows=rows,
        panels=(
            Panel(
                DELIVERED,
                f"Delivered when {what} fail",
                f"% of {what} that failed",
                "% of all pairs",
                paper=tuple(PaperPoint(series, HALF, value) for series, value in paper.items()),
            ),
        ),
        claims=(claim("D-DBR"), claim("FBR")),
        shapes=(
            Shape("without failures everything is delivered", _delivers_all_without_failures),
            Shape("D-DBR delivers at least as much as FBR", _ddbr_is_better),
        ),
        minutes=minutes,
    )


def _delivers_all_without_failures(rows: Rows) -> bool:
    return all(rows.y(DELIVERED, PROTOCOLS[protocol], 0) == 100 for protocol in COMPARED)


def _ddbr_is_better(rows: Rows) -> bool:
    pairs = zip(rows.values(DELIVERED, "D-DBR"), rows.values(DELIVERED, "FBR"), strict=False)
    return all(ddbr >= fbr for ddbr, fbr in pairs)
