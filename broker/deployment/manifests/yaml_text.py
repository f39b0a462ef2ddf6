"""A YAML writer for deployment files: mappings, lists, strings, numbers and booleans, in block form.

Strings are quoted as in JSON, which is valid YAML. No reader can therefore mistake one for a number, date or boolean.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

Yaml: TypeAlias = "Mapping[str, Yaml] | Sequence[Yaml] | str | int | float | bool"

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")

_WORDS = ("y", "n", "yes", "no", "on", "off", "true", "false", "null")


def to_yaml(content: Yaml) -> str:
    """Returns one YAML document."""
    return "\n".join(_lines(content)) + "\n"


def to_documents(contents: Iterable[Yaml]) -> str:
    return "---\n".join(to_yaml(each) for each in contents)


def _lines(content: Yaml) -> list[str]:
    if isinstance(content, Mapping) and content:
        return [line for key, value in content.items() for line in _entry(f"{_key(key)}:", value)]
    if _is_list(content) and content:
        assert isinstance(content, Sequence)
        return [line for each in content for line in _item(each)]
    return [_scalar(content)]


def _entry(head: str, value: Yaml) -> list[str]:
    if isinstance(value, Mapping | Sequence) and not isinstance(value, str) and value:
        return [head, *(f"  {line}" for line in _lines(value))]
    return [f"{head} {_scalar(value)}"]


def _item(value: Yaml) -> list[str]:
    first, *rest = _lines(value)
    return [f"- {first}", *(f"  {line}" for line in rest)]


def _is_list(content: Yaml) -> bool:
    return isinstance(content, Sequence) and not isinstance(content, str)


def _scalar(value: Yaml) -> str:
    if isinstance(value, Mapping):
        return "{}"
    if _is_list(value):
        return "[]"
    # json.dumps writes ASCII only. That matters because YAML treats some characters in JSON strings as line ends.
    return json.dumps(value)


def _key(key: str) -> str:
    return key if _PLAIN_KEY.fullmatch(key) and key.lower() not in _WORDS else json.dumps(key)
