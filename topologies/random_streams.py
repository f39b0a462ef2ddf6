"""Random streams by name: every part of an overlay or of an experiment draws from its own.

A stream is seeded by SHA-256 of the seed and the stream's name. Adding a part, or drawing more in one, therefore leaves
the others as they were.
"""

from __future__ import annotations

import hashlib
import random


def stream(seed: int, name: str) -> random.Random:
    """Return the generator of the stream `name` under `seed`: the same on every machine."""
    digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    return random.Random(int.from_bytes(digest, "big"))
