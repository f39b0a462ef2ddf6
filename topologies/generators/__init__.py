"""Generators of overlays: flat models, hierarchies and transit-stub, after GT-ITM. Of `topologies` it may import the
modules at its top, and no other subpackage.
"""

from topologies.generators.edge_models import EDGE_MODELS, EdgeModel
from topologies.generators.hierarchy import hierarchy
from topologies.generators.transit_stub import TransitStubShape, transit_stub

__all__ = ["EDGE_MODELS", "EdgeModel", "TransitStubShape", "hierarchy", "transit_stub"]
