"""[THESIS Fig. 10.1.18]: deliveries when brokers fail."""

from __future__ import annotations

from experiments.figures.setups.failures import failures_figure

FIGURE = failures_figure(
    "fig-10.1.18",
    what="brokers",
    key="share_of_brokers",
    paper={"D-DBR": 21.8, "FBR": 8.7},
    why={
        "D-DBR": "A quarter of the pairs has both brokers alive, and nearly nine tenths of these are still connected.",
        "FBR": "Besides, all brokers on the tree's way must be alive, and trees are not repaired.",
    },
    minutes={"quick": 0.2, "paper": 10},
)
