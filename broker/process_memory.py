"""The memory of this process."""

from __future__ import annotations

import resource
import sys
from pathlib import Path


def memory_bytes() -> int:
    """Resident memory. On systems without /proc, the peak of resident memory since the process started."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * resource.getpagesize()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
