"""The text form of publications: `symbol=IBM price=92.5 urgent=true note='two words'`, or a JSON object.

Spaces separate the pairs. A value is a number, `true` or `false`, a string in quotes, or one plain word, which is a
string. Quotes are single or double; a doubled quote is one quote inside. A name that is not plain is in double quotes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from matching.errors import MatchingError, PublicationError, ValueRefusedError
from matching.expressions.printing import PLAIN_NAME, value_text
from matching.expressions.values import Publication, Value, check_publication
from matching.languages.parser import quoted
from matching.languages.tokens import NOT_NUMBERS, NUMBER, parse_number

_NAME = re.compile(r"""[^\s='"{},]+|"[^"]*(?:""[^"]*)*"(?!")""")
_VALUE = re.compile(r"""[^\s'"]+|'[^']*(?:''[^']*)*'(?!')|"[^"]*(?:""[^"]*)*"(?!")""")
_SPACE = re.compile(r"\s*")


def parse_publication(text: str) -> dict[str, Value]:
    """Parses a publication in either form."""
    stripped = text.strip()
    pairs = _json_pairs(stripped) if stripped.startswith("{") else _plain_pairs(text)
    publication: dict[str, object] = {}
    for name, value in pairs:
        if name in publication:
            raise PublicationError(f"attribute {name!r} occurs twice")
        publication[name] = value
    return check_publication(publication)


def to_publication_text(publication: Publication) -> str:
    """Writes the publication as pairs. They parse back to the same publication if its numbers are finite."""
    return " ".join(f"{_name_text(name)}={_value_text(value)}" for name, value in publication.items())


def _name_text(name: str) -> str:
    return name if PLAIN_NAME.fullmatch(name) else '"' + name.replace('"', '""') + '"'


def _value_text(value: Value) -> str:
    if isinstance(value, str) and PLAIN_NAME.fullmatch(value) and value.lower() not in _RESERVED:
        return value
    return value_text(value).lower() if isinstance(value, bool) else value_text(value)


_RESERVED = NOT_NUMBERS | {"true", "false"}


def _plain_pairs(text: str) -> Iterable[tuple[str, Value]]:
    position = _SPACE.match(text).end()  # type: ignore[union-attr]
    while position < len(text):
        name = _NAME.match(text, position)
        if name is None or not text.startswith("=", name.end()):
            raise _refused(text, position, "is not name=value; a value with spaces stands in quotes: name='two words'")
        value = _VALUE.match(text, name.end() + 1)
        if value is None:
            is_open = text[name.end() + 1 : name.end() + 2] in ("'", '"')
            raise _refused(text, position, "has a quote that is not closed" if is_open else "has no value")
        end = _SPACE.match(text, value.end())
        assert end is not None
        if end.end() == value.end() < len(text):
            raise _refused(text, position, "goes on after its value; a value with quotes inside stands in quotes")
        yield _unquoted(name.group()), _plain_value(name.group(), value.group())
        position = end.end()


def _refused(text: str, position: int, problem: str) -> PublicationError:
    word = text[position:].split(maxsplit=1)[0]
    return PublicationError(f"column {position + 1}: {quoted(word)} {problem}")


def _plain_value(name: str, word: str) -> Value:
    if word[0] in "'\"":
        return _unquoted(word)
    if NUMBER.fullmatch(word):
        try:
            return parse_number(word)
        except ValueRefusedError as error:
            raise PublicationError(f"attribute {name!r}: {error}") from None
    if word.lstrip("+-").lower() in NOT_NUMBERS:
        raise PublicationError(f"attribute {name!r}: {word} is not a value; for the string write {name}=\"'{word}'\"")
    return {"true": True, "false": False}.get(word.lower(), word)


def _unquoted(word: str) -> str:
    return word[1:-1].replace(word[0] * 2, word[0]) if word[0] in "'\"" else word


def _json_pairs(text: str) -> list[tuple[str, object]]:
    try:
        pairs = json.loads(text, object_pairs_hook=_Pairs, parse_constant=_refuse_constant)
    except MatchingError:
        raise
    except json.JSONDecodeError as error:
        problem = f"line {error.lineno}, column {error.colno}: not JSON: {error.msg}"
        raise PublicationError(problem) from None
    except (ValueError, RecursionError):
        # The text has thousands of digits or brackets. Neither can be part of a publication.
        raise PublicationError("the JSON object holds a number or a nesting that no publication can have") from None
    assert isinstance(pairs, _Pairs)
    return [(name, dict(value) if isinstance(value, _Pairs) else value) for name, value in pairs]


class _Pairs(list[tuple[str, object]]):
    """The members of a JSON object as a list, so that a duplicate name can be detected."""


def _refuse_constant(word: str) -> Value:
    raise PublicationError(f"{word} is not a value")
