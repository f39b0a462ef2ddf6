"""[THESIS Fig. 10.1.5]: latency over five minutes on 20 brokers, subscriptions by Zipf."""

from __future__ import annotations

from experiments.figures.figure import Claim, Figure, Panel, Rows, Shape
from experiments.figures.setups.twenty_brokers import LATENCY, SETTING, STEP_S, ZIPF, over_time, points


def _spread(rows: Rows, series: str) -> float | None:
    """The difference of the largest and the smallest mean of a step, in milliseconds.

    The first step is left out, because overlay and queues are not steady yet.
    """
    values = rows.values(LATENCY, series)[1:]
    return max(values) - min(values) if values else None


def _ddbr_is_steadier(rows: Rows) -> bool | None:
    fbr, ddbr = _spread(rows, "FBR"), _spread(rows, "D-DBR")
    return None if fbr is None or ddbr is None else ddbr < fbr


ABSOLUTE = (
    "Absolute times depend on the publishing rate and on the number of subscriptions (100 to 800 each in the paper), "
    "neither of which is stated for this figure. Ours has one match at the source and one at the destination."
)
FBR_ABSOLUTE = (
    "With our 100 subscriptions each, a broker of FBR stores some 8,000 copies on average and takes about 50 ms for "
    "each match, several times on the way. Fewer subscriptions at a higher rate keep brokers as busy and give lower "
    "latencies; which the paper had is not stated. Our publishers publish at even distances, so FBR's latency varies "
    "less than the paper's."
)

FIGURE = Figure(
    name="fig-10.1.5",
    title="Latency over five minutes on 20 brokers, Zipf",
    reference="[THESIS 10.1.1, Fig. 10.1.5]",
    claim="D-DBR's latency is steady at about 35 ms, FBR's varies between 77 and 200 ms.",
    setting=f"Subscriptions by Zipf, 0.5. {SETTING} Means of {STEP_S:g} s.",
    points=lambda scale: points(scale, ZIPF),
    rows=over_time,
    tables=("latency_over_time",),
    step_s=STEP_S,
    panels=(Panel(LATENCY, "Mean latency over time", "seconds of publishing", "milliseconds"),),
    claims=(
        Claim("D-DBR: mean", 35, lambda rows: rows.mean(LATENCY, "D-DBR"), unit=" ms", why=ABSOLUTE),
        Claim(
            "FBR: lowest",
            77,
            lambda rows: min(rows.values(LATENCY, "FBR"), default=None),
            unit=" ms",
            why=FBR_ABSOLUTE,
        ),
        Claim(
            "FBR: highest",
            200,
            lambda rows: max(rows.values(LATENCY, "FBR"), default=None),
            unit=" ms",
        ),
    ),
    shapes=(
        Shape(
            "D-DBR's latency is below half of FBR's",
            lambda rows: (rows.mean(LATENCY, "D-DBR") or 0) * 2 < (rows.mean(LATENCY, "FBR") or 0),
        ),
        Shape("D-DBR's latency varies by fewer milliseconds than FBR's", _ddbr_is_steadier),
    ),
    minutes={"quick": 0.6, "paper": 3},
    has_generated_quotes=True,
)
