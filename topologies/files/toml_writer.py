"""Writes values as TOML text. The standard library only reads TOML."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time

TomlValue = str | bool | int | float | datetime | date | time | Sequence["TomlValue"] | Mapping[str, "TomlValue"]

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def toml_value(value: TomlValue) -> str:
    """Returns the value on one line. Tables become inline tables."""
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, Mapping):
        return "{" + ", ".join(toml_line(key, item) for key, item in value.items()) + "}"
    return "[" + ", ".join(toml_value(item) for item in value) + "]"


def toml_line(key: str, value: TomlValue) -> str:
    """Returns `key = value`."""
    return f"{key if _BARE_KEY.fullmatch(key) else _quoted(key)} = {toml_value(value)}"


def _quoted(text: str) -> str:
    return '"' + "".join(_escaped(character) for character in text) + '"'


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if ord(character) < 0x20 or character == "\x7f":
        return f"\\u{ord(character):04X}"
    return character
