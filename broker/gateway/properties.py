"""User properties of MQTT 5, packed at once: paho's own form is made for all kinds of properties, and takes long."""

from __future__ import annotations

from collections.abc import Mapping

from paho.mqtt.properties import Properties

from broker.gateway.mapping import ORIGIN, is_carried, property_text
from matching.values import Value

USER_PROPERTY = b"\x26"
LONGEST_TEXT = 65_535
MOST = 128
"""Attributes that go along with one delivery."""
REMEMBERED_NAMES = 20_000


class UserProperties(Properties):
    """What paho asks of properties when it sends them."""

    def __init__(self, packed: bytes) -> None:
        # Paho's own attributes are guarded by a list of names; this one is not among them.
        object.__setattr__(self, "_packed", _variable_length(len(packed)) + packed)

    def pack(self) -> bytes:
        packed: bytes = object.__getattribute__(self, "_packed")
        return packed


class PropertyPacker:
    """Attributes as user properties, with the mark of the gateway that publishes them."""

    def __init__(self, origin: str) -> None:
        self._mark = _packed_name(ORIGIN) + _packed_text(origin)
        self._names: dict[str, bytes] = {}

    def mark(self) -> UserProperties:
        return UserProperties(self._mark)

    def pack(self, attributes: Mapping[str, Value]) -> UserProperties:
        """What MQTT cannot carry is left out: it is in the payload where it came from there."""
        parts: list[bytes] = []
        for name, value in attributes.items():
            head = self._names.get(name)
            if head is None:
                head = self._remember(name)
            # Plain numbers, of which most attributes are, take the short way.
            text = b"%d" % value if type(value) is int else property_text(value).encode()
            if head and len(text) <= LONGEST_TEXT:
                parts += (head, len(text).to_bytes(2, "big"), text)
        parts[3 * MOST :] = (self._mark,)
        return UserProperties(b"".join(parts))

    def _remember(self, name: str) -> bytes:
        if len(self._names) >= REMEMBERED_NAMES:
            self._names.clear()
        self._names[name] = head = _packed_name(name)
        return head


def _packed_name(name: str) -> bytes:
    """Empty for a name that cannot be carried."""
    return USER_PROPERTY + _packed_text(name) if is_carried(name) and len(name.encode()) <= LONGEST_TEXT else b""


def _packed_text(text: str) -> bytes:
    encoded = text.encode()
    return len(encoded).to_bytes(2, "big") + encoded


def _variable_length(number: int) -> bytes:
    """Seven bits in each byte, the smallest first; the eighth says that more follow."""
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)
