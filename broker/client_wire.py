"""Frames between clients and brokers: as bytes, and back.

They are built as the frames between brokers are (see `broker.wire`): a length, a MessagePack header that starts with
version, kind and its own size, and for a publication its attributes and its payload as they are. Their kinds have
numbers of their own, from `FIRST_KIND` on, so that one look at a connection's first frame tells who is there.

Publications and deliveries make nearly all of the traffic. A publish request's header has one size, every field in
its place. A delivery's header ends in what is the same for all clients that get the publication, so that a broker
puts this together once (`DeliveryWriter`) and only a number and the client's subscriptions in front of it.

Whatever the bytes are, `decode` and `FrameSplitter` raise `WireError` and nothing else.
"""

from __future__ import annotations

from struct import Struct
from typing import Any

import msgpack

from broker.client_frames import ClientFrame, Delivery, PublishRequest
from broker.client_wire_kinds import CONTROL, DELIVERY, FIRST_KIND, NAMES, PUBLISH, WRITERS
from broker.wire_limits import LARGEST_NUMBER, Limits, WireError, beyond
from broker.wire_nesting import check_structure, may_nest_long_arrays
from broker.wire_shapes import Shape
from routing.messages import PublicationId

CLIENT_VERSION = 1

_PREFIX_BYTES = 4
_START = Struct(">IBBBBI")
_FOUR_ELEMENTS, _FIVE_ELEMENTS = 0x94, 0x95
_32_BITS, _64_BITS = 0xCE, 0xCF
_FALSE, _TRUE = 0xC2, 0xC3

_PUBLISH = Struct(">IBBBBI B BQ BI BQ B")
"""Length, four elements, version, kind, header size; four fields: reference, size of attributes, lifetime, traced."""
_PUBLISH_HEADER = _PUBLISH.size - _PREFIX_BYTES
_LARGEST_LENGTH = 0xFFFFFFFF

_DELIVERY_START = Struct(">IBBBBI B BQ")
"""As above, then five fields, of which the first is the number; the rest varies in size."""
_DELIVERY_FIELDS = _START.size
_DELIVERY_HEADER = _DELIVERY_START.size - _PREFIX_BYTES
_DELIVERY_SHAPE = Shape("the header", number=int, subscriptions=tuple, attributes_bytes=int, hops=int, id=tuple)
_DELIVERY_TYPES = [int, tuple, int, int, tuple]
_ID_TYPES = [str, int, int]

__all__ = [
    "CLIENT_VERSION",
    "FIRST_KIND",
    "DeliveryWriter",
    "FrameSplitter",
    "decode",
    "encode",
    "encode_publish",
    "kind_of",
    "packed_subscriptions",
]


def encode(frame: ClientFrame) -> bytes:
    """The frame, length prefix included."""
    if isinstance(frame, PublishRequest):
        return encode_publish(frame.reference, frame.attributes, frame.payload, frame.lifetime_ms, frame.is_traced)
    if isinstance(frame, Delivery):
        writer = DeliveryWriter(frame.id, frame.hops, frame.attributes, frame.payload)
        return writer.frame(frame.number, frame.subscriptions)
    kind, write = WRITERS[type(frame)]
    fields = _packed(write(frame), NAMES[kind])
    header_bytes = _START.size - _PREFIX_BYTES + len(fields)
    return _START.pack(header_bytes, _FOUR_ELEMENTS, CLIENT_VERSION, kind, _32_BITS, header_bytes) + fields


def encode_publish(
    reference: int, attributes: bytes, payload: bytes = b"", lifetime_ms: int = 0, is_traced: bool = False
) -> bytes:
    follows = _PUBLISH_HEADER + len(attributes) + len(payload)
    if follows > _LARGEST_LENGTH:
        raise WireError(f"PublishRequest: {follows} bytes are more than a frame's length can say")
    if not 0 <= reference <= LARGEST_NUMBER or not 0 <= lifetime_ms <= LARGEST_NUMBER:
        raise WireError(f"PublishRequest: {reference} or {lifetime_ms} is not from 0 to {LARGEST_NUMBER}")
    start = _PUBLISH.pack(
        follows,
        _FOUR_ELEMENTS,
        CLIENT_VERSION,
        PUBLISH,
        _32_BITS,
        _PUBLISH_HEADER,
        _FOUR_ELEMENTS,
        _64_BITS,
        reference,
        _32_BITS,
        len(attributes),
        _64_BITS,
        lifetime_ms,
        _TRUE if is_traced else _FALSE,
    )
    return start + attributes + payload


