"""Named random streams: every part of an overlay or of an experiment has its own.

A stream is seeded by SHA-256 of the seed and the stream's name. So adding a part, or drawing more numbers in one, does
not change the others.
"""

from __future__ import annotations

import hashlib
import random


def stream(seed: int, name: str) -> random.Random:
    """Returns the generator of the stream `name` for `seed`. It is the same on every machine."""
    digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    return random.Random(int.from_bytes(digest, "big"))
