"""[THESIS Fig. 10.1.19]: deliveries when connections fail."""

from __future__ import annotations

from experiments.figures.setups.failures import failures_figure

FIGURE = failures_figure(
    "fig-10.1.19",
    what="connections",
    key="share_of_links",
    paper={"D-DBR": 86.2, "FBR": 17.5},
    why={
        "D-DBR": "Half the links leave degree 3: some nine tenths of the brokers still hang together.",
        "FBR": "All links of the tree's way must be alive: half to the power of its hops, which are 2.8 on average.",
    },
    minutes={"quick": 0.2, "paper": 10},
)
