"""Durations as people write them: 500ms, 20s, 1.5m, 2h."""

from __future__ import annotations

import re

_UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000, "m": 60_000_000_000, "h": 3_600_000_000_000}
_FORM = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+)")


class DurationError(ValueError):
    """A text that is no duration."""

    exit_code = 2


def parse_duration(text: str, option: str = "") -> int:
    """The duration in nanoseconds. An error names the option that it was given for."""
    form = _FORM.fullmatch(text.strip())
    if form is None or form[2] not in _UNITS:
        given = f"{option}: {text!r}" if option else repr(text)
        raise DurationError(
            f"{given} is not a duration; write a number and a unit ({', '.join(_UNITS)}), as 500ms or 20s"
        )
    return round(float(form[1]) * _UNITS[form[2]])


def format_duration(ns: int) -> str:
    """The shortest form that reads back as the same duration."""
    for unit, size in reversed(_UNITS.items()):
        if ns % size == 0 and ns >= size:
            return f"{ns // size}{unit}"
    return "0s"
