"""A strict reader for the part of YAML that deployment files use; anything else fails."""

from __future__ import annotations

import json
import re
from typing import Any

_PLAIN_KEY = re.compile(r"([A-Za-z_][A-Za-z0-9_./-]*):(?: (.*))?")
_WORDS = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}


def read_documents(text: str) -> list[Any]:
    return [read_yaml(part) for part in text.split("---\n")]


def read_yaml(text: str) -> Any:
    assert text.endswith("\n")
    assert "\t" not in text
    lines = text[:-1].split("\n")
    content, rest = _block(lines, 0)
    assert not rest, f"not read: {rest[:3]}"
    return content


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _block(lines: list[str], indent: int) -> tuple[Any, list[str]]:
    first = lines[0]
    assert _indent(first) == indent, f"indented by {_indent(first)}, not {indent}: {first!r}"
    if first[indent:].startswith("- "):
        return _list(lines, indent)
    if _entry(first[indent:]) is not None:
        return _map(lines, indent)
    return _scalar(first[indent:]), lines[1:]


def _list(lines: list[str], indent: int) -> tuple[list[Any], list[str]]:
    items = []
    while lines and _indent(lines[0]) == indent and lines[0][indent:].startswith("- "):
        # What stands behind the dash is a block of its own, two further in.
        lines = [" " * (indent + 2) + lines[0][indent + 2 :], *lines[1:]]
        item, lines = _block(lines, indent + 2)
        items.append(item)
    return items, lines


def _map(lines: list[str], indent: int) -> tuple[dict[str, Any], list[str]]:
    content: dict[str, Any] = {}
    while lines and _indent(lines[0]) == indent and (entry := _entry(lines[0][indent:])) is not None:
        key, value = entry
        assert key not in content, f"twice: {key}"
        lines = lines[1:]
        if value is None:
            content[key], lines = _block(lines, indent + 2)
        else:
            content[key] = _scalar(value)
    return content, lines


def _entry(text: str) -> tuple[str, str | None] | None:
    plain = _PLAIN_KEY.fullmatch(text)
    if plain:
        assert plain[1].lower() not in _WORDS, f"{plain[1]} is no string in YAML"
        return plain[1], plain[2]
    if text.startswith('"'):
        key, end = json.JSONDecoder().raw_decode(text)
        if text[end : end + 1] == ":":
            assert text[end + 1 : end + 2] in ("", " ")
            return key, text[end + 2 :] or None
    return None


def _scalar(text: str) -> Any:
    value = json.loads(text)
    assert text in ("{}", "[]") or not isinstance(value, dict | list)
    assert text.isascii()
    return value
