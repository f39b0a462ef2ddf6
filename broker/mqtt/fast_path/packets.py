"""Encodes and decodes the two frequent MQTT packets, PUBLISH and PUBACK, for QoS 0 and 1.

The library handles all other packets; see `packet_socket`.
"""

from __future__ import annotations

from typing import NamedTuple

PUBLISH = 0x30
PUBACK = 0x40
REFUSED_FROM = 0x80
"""Reason codes from this value on are refusals."""

_USER_PROPERTY = 0x26
_SIZES = {0x01: 1, 0x02: 4, 0x23: 2}
"""Sizes of fixed-size properties: payload format, message expiry, topic alias."""
_TEXTS = frozenset((0x03, 0x08, 0x09))
"""Content type, response topic, correlation data: a length of two bytes, then the bytes."""
_SUBSCRIPTION = 0x0B


class PacketError(ValueError):
    """Bytes that are not an MQTT packet."""


class Message(NamedTuple):
    """A received PUBLISH packet."""

    topic: str
    payload: bytes
    qos: int
    is_retained: bool
    id: int
    """0 at QoS 0."""
    properties: list[tuple[str, str]]
    """User properties."""
    is_repeated: bool = False
    """The MQTT broker has sent it before, on this connection or an earlier one."""


class PacketSplitter:
    """Splits received bytes into packets."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self._needed = 0

    def feed(self, data: bytes) -> list[tuple[int, bytes, int]]:
        """Returns the complete packets: first byte, all bytes, and the offset of the part after the packet's length."""
        if self._parts:
            self._parts.append(data)
            self._size += len(data)
            if self._size < self._needed:
                return []
            data = b"".join(self._parts)
            self._parts.clear()
        packets: list[tuple[int, bytes, int]] = []
        start, end = 0, len(data)
        self._needed = 2
        while end - start >= 2:
            length, body = data[start + 1], start + 2
            if length > 0x7F:
                length, body = _length(data, start + 1)
            stop = body + length
            if not body or stop > end:
                self._needed = stop - start if body else end - start + 1
                break
            packets.append((data[start], data[start:stop], body - start))
            start = stop
        if start < end:
            self._parts.append(data[start:])
            self._size = end - start
        return packets


def _length(data: bytes, start: int) -> tuple[int, int]:
    """Reads a number of one to four bytes. Returns it with its end, or 0 and 0 if it is incomplete."""
    length = shift = 0
    for place in range(start, min(start + 4, len(data))):
        length |= (data[place] & 0x7F) << shift
        if data[place] < 0x80:
            return length, place + 1
        shift += 7
    if len(data) - start >= 4:
        raise PacketError("a packet's length has more than four bytes")
    return 0, 0


def variable_length(number: int) -> bytes:
    """Encodes a number with seven bits in each byte, the lowest first. The eighth bit is set if more bytes follow."""
    if number < 0x80:
        return number.to_bytes(1, "big")
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def read_publish(packet: bytes, start: int, *, is_version_5: bool) -> Message:
    first = packet[0]
    qos = first >> 1 & 3
    end_of_topic = start + 2 + int.from_bytes(packet[start : start + 2], "big")
    # MQTT brokers accept only UTF-8 topics. If one passes others on, the gateway must not stop.
    topic = packet[start + 2 : end_of_topic].decode(errors="replace")
    id = 0
    body = end_of_topic
    if qos:
        if qos > 1:
            raise PacketError("a message of QoS 2, which was not asked for")
        body += 2
        id = int.from_bytes(packet[end_of_topic:body], "big")
    if body > len(packet):
        raise PacketError("a message that ends before its payload begins")
    properties: list[tuple[str, str]] = []
    if is_version_5:
        if body == len(packet):
            raise PacketError("a message without a length of properties")
        size = packet[body]
        body += 1
        if size:
            if size > 0x7F:
                size, body = _length(packet, body - 1)
                if not body:
                    raise PacketError("a message with a length of properties that does not end")
            properties = _user_properties(packet[body : body + size])
            body += size
            if body > len(packet):
                raise PacketError("a message that ends within its properties")
    return Message(topic, packet[body:], qos, bool(first & 1), id, properties, bool(first & 8))


def _user_properties(data: bytes) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    place, end = 0, len(data)
    while place < end:
        kind = data[place]
        place += 1
        if kind == _USER_PROPERTY:
            name, place = _text(data, place)
            value, place = _text(data, place)
            pairs.append((name.decode(errors="replace"), value.decode(errors="replace")))
        elif kind in _TEXTS:
            _, place = _text(data, place)
        elif kind in _SIZES:
            place += _SIZES[kind]
        elif kind == _SUBSCRIPTION:
            _, place = _length(data, place)
            if not place:
                raise PacketError("a subscription's number that does not end")
        else:
            raise PacketError(f"a message with a property {kind:#x}, which messages do not have")
    if place > end:
        raise PacketError("a property that does not end")
    return pairs


def _text(data: bytes, place: int) -> tuple[bytes, int]:
    end = place + 2 + int.from_bytes(data[place : place + 2], "big")
    return data[place + 2 : end], end


def read_puback(packet: bytes, start: int) -> tuple[int, int]:
    """Returns the message's id and the reason code, which is 0 on success."""
    if len(packet) < start + 2:
        raise PacketError("an acknowledgement of nothing")
    return int.from_bytes(packet[start : start + 2], "big"), packet[start + 2] if len(packet) > start + 2 else 0


def write_publish(topic: bytes, payload: bytes, id: int, properties: bytes) -> bytes:
    """Encodes a PUBLISH packet.

    `topic` starts with its length. `id` is 0 at QoS 0. `properties` start with their length. Before MQTT 5 they are
    empty.
    """
    numbered = id.to_bytes(2, "big") if id else b""
    size = len(topic) + len(numbered) + len(properties) + len(payload)
    return b"".join((b"\x32" if id else b"\x30", variable_length(size), topic, numbered, properties, payload))


def write_pubacks(ids: list[int]) -> bytes:
    return b"".join([b"\x40\x02" + id.to_bytes(2, "big") for id in ids])
