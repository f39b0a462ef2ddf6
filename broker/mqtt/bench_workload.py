"""Readings of devices, and content subscriptions. Each reading matches exactly one of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

TOPIC = "devices/{room}/thermometer"
ROOMS = 50
LOWEST = 15.0
SPAN = 20.0


@dataclass(frozen=True, slots=True)
class Reading:
    room: str
    payload: bytes


def reading(draws: Random, number: int) -> Reading:
    """Draws a reading of about 100 bytes of JSON."""
    temperature = round(LOWEST + SPAN * draws.random() * 0.999_999, 6)
    fields = {"temperature": temperature, "humidity": draws.randrange(100), "battery": 0.93, "number": number}
    return Reading(f"room-{draws.randrange(ROOMS)}", json.dumps({**fields, "firmware": "2026.11-r3"}).encode())


def expressions(count: int) -> Iterator[tuple[str, str]]:
    """Yields names and expressions. The temperature bands of a room cover the whole range without overlap."""
    bands = count // ROOMS
    for room in range(ROOMS):
        for band in range(bands):
            low, high = (LOWEST + SPAN * edge / bands for edge in (band, band + 1))
            yield (
                f"room-{room}/band-{band}",
                f"room = 'room-{room}' AND temperature >= {low!r} AND temperature < {high!r}",
            )
