"""Encodes user properties of MQTT 5. paho's encoder handles all kinds of properties, and is slower."""

from __future__ import annotations

from collections.abc import Mapping

from broker.mqtt.fast_path.packets import variable_length
from broker.mqtt.mapping import ORIGIN, is_carried, property_text
from matching.expressions.values import Value

USER_PROPERTY = b"\x26"
LONGEST_TEXT = 65_535
MOST = 128
"""The largest number of attributes that one delivery carries as user properties."""
REMEMBERED_NAMES = 20_000
LONGEST_REMEMBERED = 100


class PropertyPacker:
    """Encodes attributes as user properties, with the mark of the gateway that publishes them."""

    def __init__(self, origin: str) -> None:
        self._mark = _packed_name(ORIGIN) + packed_text(origin)
        self._names: dict[str, bytes] = {}
        self._texts: dict[str, bytes] = {}

    def mark(self) -> bytes:
        """Returns the mark alone, preceded by its length."""
        return variable_length(len(self._mark)) + self._mark

    def pack(self, attributes: Mapping[str, Value]) -> bytes:
        """Encodes attributes. Leaves out those that MQTT cannot carry. The payload still contains its own."""
        parts: list[bytes] = []
        for name, value in attributes.items():
            head = self._names.get(name)
            if head is None:
                head = self._remember(name)
            # Devices repeat the same strings, so their encodings are cached.
            text = self._texts.get(value) if type(value) is str else None
            if text is None:
                text = self._pack_value(value)
            if head and text:
                parts += (head, text)
        parts[2 * MOST :] = (self._mark,)
        packed = b"".join(parts)
        return variable_length(len(packed)) + packed

    def _pack_value(self, value: Value) -> bytes:
        """Encodes a value. Returns no bytes for a text that is too long."""
        encoded = b"%d" % value if type(value) is int else property_text(value).encode()
        if len(encoded) > LONGEST_TEXT:
            return b""
        packed = len(encoded).to_bytes(2, "big") + encoded
        if isinstance(value, str) and len(encoded) <= LONGEST_REMEMBERED:
            if len(self._texts) >= REMEMBERED_NAMES:
                self._texts.clear()
            self._texts[value] = packed
        return packed

    def _remember(self, name: str) -> bytes:
        if len(self._names) >= REMEMBERED_NAMES:
            self._names.clear()
        self._names[name] = head = _packed_name(name)
        return head


def _packed_name(name: str) -> bytes:
    """Encodes a name. Returns no bytes for a name that MQTT cannot carry."""
    return USER_PROPERTY + packed_text(name) if is_carried(name) and len(name.encode()) <= LONGEST_TEXT else b""


def packed_text(text: str) -> bytes:
    """Encodes a text, preceded by its length. MQTT encodes topics in the same way."""
    encoded = text.encode()
    return len(encoded).to_bytes(2, "big") + encoded
