"""Maps MQTT messages to the attributes of publications, and attributes to user properties.

Attributes come from the payload, from MQTT 5 user properties and from the topic. In the payload these are the fields of
a JSON object; names of nested fields are joined with dots. A bare JSON number, string or boolean has the name `value`.
If a name occurs twice, the topic has precedence over a property, and a property over the payload, because MQTT brokers
control access by topic. The payload is passed on unchanged.

Values that cannot be an attribute are left out and counted: null, lists, numbers beyond 64 bits, a payload that is not
JSON.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeGuard

from broker.config.gateway_config import PropertyReading
from broker.config.topic_template import LevelError, TopicTemplate
from matching.errors import ValueRefusedError
from matching.expressions.values import Value, check_attribute, check_value

ORIGIN = "mercast-gateway"
"""The user property that marks a gateway's own messages, so that no gateway publishes them again."""

BARE_VALUE = "value"
DEEPEST = 8
REMEMBERED_TOPICS = 20_000
REMEMBERED_NAMES = 20_000
SURELY_FITS = 1 << 62
_JSON_SCALAR = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|\"[^\0]*\"")
_SCALARS_START = frozenset('-0123456789tf"')
_FORBIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\ufdd0-\ufdef\ufffe\uffff]|[^\x00-\uffff]")
"""Characters for which MQTT brokers may close the connection. Beyond the first plane this includes harmless ones."""


class MappedMessage(NamedTuple):
    """Attributes of a publication, or None and a reason if the message must not be published."""

    attributes: dict[str, Value] | None
    reason: str = ""
    detail: str = ""


class MessageMapping:
    def __init__(
        self,
        templates: Sequence[TopicTemplate],
        *,
        topic_attribute: str = "",
        properties: PropertyReading = PropertyReading.TYPED,
        excluded: Iterable[TopicTemplate] = (),
    ) -> None:
        self.left_out: Counter[str] = Counter()
        """Values that did not become an attribute, counted by reason."""
        self._templates = tuple(templates)
        self._topic_attribute = topic_attribute
        self._properties = properties
        self._excluded = tuple(excluded)
        self._topics: dict[str, MappedMessage] = {}
        self._good_names: set[str] = set()
        self._decoder = json.JSONDecoder(parse_constant=_refuse_constant)

    def map(self, topic: str, payload: bytes, properties: Iterable[tuple[str, str]] = ()) -> MappedMessage:
        of_topic = self._topics.get(topic)
        if of_topic is None:
            of_topic = self._read_topic(topic)
            if len(self._topics) >= REMEMBERED_TOPICS:
                self._topics.clear()
            self._topics[topic] = of_topic
        if of_topic.attributes is None:
            return of_topic
        attributes = self._read_payload(payload)
        for name, text in properties:
            if name == ORIGIN:
                return MappedMessage(None, "delivered-by-gateway", f"{topic!r} was published by gateway {text!r}")
            if self._properties != PropertyReading.OFF:
                self._put(attributes, name, self._property_value(text))
        attributes.update(of_topic.attributes)
        return MappedMessage(attributes)

    def _read_topic(self, topic: str) -> MappedMessage:
        for template in self._excluded:
            if template.read(topic) is not None:
                return MappedMessage(None, "excluded-topic", f"{topic!r} is excluded by {template.text!r}")
        for template in self._templates:
            try:
                attributes = template.read(topic)
            except LevelError as error:
                return MappedMessage(None, "topic-level", str(error))
            if attributes is not None:
                if self._topic_attribute:
                    attributes.setdefault(self._topic_attribute, topic)
                return MappedMessage(attributes)
        return MappedMessage(None, "no-template", f"{topic!r} fits no template")

    def _read_payload(self, payload: bytes) -> dict[str, Value]:
        attributes: dict[str, Value] = {}
        if not payload:
            return attributes
        try:
            content = self._read_json(payload.decode())
        except (ValueError, RecursionError):
            self.left_out["payload-not-json"] += 1
            return attributes
        if isinstance(content, dict):
            self._put_fields(attributes, "", content, 1)
        else:
            self._put(attributes, BARE_VALUE, content)
        return attributes

    def _read_json(self, text: str) -> object:
        if text[0] == "{":
            # Faster than `decode`, which strips white space first.
            content, end = self._decoder.raw_decode(text)
            if end == len(text):
                return content
        return self._decoder.decode(text)

    def _put_fields(self, attributes: dict[str, Value], prefix: str, fields: Mapping[str, object], depth: int) -> None:
        for each, value in fields.items():
            name = prefix + each if prefix else each
            if name in self._good_names and _is_plain(value):
                attributes[name] = value
            elif not isinstance(value, dict):
                self._put(attributes, name, value)
            elif depth < DEEPEST:
                self._put_fields(attributes, f"{name}.", value, depth + 1)
            else:
                self.left_out["too-deep"] += 1

    def _put(self, attributes: dict[str, Value], name: str, value: object) -> None:
        if value is None or isinstance(value, list):
            self.left_out["null" if value is None else "list"] += 1
            return
        try:
            attributes[check_attribute(name)] = check_value(value, name)
        except ValueRefusedError:
            self.left_out["value-refused"] += 1
            return
        if len(self._good_names) >= REMEMBERED_NAMES:
            self._good_names.clear()
        self._good_names.add(name)

    def _property_value(self, text: str) -> object:
        if self._properties == PropertyReading.TEXT or not _JSON_SCALAR.fullmatch(text):
            return text
        try:
            return self._decoder.decode(text)
        except ValueError:
            return text


def _is_plain(value: object) -> TypeGuard[Value]:
    """Whether the value needs no further check. JSON has no NaN."""
    kind = type(value)
    if kind is int:
        return -SURELY_FITS < value < SURELY_FITS  # type: ignore[operator]
    return kind is float or kind is bool or (kind is str and value.isascii())  # type: ignore[attr-defined]


def _refuse_constant(word: str) -> object:
    raise ValueError(f"{word} is no JSON value")


def as_json(attributes: Mapping[str, Value]) -> bytes:
    """Encodes attributes as JSON: the payload for MQTT clients if the publication has none."""
    fields = (f"{_quoted(name)}:{_json_text(value)}" for name, value in attributes.items())
    return f"{{{','.join(fields)}}}".encode()


def is_carried(text: str) -> bool:
    """Whether MQTT can carry the text in a user property."""
    return (text.isascii() and text.isprintable()) or not _FORBIDDEN.search(text)


def property_text(value: Value) -> str:
    """Returns a text that is read back as the same value if user properties are typed."""
    if isinstance(value, str):
        if not is_carried(value):
            return json.dumps(value).replace("\x7f", "\\u007f")
        return _quoted(value) if value[:1] in _SCALARS_START and _JSON_SCALAR.fullmatch(value) else value
    return _json_text(value)


def _json_text(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _quoted(value)
    text = repr(value)
    if text in _INFINITE:
        # JSON has no infinity. A number this large is read as one.
        return _INFINITE[text]
    return text


_INFINITE = {"inf": "1e999", "-inf": "-1e999"}
_quoted = json.JSONEncoder(ensure_ascii=False).encode