class DeliveryWriter:
    """One publication for several clients: what is the same for all of them is packed once."""

    __slots__ = ("_follows", "_header", "_shared")

    def __init__(self, id: PublicationId, hops: int, attributes: bytes, payload: bytes) -> None:
        # Three elements of the fields' array, one after the other.
        tail = _packed((len(attributes), hops, id), "Delivery")[1:]
        self._shared = b"".join((tail, attributes, payload))
        self._header = _DELIVERY_HEADER + len(tail)
        self._follows = _DELIVERY_HEADER + len(self._shared)
        if self._follows > _LARGEST_LENGTH // 2:
            raise WireError(f"Delivery: {self._follows} bytes are more than a frame's length can say")

    def frame(self, number: int, subscriptions: tuple[str, ...]) -> bytes:
        return self.frame_for(number, packed_subscriptions(subscriptions))

    def frame_for(self, number: int, packed: bytes) -> bytes:
        """`packed` comes from `packed_subscriptions`; a broker may keep it for the next publication."""
        size = len(packed)
        start = _DELIVERY_START.pack(
            self._follows + size,
            _FOUR_ELEMENTS,
            CLIENT_VERSION,
            DELIVERY,
            _32_BITS,
            self._header + size,
            _FIVE_ELEMENTS,
            _64_BITS,
            number,
        )
        return start + packed + self._shared


def packed_subscriptions(names: tuple[str, ...]) -> bytes:
    return _packed(names, "Delivery")


def _packed(fields: tuple[object, ...], kind: str) -> bytes:
    try:
        packed: bytes = msgpack.packb(fields)
    except (ValueError, OverflowError) as error:
        # A lone surrogate in a text, or an integer of more than 64 bits.
        raise WireError(f"{kind}: cannot be written: {error}") from None
    return packed


def kind_of(frame: bytes) -> int:
    """The number of a frame's kind, whichever protocol it belongs to; 0 when the frame is too short to have one."""
    return frame[6] if len(frame) >= _START.size else 0


def decode(frame: bytes, limits: Limits) -> ClientFrame:
    """The content of a whole frame, length prefix included."""
    if len(frame) < _START.size:
        raise WireError(f"a frame of {len(frame)} bytes is shorter than any header")
    follows, marker, version, kind, integer_marker, header_bytes = _START.unpack_from(frame)
    if version != CLIENT_VERSION:
        raise WireError(f"version {version} of the client protocol is not known here; this is version {CLIENT_VERSION}")
    name = NAMES.get(kind)
    if name is None:
        raise WireError(f"no frame of a client has the number {kind}; they go from {FIRST_KIND} to {max(NAMES)}")
    if len(frame) > limits.frame_bytes:
        raise beyond(name, f"the frame has {len(frame)} bytes", "frame_bytes", limits.frame_bytes)
    if follows != len(frame) - _PREFIX_BYTES:
        raise WireError(f"{name}: {follows} bytes are announced, {len(frame) - _PREFIX_BYTES} follow")
    if marker != _FOUR_ELEMENTS or integer_marker != _32_BITS:
        raise WireError(f"{name}: the header does not start as one: {frame[_PREFIX_BYTES : _START.size].hex()}")
    if header_bytes > limits.header_bytes:
        raise beyond(name, f"the header has {header_bytes} bytes", "header_bytes", limits.header_bytes)
    body = _PREFIX_BYTES + header_bytes
    if not _START.size < body <= len(frame):
        raise WireError(f"{name}: the header cannot have {header_bytes} bytes in a frame of {len(frame)}")
    if kind == DELIVERY:
        return _read_delivery(frame, body, limits)
    if kind == PUBLISH:
        return _read_publish(frame, header_bytes)
    if body != len(frame):
        raise WireError(f"{name}: {len(frame) - body} bytes follow the header")
    _, _, read = CONTROL[kind]
    return read(_unpacked(frame[_START.size : body], name, limits), limits)


