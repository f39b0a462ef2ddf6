"""Durations as text with a unit: 500ms, 20s, 1.5m, 2h."""

from __future__ import annotations

import re

_UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000, "m": 60_000_000_000, "h": 3_600_000_000_000}
_FORMAT = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+)")


_LONGEST = (1 << 63) - 1


class Duration(int):
    """A duration in nanoseconds."""


class PositiveDuration(Duration):
    """A duration above 0."""


class DurationError(ValueError):
    """The text is not a duration."""

    exit_code = 2


def parse_duration(text: str, option: str = "") -> int:
    """Returns the duration in nanoseconds. An error names `option`, the command-line option that has the value."""
    match = _FORMAT.fullmatch(text.strip())
    given = f"{option}: {text!r}" if option else repr(text)
    if match is None or match[2] not in _UNITS:
        raise DurationError(
            f"{given} is not a duration; write a number and a unit ({', '.join(_UNITS)}), as 500ms or 20s"
        )
    ns = float(match[1]) * _UNITS[match[2]]
    if ns > _LONGEST:
        raise DurationError(f"{given} is too long; the longest duration is 292 years")
    return round(ns)


def format_duration(ns: int) -> str:
    """Returns the shortest text that `parse_duration` reads as the same duration."""
    for unit, size in reversed(_UNITS.items()):
        if ns % size == 0 and ns >= size:
            return f"{ns // size}{unit}"
    return "0s"
