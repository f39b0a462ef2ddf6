"""Frames between clients and brokers: as bytes, and back.

They are built as the frames between brokers are (see `broker.wire`): a length, a MessagePack header that starts with
version, kind and its own size, and for a publication its attributes and its payload as they are. Their kinds have
numbers of their own, from `FIRST_KIND` on, so that one look at a connection's first frame tells who is there.

Publications and deliveries make nearly all of the traffic, so their numbers have fixed places, and are read without a
look at the rest. A delivery differs between clients in its number and the names of subscriptions alone: a broker puts
the rest together once (`DeliveryWriter`).

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
from broker.wire_shapes import Shape, texts
from routing.messages import PublicationId

CLIENT_VERSION = 1

_PREFIX_BYTES = 4
_START = Struct(">IBBBBI")
_FOUR_ELEMENTS, _SEVEN_ELEMENTS = 0x94, 0x97
_32_BITS, _64_BITS = 0xCE, 0xCF
_FALSE, _TRUE = 0xC2, 0xC3

_PUBLISH = Struct(">IBBBBI B BQ BI BQ B")
"""Length, four elements, version, kind, header size; four fields: reference, size of attributes, lifetime, traced."""
_PUBLISH_HEADER = _PUBLISH.size - _PREFIX_BYTES
_LARGEST_LENGTH = 0xFFFFFFFF

_DELIVERY_START = Struct(">IBBBBI B BQ")
"""As above, then seven fields, of which the first is the number."""
_DELIVERY_SHARED = Struct(">BI BI BQ BQ")
"""Size of attributes, hops, and the id's incarnation and counter; its broker and the subscriptions follow."""
_DELIVERY_SIZE = _DELIVERY_START.size + _DELIVERY_SHARED.size
_DELIVERY_MARKS = (
    *(_FOUR_ELEMENTS, CLIENT_VERSION, DELIVERY, _32_BITS, _SEVEN_ELEMENTS, _64_BITS),
    *(_32_BITS, _32_BITS, _64_BITS, _64_BITS),
)
_DELIVERY_NAMES = Shape("the end of the header", broker=str, subscriptions=tuple)
_MOST_NAMES_KEPT = 1 << 14
_names_kept: dict[bytes, tuple[str, tuple[str, ...]]] = {}
"""Brokers and subscriptions as they stand in headers, and what they say: mostly they are the same again and again."""

__all__ = [
    "CLIENT_VERSION",
    "FIRST_KIND",
    "DeliveryWriter",
    "FrameSplitter",
    "decode",
    "decode_delivery",
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

    __slots__ = ("_body", "_follows", "_header", "_shared")

    def __init__(self, id: PublicationId, hops: int, attributes: bytes, payload: bytes) -> None:
        numbers = (len(attributes), hops, id.incarnation, id.counter)
        if min(numbers) < 0 or max(hops, len(attributes)) > _LARGEST_LENGTH or max(numbers) > LARGEST_NUMBER:
            raise WireError(f"Delivery: one of the numbers {numbers} cannot be written")
        self._shared = _DELIVERY_SHARED.pack(
            _32_BITS, numbers[0], _32_BITS, hops, _64_BITS, id.incarnation, _64_BITS, id.counter
        ) + _packed(id.broker, "Delivery")
        self._body = attributes + payload
        self._header = _DELIVERY_START.size - _PREFIX_BYTES + len(self._shared)
        self._follows = self._header + len(self._body)
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
            _SEVEN_ELEMENTS,
            _64_BITS,
            number,
        )
        return b"".join((start, self._shared, packed, self._body))


def packed_subscriptions(names: tuple[str, ...]) -> bytes:
    return _packed(names, "Delivery")


def _packed(fields: object, kind: str) -> bytes:
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
        return decode_delivery(frame, limits)
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


def decode_delivery(frame: bytes, limits: Limits) -> Delivery:
    """As `decode`, for a frame that came whole and whose kind says that it is a delivery: the quickest way."""
    if not _DELIVERY_SIZE < len(frame) <= limits.frame_bytes:
        raise WireError(f"Delivery: a frame of {len(frame)} bytes is none")
    start, rest = _DELIVERY_START.unpack_from(frame), _DELIVERY_SHARED.unpack_from(frame, _DELIVERY_START.size)
    follows, four, version, kind, mark, header_bytes, seven, wide, number = start
    m1, attributes_bytes, m2, hops, m3, incarnation, m4, counter = rest
    if (four, version, kind, mark, seven, wide, m1, m2, m3, m4) != _DELIVERY_MARKS:
        raise WireError(f"Delivery: the header is not one: {frame[_PREFIX_BYTES:_DELIVERY_SIZE].hex()}")
    body = _PREFIX_BYTES + header_bytes
    payload = body + attributes_bytes
    if follows != len(frame) - _PREFIX_BYTES or body <= _DELIVERY_SIZE or payload > len(frame):
        raise WireError(
            f"Delivery: {header_bytes} bytes of header and {attributes_bytes} of attributes are announced, "
            f"{len(frame) - _PREFIX_BYTES} follow"
        )
    names = frame[_DELIVERY_SIZE:body]
    found = _names_kept.get(names)
    if found is None:
        found = _read_names(names, limits)
    if max(number, incarnation, counter) > LARGEST_NUMBER:
        raise WireError(f"Delivery: one of {(number, incarnation, counter)} is beyond {LARGEST_NUMBER}")
    broker, subscriptions = found
    id = PublicationId(broker, incarnation, counter)
    return Delivery(number, subscriptions, hops, id, frame[body:payload], frame[payload:])


def _read_names(packed: bytes, limits: Limits) -> tuple[str, tuple[str, ...]]:
    if len(packed) > limits.header_bytes:
        raise beyond("Delivery", f"the header has {len(packed)} bytes of names", "header_bytes", limits.header_bytes)
    # An array of the two, as the shape has it.
    broker, subscriptions = _DELIVERY_NAMES.check(_unpacked(b"\x92" + packed, "Delivery", limits), "Delivery")
    texts(subscriptions, "Delivery", "subscriptions", "items", limits.items)
    if len(_names_kept) >= _MOST_NAMES_KEPT:
        _names_kept.clear()
    _names_kept[packed] = (broker, subscriptions)
    return broker, subscriptions


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