def _read_publish(frame: bytes, header_bytes: int) -> PublishRequest:
    if header_bytes != _PUBLISH_HEADER:
        raise WireError(f"PublishRequest: the header has {header_bytes} bytes, not {_PUBLISH_HEADER}")
    *_, four, wide, reference, narrow, attributes_bytes, also_wide, lifetime_ms, flag = _PUBLISH.unpack_from(frame)
    if (four, wide, narrow, also_wide) != (_FOUR_ELEMENTS, _64_BITS, _32_BITS, _64_BITS) or flag not in (_FALSE, _TRUE):
        raise WireError(f"PublishRequest: the header is not one: {frame[_START.size : _PUBLISH.size].hex()}")
    if reference > LARGEST_NUMBER or lifetime_ms > LARGEST_NUMBER:
        raise WireError(f"PublishRequest: {max(reference, lifetime_ms)} is beyond {LARGEST_NUMBER}")
    payload = _PUBLISH.size + attributes_bytes
    if payload > len(frame):
        left = len(frame) - _PUBLISH.size
        raise WireError(f"PublishRequest: {attributes_bytes} bytes of attributes are announced, {left} are left")
    return PublishRequest(reference, frame[_PUBLISH.size : payload], frame[payload:], lifetime_ms, flag == _TRUE)


def _read_delivery(frame: bytes, body: int, limits: Limits) -> Delivery:
    fields = _unpacked(frame[_DELIVERY_FIELDS:body], "Delivery", limits)
    if type(fields) is not tuple or list(map(type, fields)) != _DELIVERY_TYPES:
        # The shape knows what is wrong; it is asked only then, because this is on the path of every delivery.
        _DELIVERY_SHAPE.check(fields, "Delivery")
    number, subscriptions, attributes_bytes, hops, id = fields
    if list(map(type, id)) != _ID_TYPES:
        raise WireError(f"Delivery: {str(id)[:80]} is no publication's id")
    for name in subscriptions:
        if type(name) is not str:
            raise WireError(f"Delivery: {str(name)[:80]} among the subscriptions is no name")
    numbers = (number, attributes_bytes, hops, id[1], id[2])
    if min(numbers) < 0 or max(numbers) > LARGEST_NUMBER:
        raise WireError(f"Delivery: one of the numbers {numbers} is not from 0 to {LARGEST_NUMBER}")
    payload = body + attributes_bytes
    if payload > len(frame):
        left = len(frame) - body
        raise WireError(f"Delivery: {attributes_bytes} bytes of attributes are announced, {left} are left")
    return Delivery(number, subscriptions, hops, PublicationId._make(id), frame[body:payload], frame[payload:])


def _unpacked(packed: bytes, kind: str, limits: Limits) -> Any:
    if may_nest_long_arrays(packed):
        check_structure(packed, kind, limits)
    try:
        fields: Any = msgpack.unpackb(
            packed,
            use_list=False,
            raw=False,
            strict_map_key=True,
            max_str_len=limits.text_bytes,
            max_bin_len=0,
            max_array_len=limits.longest_array,
            max_map_len=0,
            max_ext_len=0,
        )
    except (ValueError, msgpack.exceptions.UnpackException) as error:
        check_structure(packed, kind, limits)
        raise WireError(f"{kind}: the header cannot be read: {error}") from None
    return fields


class FrameSplitter:
    """Whole frames from a stream that comes in pieces.

    A length beyond the limit is refused as soon as it is there, and again at every further attempt: nobody knows
    where the next frame would begin.
    """

    def __init__(self, limits: Limits) -> None:
        self._largest = limits.frame_bytes
        # While a large frame comes in pieces, they are only collected: joining at each would copy it many times.
        self._missing = 0
        self._pieces: list[bytes] = []
        self._refusal: WireError | None = None

    def feed(self, data: bytes) -> list[bytes]:
        """The frames that are complete with this piece."""
        if self._refusal is not None:
            raise self._refusal
        if self._missing:
            self._pieces.append(data)
            self._missing -= len(data)
            if self._missing > 0:
                return []
            data, self._pieces, self._missing = b"".join(self._pieces), [], 0
        frames: list[bytes] = []
        start, size = 0, len(data)
        while size - start >= _PREFIX_BYTES:
            length = _PREFIX_BYTES + int.from_bytes(data[start : start + _PREFIX_BYTES], "big")
            if length > self._largest:
                return self._refuse(frames, length)
            if length > size - start:
                break
            frames.append(data[start : start + length])
            start += length
        if start < size:
            self._collect(data[start:])
        return frames

    def _collect(self, rest: bytes) -> None:
        known = len(rest) >= _PREFIX_BYTES
        length = _PREFIX_BYTES + int.from_bytes(rest[:_PREFIX_BYTES], "big") if known else _PREFIX_BYTES
        self._pieces.append(rest)
        self._missing = length - len(rest)

    def _refuse(self, frames: list[bytes], length: int) -> list[bytes]:
        """Frames before the refused one are still handed out; the next call raises."""
        self._refusal = beyond("frame", f"{length} bytes are announced", "frame_bytes", self._largest)
        if not frames:
            raise self._refusal
        return frames
