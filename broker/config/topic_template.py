"""Topic templates: `devices/{room}/{sensor}` matches `devices/lab/t1` and yields room = 'lab' and sensor = 't1'.

A level in braces becomes an attribute: a string, unless the template says `{floor:number}` or `{indoors:boolean}`.
`+` matches any level. `#` at the end matches any number of levels. Neither yields an attribute. Other levels must be
equal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from broker.config.tables import ConfigError
from matching.errors import MatchingError
from matching.expressions.values import Value
from matching.languages.tokens import NUMBER, parse_number

ANY_LEVEL = "+"
ANY_LEVELS = "#"
TOPIC_BYTES_MAX = 65_535

_FIELD = re.compile(r"\{([^{}:]*)(?::([^{}:]*))?\}")


class LevelError(ValueError):
    """A topic's level does not have the type that its template requires."""


def _number(text: str) -> Value:
    if not NUMBER.fullmatch(text):
        raise LevelError(f"{text!r} is not a number")
    try:
        return parse_number(text)
    except MatchingError as error:
        raise LevelError(str(error)) from None


def _boolean(text: str) -> Value:
    if text not in ("true", "false"):
        raise LevelError(f"{text!r} is neither true nor false")
    return text == "true"


_READERS: dict[str, Callable[[str], Value]] = {"string": str, "number": _number, "boolean": _boolean}


@dataclass(frozen=True, slots=True)
class _Field:
    place: int
    name: str
    read: Callable[[str], Value]


class TopicTemplate:
    """A parsed template, for example `TopicTemplate("devices/{room}/+")`. Raises ConfigError for an invalid text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._literals: list[tuple[int, str]] = []
        self._fields: list[_Field] = []
        levels = text.split("/")
        for place, level in enumerate(levels):
            self._add(place, level, is_last=place == len(levels) - 1)
        self._is_open = levels[-1] == ANY_LEVELS
        self._count = len(levels) - self._is_open
        self.topic_filter = _FIELD.sub(ANY_LEVEL, text)
        """The MQTT topic filter that matches the same topics."""
        check_topic(self.topic_filter, text)

    def __repr__(self) -> str:
        return f"TopicTemplate({self.text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TopicTemplate) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def _add(self, place: int, level: str, *, is_last: bool) -> None:
        field = _FIELD.fullmatch(level)
        if field is not None:
            self._add_field(place, field[1], field[2] or "string")
        elif "{" in level or "}" in level:
            raise ConfigError(f"topic {self.text!r}: {level!r} must be one {{name}} alone between slashes")
        elif ANY_LEVELS in level and not (level == ANY_LEVELS and is_last):
            raise ConfigError(f"topic {self.text!r}: # stands alone, at the end")
        elif ANY_LEVEL in level and level != ANY_LEVEL:
            raise ConfigError(f"topic {self.text!r}: + stands alone between slashes")
        elif level not in (ANY_LEVEL, ANY_LEVELS):
            self._literals.append((place, level))

    def _add_field(self, place: int, name: str, kind: str) -> None:
        if not name:
            raise ConfigError(f"topic {self.text!r}: the braces at level {place + 1} hold no attribute's name")
        if kind not in _READERS:
            raise ConfigError(f"topic {self.text!r}: {kind!r} is no type; take {', '.join(_READERS)}")
        if any(name == each.name for each in self._fields):
            raise ConfigError(f"topic {self.text!r}: {{{name}}} occurs twice")
        self._fields.append(_Field(place, name, _READERS[kind]))

    def read(self, topic: str) -> dict[str, Value] | None:
        """The attributes in the topic's levels, or None if the template does not match the topic."""
        levels = topic.split("/")
        if len(levels) != self._count and not (self._is_open and len(levels) > self._count):
            return None
        for place, literal in self._literals:
            if levels[place] != literal:
                return None
        if topic[:1] == "$" and not (self._literals and self._literals[0][0] == 0):
            # Topics with a dollar sign belong to the MQTT broker. They match only if the template names them.
            return None
        attributes: dict[str, Value] = {}
        for field in self._fields:
            try:
                attributes[field.name] = field.read(levels[field.place])
            except LevelError as error:
                raise LevelError(f"topic {topic!r}, level {field.place + 1} ({field.name}): {error}") from None
        return attributes


def check_topic(text: str, place: str) -> None:
    """Raises ConfigError for a topic that is invalid in MQTT."""
    if not text:
        raise ConfigError(f"topic {place!r} is empty")
    if "\0" in text:
        raise ConfigError(f"topic {place!r} holds the character 0")
    if len(text.encode(errors="surrogatepass")) > TOPIC_BYTES_MAX:
        raise ConfigError(f"topic {place[:40]!r}… is longer than {TOPIC_BYTES_MAX} bytes")


def filter_covers(wide: str, narrow: str) -> bool:
    """Whether the filter `wide` matches every topic that `narrow` matches."""
    wider, narrower = wide.split("/"), narrow.split("/")
    for place, level in enumerate(wider):
        if level == ANY_LEVELS:
            # A wildcard at the start does not match topics that start with a dollar sign.
            return place > 0 or not narrower[0].startswith("$")
        if place >= len(narrower) or narrower[place] == ANY_LEVELS:
            return False
        if level != narrower[place] and (level != ANY_LEVEL or (place == 0 and narrower[0].startswith("$"))):
            return False
    return len(wider) == len(narrower)


def minimal_filters(templates: Sequence[TopicTemplate]) -> list[str]:
    """Filters for all templates, without covered ones: an MQTT broker may send a message once for each filter."""
    filters = list(dict.fromkeys(each.topic_filter for each in templates))
    return [each for each in filters if not any(other != each and filter_covers(other, each) for other in filters)]
