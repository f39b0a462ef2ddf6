"""[THESIS Fig. 10.1.1]: latency on a line of 1 to 10 brokers with 100 subscriptions."""

from __future__ import annotations

from experiments.figures.setups.line import latency_figure

FIGURE = latency_figure(
    "fig-10.1.1",
    subscriptions=100,
    minutes={"quick": 0.1, "paper": 0.5},
    claim="The latency of all three grows with the number of brokers; D-DBR and MERC stay below FBR.",
)
