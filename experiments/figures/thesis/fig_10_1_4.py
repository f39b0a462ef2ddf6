"""[THESIS Fig. 10.1.4]: CPU utilisation of ten brokers in a line, with 2,000 subscriptions."""

from __future__ import annotations

from collections.abc import Iterable

from experiments.figures.figure import PROTOCOLS, Claim, Figure, Panel, PaperPoint, Point, Row, Rows, Scale, Shape
from experiments.figures.setups.line import LONGEST, PARAMETERS, line_point
from experiments.sweeps.sweep import RunOutcome

SUBSCRIPTIONS = 2000
BUSY = "busy"
MIDDLE = (5, 6)


def points(scale: Scale) -> list[Point]:
    publications = PARAMETERS[scale].publications
    return [line_point(protocol, LONGEST, SUBSCRIPTIONS, publications) for protocol in PROTOCOLS]


def rows(point: Point, outcome: RunOutcome) -> Iterable[Row]:
    for number, share in enumerate(outcome.lists["broker_load.busy_share"], start=1):
        yield Row(BUSY, point.series, number, 100 * float(share))


def _between(results: Rows) -> float | None:
    values = results.values(BUSY, "D-DBR")[1:-1]
    return sum(values) / len(values) if values else None


def _least(results: Rows, series: str, *brokers: int) -> float | None:
    values = [results.y(BUSY, series, broker) for broker in brokers]
    known = [value for value in values if value is not None]
    return min(known) if len(known) == len(brokers) else None


def _merc_middle(results: Rows) -> float | None:
    return max((results.y(BUSY, "MERC", broker) or 0.0 for broker in MIDDLE), default=None)


def _only_three_are_busy(results: Rows) -> bool | None:
    values = results.values(BUSY, "MERC")
    return sum(value > max(values) / 2 for value in values) == 3 if values else None


ORIGIN = (
    "No independent evidence: the cost profile padres-2015 was derived from this very figure (6.1 µs for each stored "
    "subscription and 0.2 ms for each frame give 63% and 2%)."
)

FIGURE = Figure(
    name="fig-10.1.4",
    title="CPU utilisation of ten brokers in a line",
    reference="[THESIS 10.1.1, Fig. 10.1.4]",
    claim=(
        "FBR: every broker about 63%. D-DBR: first and last over 60%, about 2% between. MERC: first, middle and last "
        "over 60%."
    ),
    setting=(
        "Ten brokers in a line, 2,000 subscriptions, 3,000 publications a minute. Utilisation is the share of "
        "publishing time that a broker works, by the cost profile padres-2015."
    ),
    points=points,
    rows=rows,
    tables=("broker_load",),
    panels=(
        Panel(
            BUSY,
            "CPU utilisation by broker",
            "broker, from the publisher's to the subscribers'",
            "% of publishing time",
            kind="bars",
            paper=(PaperPoint("FBR", 4, 63), PaperPoint("D-DBR", 4, 2)),
        ),
    ),
    claims=(
        Claim(
            "FBR: least busy broker",
            63,
            lambda results: min(results.values(BUSY, "FBR"), default=None),
            unit="%",
            why=ORIGIN,
        ),
        Claim(
            "D-DBR: first and last broker",
            60,
            lambda results: _least(results, "D-DBR", 1, LONGEST),
            unit="%",
            relation="more than",
        ),
        Claim("D-DBR: brokers between", 2, _between, unit="%"),
        Claim(
            "MERC: first and last broker",
            60,
            lambda results: _least(results, "MERC", 1, LONGEST),
            unit="%",
            relation="more than",
        ),
        Claim("MERC: middle broker", 60, _merc_middle, unit="%", relation="more than"),
    ),
    shapes=(Shape("under MERC three brokers are busy, the others hardly", _only_three_are_busy),),
    minutes={"quick": 0.3, "paper": 1},
    has_generated_quotes=True,
)
