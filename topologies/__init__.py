"""Overlays of brokers as data: generators, clusters and files. It imports no other package of the project.

`generate("transit-stub", {"degree": 6}, seed=7)` generates an overlay with the named model. `cluster_by_size` and
`cluster_by_domain` divide it into clusters. `read_overlay_file` and `write_overlay_file` read and write TOML. Only
`topologies.drawing` loads networkx and matplotlib, when it draws. The names of this package are imported on first use,
because a broker reads overlay files and needs no generators.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from topologies.broker_and_link import Broker, Link
    from topologies.clustering.clusters import cluster_by_domain, cluster_by_size
    from topologies.errors import OverlayError, OverlayFileError, ParameterError, PictureError, TopologyError
    from topologies.files.gtitm import read_alt_file, write_alt_file
    from topologies.files.toml import OverlayFile, read_overlay_file, write_overlay_file
    from topologies.overlay import Overlay
    from topologies.registry import MODELS, generate
    from topologies.summary import Summary, summarise

_MODULES = {
    "Broker": "topologies.broker_and_link",
    "Link": "topologies.broker_and_link",
    "MODELS": "topologies.registry",
    "Overlay": "topologies.overlay",
    "OverlayError": "topologies.errors",
    "OverlayFile": "topologies.files.toml",
    "OverlayFileError": "topologies.errors",
    "ParameterError": "topologies.errors",
    "PictureError": "topologies.errors",
    "Summary": "topologies.summary",
    "TopologyError": "topologies.errors",
    "cluster_by_domain": "topologies.clustering.clusters",
    "cluster_by_size": "topologies.clustering.clusters",
    "generate": "topologies.registry",
    "read_alt_file": "topologies.files.gtitm",
    "read_overlay_file": "topologies.files.toml",
    "summarise": "topologies.summary",
    "write_alt_file": "topologies.files.gtitm",
    "write_overlay_file": "topologies.files.toml",
}

__all__ = [
    "MODELS",
    "Broker",
    "Link",
    "Overlay",
    "OverlayError",
    "OverlayFile",
    "OverlayFileError",
    "ParameterError",
    "PictureError",
    "Summary",
    "TopologyError",
    "cluster_by_domain",
    "cluster_by_size",
    "generate",
    "read_alt_file",
    "read_overlay_file",
    "summarise",
    "write_alt_file",
    "write_overlay_file",
]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'topologies' has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)
