"""Overlays of brokers as data: generators, clusters and files.

`generate("transit-stub", {"degree": 6}, seed=7)` makes an overlay by a model's name, `cluster_by_size` and
`cluster_by_domain` put it into clusters, `read_overlay_file` and `write_overlay_file` keep it as TOML. Nothing here
loads networkx or matplotlib; only `topologies.picture` does, when it draws.
"""

from topologies.clusters import cluster_by_domain, cluster_by_size
from topologies.elements import Broker, Link
from topologies.errors import OverlayError, OverlayFileError, ParameterError, PictureError, TopologyError
from topologies.gtitm_file import read_alt_file, write_alt_file
from topologies.overlay import Overlay
from topologies.registry import MODELS, generate
from topologies.summary import Summary, summarise
from topologies.toml_file import OverlayFile, read_overlay_file, write_overlay_file

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
