"""A discrete-event simulation of brokers: SimPy drives the unchanged broker core in virtual time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from broker.simulation.costs import CostProfile
    from broker.simulation.simulated_overlay import SimulatedOverlay

__all__ = ["CostProfile", "SimulatedOverlay"]

__getattr__ = lazy_exports(
    __name__,
    {
        "CostProfile": "broker.simulation.costs",
        "SimulatedOverlay": "broker.simulation.simulated_overlay",
    },
)
