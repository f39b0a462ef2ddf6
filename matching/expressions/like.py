"""Converts LIKE patterns to operators that indexes support.

`%` matches any text, and `_` matches any one character. Most patterns are a prefix, a suffix, a substring or a plain
string. They become `STARTS WITH`, `ENDS WITH`, `CONTAINS` or `=`. All others become an anchored regular expression.
"""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

from matching.errors import ExpressionError
from matching.expressions.model import Operator


class _Wildcard(Enum):
    ANY_TEXT = "%"
    ONE_CHARACTER = "_"


_Part: TypeAlias = str | _Wildcard


def like_operator(pattern: str, escape: str | None = None) -> tuple[Operator, str]:
    """Returns the operator that is equivalent to `LIKE pattern`, and its operand."""
    parts = _split(pattern, escape)
    starts_open = parts[:1] == [_Wildcard.ANY_TEXT]
    ends_open = parts[-1:] == [_Wildcard.ANY_TEXT]
    inner = parts[starts_open : len(parts) - (ends_open and len(parts) > 1)]
    literal = "".join(part for part in inner if isinstance(part, str))
    if len(literal) != len(inner):
        return Operator.MATCHES, _regular_expression(parts)
    if starts_open and ends_open:
        # A single % matches every string.
        return (Operator.CONTAINS, literal) if literal else (Operator.STARTS_WITH, "")
    if starts_open:
        return Operator.ENDS_WITH, literal
    return (Operator.STARTS_WITH if ends_open else Operator.EQ), literal


def _split(pattern: str, escape: str | None) -> list[_Part]:
    """Splits the pattern into characters and wildcards. Several % in a row become one."""
    if escape is not None and len(escape) != 1:
        raise ExpressionError(f"ESCAPE takes one character, not {escape!r}")
    parts: list[_Part] = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            escaped = next(characters, "")
            if escaped not in ("%", "_", escape):
                followed = f"by {escaped!r}" if escaped else "by nothing"
                raise ExpressionError(
                    f"LIKE {pattern!r}: the escape {escape!r} is followed {followed}, not by %, _ or itself"
                )
            parts.append(escaped)
        elif character == "_":
            parts.append(_Wildcard.ONE_CHARACTER)
        elif character != "%":
            parts.append(character)
        elif parts[-1:] != [_Wildcard.ANY_TEXT]:
            parts.append(_Wildcard.ANY_TEXT)
    return parts


def _regular_expression(parts: list[_Part]) -> str:
    return r"(?s)\A" + "".join(map(_regular_part, parts)) + r"\z"


def _regular_part(part: _Part) -> str:
    if isinstance(part, _Wildcard):
        return ".*" if part is _Wildcard.ANY_TEXT else "."
    if part.isalnum() or part == "_" or not part.isascii():
        return part
    return "\\" + part if part.isprintable() else f"\\x{ord(part):02x}"
