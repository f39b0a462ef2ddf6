"""[THESIS Fig. 10.1.7]: memory of 20 brokers, subscriptions by Zipf."""

from __future__ import annotations

from experiments.figures.figure import Figure, Panel, Rows, Shape
from experiments.figures.setups.twenty_brokers import SETTING, ZIPF, by_broker, points

STORED = "stored"


def _fbr_stores_more(rows: Rows) -> bool | None:
    pairs = list(zip(rows.values(STORED, "FBR"), rows.values(STORED, "D-DBR"), strict=False))
    is_never_less = all(fbr >= ddbr for fbr, ddbr in pairs)
    return is_never_less and sum(fbr > ddbr for fbr, ddbr in pairs) >= 0.8 * len(pairs) if pairs else None


FIGURE = Figure(
    name="fig-10.1.7",
    title="Memory of 20 brokers, Zipf: subscriptions stored",
    reference="[THESIS 10.1.1, Fig. 10.1.7]",
    claim="FBR takes more memory on almost every broker, though the difference is not as pronounced as in CPU.",
    setting=(
        f"Subscriptions by Zipf, 0.5. {SETTING} A simulated broker has no memory of its own to measure. Shown is what "
        "fills it: the subscriptions, with all copies, that a broker stores."
    ),
    points=lambda scale: points(scale, ZIPF),
    rows=by_broker(STORED, "broker_state", "stored_subscriptions"),
    tables=("broker_state",),
    panels=(Panel(STORED, "Subscriptions stored by broker", "broker", "subscriptions, with copies", kind="bars"),),
    claims=(),
    shapes=(
        Shape("FBR stores more on at least eight of ten brokers, and on none less", _fbr_stores_more),
        Shape(
            "the difference in memory is smaller than in CPU",
            lambda rows: (rows.mean(STORED, "FBR") or 0) < 75.4 / 6 * (rows.mean(STORED, "D-DBR") or 0),
            why="Against the paper's 75.4% to 6% in CPU. A process has memory beside its tables, which ours lack.",
        ),
    ),
    minutes={"quick": 0.6, "paper": 3},
    has_generated_quotes=True,
)
