"""A discrete-event simulation of brokers: SimPy drives the unchanged broker core in virtual time. Of the broker
packages it may import core, trace and wire.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from broker.simulation.cost_file import NATIVE, CostFileError, IndexCosts, MeasuredCosts, read_costs
    from broker.simulation.costs import PADRES_2015, CostProfile
    from broker.simulation.simulated_overlay import SimulatedOverlay

__all__ = [
    "NATIVE",
    "PADRES_2015",
    "CostFileError",
    "CostProfile",
    "IndexCosts",
    "MeasuredCosts",
    "SimulatedOverlay",
    "read_costs",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "CostFileError": "broker.simulation.cost_file",
        "CostProfile": "broker.simulation.costs",
        "IndexCosts": "broker.simulation.cost_file",
        "MeasuredCosts": "broker.simulation.cost_file",
        "NATIVE": "broker.simulation.cost_file",
        "PADRES_2015": "broker.simulation.costs",
        "SimulatedOverlay": "broker.simulation.simulated_overlay",
        "read_costs": "broker.simulation.cost_file",
    },
)
