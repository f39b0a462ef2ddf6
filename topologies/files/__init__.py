"""Overlays as files: TOML, and GT-ITM's alt format. Of `topologies` it may import clustering and the modules at its
top.
"""

from topologies.files.gtitm import read_alt_file, write_alt_file
from topologies.files.toml import (
    OverlayFile,
    format_array_table,
    format_overlay,
    parse_overlay,
    read_overlay_file,
    write_overlay_file,
)

__all__ = [
    "OverlayFile",
    "format_array_table",
    "format_overlay",
    "parse_overlay",
    "read_alt_file",
    "read_overlay_file",
    "write_alt_file",
    "write_overlay_file",
]
