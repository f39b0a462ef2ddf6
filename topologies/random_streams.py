"""Named streams of randomness: what one part draws never shifts what another part draws."""

from __future__ import annotations

import hashlib
import random


def stream(seed: int, name: str) -> random.Random:
    """Return the generator of the stream `name` under `seed`: the same on every machine."""
    digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    return random.Random(int.from_bytes(digest, "big"))
