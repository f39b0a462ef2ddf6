"""[THESIS Fig. 10.1.6]: CPU utilisation of 20 brokers, subscriptions by Zipf."""

from __future__ import annotations

from experiments.figures.figure import Claim, Figure, Panel, Rows, Shape
from experiments.figures.setups.twenty_brokers import SETTING, ZIPF, by_broker, points

BUSY = "busy"


def _busiest(rows: Rows) -> float | None:
    """The number of the broker that is busiest under FBR."""
    line = rows.line(BUSY, "FBR")
    return float(max(line, key=lambda broker_and_share: broker_and_share[1])[0]) if line else None


def _same_under_ddbr(rows: Rows) -> float | None:
    broker = _busiest(rows)
    return None if broker is None else rows.y(BUSY, "D-DBR", int(broker))


def _fbr_works_more(rows: Rows) -> bool | None:
    pairs = list(zip(rows.values(BUSY, "FBR"), rows.values(BUSY, "D-DBR"), strict=False))
    return sum(fbr > ddbr for fbr, ddbr in pairs) >= 0.8 * len(pairs) if pairs else None


FIGURE = Figure(
    name="fig-10.1.6",
    title="CPU utilisation of 20 brokers, Zipf",
    reference="[THESIS 10.1.1, Fig. 10.1.6]",
    claim="FBR takes more CPU on almost every broker; on one, 75.4% against D-DBR's 6%.",
    setting=f"Subscriptions by Zipf, 0.5. {SETTING} The cost profile is padres-2015.",
    points=lambda scale: points(scale, ZIPF),
    rows=by_broker(BUSY, "broker_load", "busy_share", factor=100),
    tables=("broker_load",),
    panels=(Panel(BUSY, "CPU utilisation by broker", "broker", "% of publishing time", kind="bars"),),
    claims=(
        Claim(
            "FBR: busiest broker",
            75.4,
            lambda rows: max(rows.values(BUSY, "FBR"), default=None),
            unit="%",
            why="No independent evidence: the publishing rate was chosen by this number.",
        ),
        Claim(
            "D-DBR: the same broker",
            6,
            _same_under_ddbr,
            unit="%",
            why=(
                "Ours at the same rate. A broker under D-DBR matches what its own publishers publish and what its "
                "subscribers get; how many of each it has is a matter of the draw."
            ),
        ),
    ),
    shapes=(Shape("FBR takes more CPU on at least eight of ten brokers", _fbr_works_more),),
    minutes={"quick": 0.6, "paper": 3},
    has_generated_quotes=True,
)
