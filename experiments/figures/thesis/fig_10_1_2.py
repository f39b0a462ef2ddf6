"""[THESIS Fig. 10.1.2]: latency on a line of 1 to 10 brokers with 800 subscriptions."""

from __future__ import annotations

from experiments.figures.setups.line import latency_figure

FIGURE = latency_figure(
    "fig-10.1.2",
    subscriptions=800,
    minutes={"quick": 0.2, "paper": 1.5},
    claim="FBR's latency grows fast with the number of brokers, D-DBR's and MERC's only slightly.",
)
