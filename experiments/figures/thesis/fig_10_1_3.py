"""[THESIS Fig. 10.1.3]: latency on a line of 1 to 10 brokers with 2000 subscriptions."""

from __future__ import annotations

from experiments.figures.setups.line import latency_figure

FIGURE = latency_figure(
    "fig-10.1.3",
    subscriptions=2000,
    minutes={"quick": 0.5, "paper": 4},
    claim="D-DBR's and MERC's advantage grows further; MERC's latency is about 1.5 times D-DBR's.",
)
