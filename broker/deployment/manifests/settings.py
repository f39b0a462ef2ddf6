"""What the kinds of files share."""

from __future__ import annotations

from dataclasses import dataclass

USER_ID = 10_001
"""Of the user in containers, who is not root."""

HEALTH_SCRIPT = "import urllib.request as r; r.urlopen('http://127.0.0.1:{port}/healthz', timeout=3)"
"""For Python, which is there wherever a broker is: fails unless the broker serves."""


@dataclass(frozen=True, slots=True)
class Resources:
    """Limits for one broker."""

    memory_mib: int = 512
    cpus: float = 1.0
