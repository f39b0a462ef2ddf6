"""The memory of this process."""

from __future__ import annotations

import resource
import sys
from pathlib import Path


def memory_bytes() -> int:
    """What the process holds now; where the system does not tell, the most that it held."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * resource.getpagesize()
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
