"""[THESIS Fig. 10.1.8]: latency over five minutes on 20 brokers, subscriptions uniform."""

from __future__ import annotations

from experiments.figures.figure import Figure, Panel, Rows, Shape
from experiments.figures.setups.twenty_brokers import LATENCY, SETTING, STEP_S, UNIFORM, ZIPF, over_time, points


def _of(rows: Rows, protocol: str, distribution: str) -> float:
    return rows.mean(LATENCY, f"{protocol}, {distribution}") or 0.0


FIGURE = Figure(
    name="fig-10.1.8",
    title="Latency over five minutes on 20 brokers, uniform",
    reference="[THESIS 10.1.1, Fig. 10.1.8]",
    claim="Against Zipf, FBR's latency is lower and D-DBR's slightly higher; D-DBR is still much better.",
    setting=f"Subscriptions uniform, beside those by Zipf of Fig. 10.1.5. {SETTING} Means of {STEP_S:g} s.",
    points=lambda scale: [
        *points(scale, UNIFORM, "{protocol}, uniform"),
        *points(scale, ZIPF, "{protocol}, Zipf"),
    ],
    rows=over_time,
    tables=("latency_over_time",),
    step_s=STEP_S,
    panels=(Panel(LATENCY, "Mean latency over time", "seconds of publishing", "milliseconds"),),
    claims=(),
    shapes=(
        Shape(
            "D-DBR's latency is below half of FBR's",
            lambda rows: _of(rows, "D-DBR", "uniform") * 2 < _of(rows, "FBR", "uniform"),
        ),
        Shape(
            "FBR's latency is lower than under Zipf",
            lambda rows: _of(rows, "FBR", "uniform") < _of(rows, "FBR", "Zipf"),
            why=(
                "In our workload the distribution decides which symbols are asked for, and not at which brokers "
                "subscriptions are: each subscriber has as many as any other. What FBR pays for are copies stored, "
                "which hardly change; the paper's uniform distribution also evens out brokers' loads."
            ),
        ),
        Shape(
            "D-DBR's latency is higher than under Zipf",
            lambda rows: _of(rows, "D-DBR", "uniform") > _of(rows, "D-DBR", "Zipf"),
            why="As above: the distribution moves little in our workload.",
        ),
    ),
    minutes={"quick": 1.2, "paper": 6},
    has_generated_quotes=True,
)
