"""Parameters of a small overlay for each topology model."""

from __future__ import annotations

EXAMPLES: dict[str, dict[str, object]] = {
    "line": {"brokers": 24},
    "ring": {"brokers": 24},
    "star": {"brokers": 24},
    "tree": {"brokers": 24, "branching": 3},
    "random": {"brokers": 24, "degree": 3.5},
    "random-regular": {"brokers": 24, "degree": 3},
    "pure-random": {"brokers": 24, "alpha": 0.3},
    "waxman-1": {"brokers": 24, "degree": 5, "beta": 0.4},
    "waxman-2": {"brokers": 24, "degree": 5, "beta": 0.4},
    "exponential": {"brokers": 24, "degree": 5},
    "doar-leslie": {"brokers": 24, "degree": 5, "gamma": 50},
    "locality": {"brokers": 24, "degree": 6, "gamma": 0.3},
    "hierarchy": {"levels": [4, 6], "degree": 3.5, "joins": 2},
    "transit-stub": {"transit_nodes": 4, "stub_nodes": 5, "degree": 3},
}
