"""Encodes and decodes frames between clients and brokers.

They have the format of frames between brokers (see `framing`): a length, then a MessagePack header that starts with
version, kind and its own size. For a publication, its attributes and its payload follow unchanged. Client frames have
their own kind numbers, from `FIRST_KIND` on. So the first frame of a connection shows whether a client or a broker
connects.

Nearly all traffic is publications and deliveries. Their numbers have fixed offsets and are read without decoding the
rest. Deliveries of one publication differ between clients only in the number and the names of subscriptions. A broker
packs the other fields once (`DeliveryWriter`).

For any bytes, `decode` raises `WireError` and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct

from broker.wire.client_frames import (
    Acknowledge,
    Advertise,
    ClientFrame,
    Delivery,
    Goodbye,
    Hello,
    Name,
    Ping,
    Pong,
    PublicationRefused,
    PublicationsAccepted,
    PublishRequest,
    RequestAccepted,
    RequestRefused,
    Subscribe,
    TraceAnswer,
    TraceQuery,
    Unadvertise,
    Unsubscribe,
    Welcome,
)
from broker.wire.framing import (
    FOUR_ELEMENTS,
    PREFIX_BYTES,
    START,
    UINT32,
    HeaderReader,
    Kinds,
    check_no_body,
    pack,
    pack_start,
    read_start,
)
from broker.wire.limits import LONGEST_NAME, Limits, WireError, limit_exceeded
from routing.messages import LARGEST_NUMBER, PublicationId, Record

CLIENT_VERSION = 1
FIRST_KIND = 64

PUBLISH = FIRST_KIND
DELIVERY = FIRST_KIND + 1
_CONTROL: Mapping[int, type[ClientFrame]] = dict(
    enumerate(
        (
            Hello,
            Welcome,
            Advertise,
            Unadvertise,
            Subscribe,
            Unsubscribe,
            RequestAccepted,
            RequestRefused,
            PublicationsAccepted,
            PublicationRefused,
            Acknowledge,
            Ping,
            Pong,
            Goodbye,
            TraceQuery,
            TraceAnswer,
        ),
        start=FIRST_KIND + 2,
    )
)
"""All kinds of frames except publications and deliveries. The order is part of the protocol."""

NAMES = {
    PUBLISH: PublishRequest.__name__,
    DELIVERY: Delivery.__name__,
    **{kind: frame.__name__ for kind, frame in _CONTROL.items()},
}
_NUMBERS = {frame: kind for kind, frame in _CONTROL.items()}
_READERS = {kind: HeaderReader(frame.__name__, frame) for kind, frame in _CONTROL.items()}
_KINDS = Kinds(
    CLIENT_VERSION,
    NAMES,
    lambda kind: f"no frame of a client has the number {kind}; they go from {FIRST_KIND} to {max(NAMES)}",
    " of the client protocol",
)

_FIVE_ELEMENTS, _SEVEN_ELEMENTS = 0x95, 0x97
_UINT64 = 0xCF
_FALSE, _TRUE = 0xC2, 0xC3

_PUBLISH = Struct(">IBBBBI B BQ BI BQ B")
"""Length, four elements, version, kind, header size; four fields: reference, size of attributes, lifetime, traced. An
id that the client chose follows as a fifth field."""
_PUBLISH_HEADER = _PUBLISH.size - PREFIX_BYTES
_LARGEST_LENGTH = 0xFFFFFFFF

_DELIVERY_START = Struct(">IBBBBI B BQ")
"""As above, then seven fields. The first is the number."""
_DELIVERY_SHARED = Struct(">BI BI BQ BQ")
"""Size of attributes, hops, and the id's incarnation and counter; its broker and the subscriptions follow."""
_DELIVERY_SIZE = _DELIVERY_START.size + _DELIVERY_SHARED.size
_DELIVERY_MARKS = (
    *(FOUR_ELEMENTS, CLIENT_VERSION, DELIVERY, UINT32, _SEVEN_ELEMENTS, _UINT64),
    *(UINT32, UINT32, _UINT64, _UINT64),
)
_MOST_NAMES_CACHED = 1 << 14
_names_cache: dict[bytes, tuple[str, tuple[str, ...]]] = {}
"""Decoded broker and subscriptions by their packed bytes. Most deliveries repeat the same names."""

__all__ = [
    "CLIENT_VERSION",
    "DELIVERY",
    "FIRST_KIND",
    "NAMES",
    "DeliveryWriter",
    "attribute_count",
    "decode",
    "decode_delivery",
    "encode",
    "encode_publish",
    "has_id",
    "kind_of",
    "pack_subscriptions",
]


class _PublicationName(Record, frozen=True):
    """The end of a publication's header, if the client chose an id."""

    id: Name


class _DeliveryNames(Record, frozen=True):
    """The end of a delivery's header."""

    broker: str
    subscriptions: tuple[str, ...]


_ID_READER = HeaderReader("PublishRequest", _PublicationName)
_NAMES_READER = HeaderReader("Delivery", _DeliveryNames)


def encode(frame: ClientFrame) -> bytes:
    """Returns the frame's bytes, with the length prefix."""
    if isinstance(frame, PublishRequest):
        return encode_publish(*frame)
    if isinstance(frame, Delivery):
        writer = DeliveryWriter(frame.id, frame.hops, frame.attributes, frame.payload)
        return writer.frame(frame.number, frame.subscriptions)
    kind = _NUMBERS[type(frame)]
    fields = pack(frame, NAMES[kind])
    header_bytes = START.size - PREFIX_BYTES + len(fields)
    return pack_start(kind, CLIENT_VERSION, header_bytes) + fields


def encode_publish(
    reference: int,
    attributes: bytes,
    payload: bytes = b"",
    lifetime_ms: int = 0,
    is_traced: bool = False,
    id: str = "",
) -> bytes:
    packed_id = pack(id, "PublishRequest") if id else b""
    header_bytes = _PUBLISH_HEADER + len(packed_id)
    follows = header_bytes + len(attributes) + len(payload)
    if follows > _LARGEST_LENGTH:
        raise WireError(f"PublishRequest: {follows} bytes are more than a frame's length can say")
    if not 0 <= reference <= LARGEST_NUMBER or not 0 <= lifetime_ms <= LARGEST_NUMBER:
        raise WireError(f"PublishRequest: {reference} or {lifetime_ms} is not from 0 to {LARGEST_NUMBER}")
    start = _PUBLISH.pack(
        follows,
        FOUR_ELEMENTS,
        CLIENT_VERSION,
        PUBLISH,
        UINT32,
        header_bytes,
        _FIVE_ELEMENTS if id else FOUR_ELEMENTS,
        _UINT64,
        reference,
        UINT32,
        len(attributes),
        _UINT64,
        lifetime_ms,
        _TRUE if is_traced else _FALSE,
    )
    return b"".join((start, packed_id, attributes, payload)) if id else start + attributes + payload


def has_id(frame: bytes) -> bool:
    """Whether a frame of `encode_publish` has an id that the client chose."""
    return frame[START.size] == _FIVE_ELEMENTS


class DeliveryWriter:
    """Encodes the deliveries of one publication to several clients. Packs the common fields once."""

    __slots__ = ("_body", "_follows", "_header", "_shared")

    def __init__(self, id: PublicationId, hops: int, attributes: bytes, payload: bytes) -> None:
        numbers = (len(attributes), hops, id.incarnation, id.counter)
        if min(numbers) < 0 or max(hops, len(attributes)) > _LARGEST_LENGTH or max(numbers) > LARGEST_NUMBER:
            raise WireError(f"Delivery: one of the numbers {numbers} cannot be written")
        self._shared = _DELIVERY_SHARED.pack(
            UINT32, numbers[0], UINT32, hops, _UINT64, id.incarnation, _UINT64, id.counter
        ) + pack(id.broker, "Delivery")
        self._body = attributes + payload
        self._header = _DELIVERY_START.size - PREFIX_BYTES + len(self._shared)
        self._follows = self._header + len(self._body)
        if self._follows > _LARGEST_LENGTH // 2:
            raise WireError(f"Delivery: {self._follows} bytes are more than a frame's length can say")

    def frame(self, number: int, subscriptions: tuple[str, ...]) -> bytes:
        return self.frame_for(number, pack_subscriptions(subscriptions))

    def frame_for(self, number: int, packed: bytes) -> bytes:
        """`packed` comes from `pack_subscriptions`. A broker may cache it for the next publication."""
        size = len(packed)
        start = _DELIVERY_START.pack(
            self._follows + size,
            FOUR_ELEMENTS,
            CLIENT_VERSION,
            DELIVERY,
            UINT32,
            self._header + size,
            _SEVEN_ELEMENTS,
            _UINT64,
            number,
        )
        return b"".join((start, self._shared, packed, self._body))


def pack_subscriptions(names: tuple[str, ...]) -> bytes:
    return pack(names, "Delivery")


def kind_of(frame: bytes) -> int:
    """The kind number of a frame of either protocol; 0 if the frame is too short to have one."""
    return frame[6] if len(frame) >= START.size else 0


def decode(frame: bytes, limits: Limits) -> ClientFrame:
    """Decodes a whole frame, with its length prefix."""
    kind, name, body = read_start(frame, _KINDS, limits)
    if kind == DELIVERY:
        return decode_delivery(frame, limits)
    if kind == PUBLISH:
        return _read_publish(frame, body, limits)
    check_no_body(frame, name, body)
    read = _READERS[kind].read(frame[START.size :], limits)
    if isinstance(read, Hello):
        _check_name(read.client, name, "client")
        _check_name(read.session, name, "session")
    elif isinstance(read, Advertise | Unadvertise | Subscribe | Unsubscribe):
        _check_name(read.name, name, "name")
    elif isinstance(read, PublicationsAccepted) and len(read.answers) % 2:
        raise WireError(f"{name}: answers are not pairs of numbers")
    return read


def _check_name(text: str, kind: str, what: str) -> None:
    size = len(text.encode())
    if size > LONGEST_NAME:
        raise limit_exceeded(kind, f"{what} has {size} bytes", "of a name", LONGEST_NAME)


def _read_publish(frame: bytes, body: int, limits: Limits) -> PublishRequest:
    """`body` is the offset of the attributes."""
    id, elements = "", FOUR_ELEMENTS
    if body != _PUBLISH.size:
        if body < _PUBLISH.size or not has_id(frame):
            raise WireError(f"PublishRequest: the header has {body - PREFIX_BYTES} bytes, not {_PUBLISH_HEADER}")
        # The marker of an array of one element, which the reader expects.
        id, elements = _ID_READER.read(b"\x91" + frame[_PUBLISH.size : body], limits).id, _FIVE_ELEMENTS
        _check_name(id, "PublishRequest", "id")
    *_, four, wide, reference, narrow, attributes_bytes, also_wide, lifetime_ms, flag = _PUBLISH.unpack_from(frame)
    marks = (four, wide, narrow, also_wide)
    if marks != (elements, _UINT64, UINT32, _UINT64) or flag not in (_FALSE, _TRUE):
        raise WireError(f"PublishRequest: the header is not one: {frame[START.size : _PUBLISH.size].hex()}")
    if reference > LARGEST_NUMBER or lifetime_ms > LARGEST_NUMBER:
        raise WireError(f"PublishRequest: {max(reference, lifetime_ms)} is beyond {LARGEST_NUMBER}")
    payload = body + attributes_bytes
    if payload > len(frame):
        left = len(frame) - body
        raise WireError(f"PublishRequest: {attributes_bytes} bytes of attributes are announced, {left} are left")
    return PublishRequest(reference, frame[body:payload], frame[payload:], lifetime_ms, flag == _TRUE, id)


def decode_delivery(frame: bytes, limits: Limits) -> Delivery:
    """Like `decode`, but faster, for a whole frame of the kind `DELIVERY`."""
    if not _DELIVERY_SIZE < len(frame) <= limits.frame_bytes:
        raise WireError(f"Delivery: a frame of {len(frame)} bytes is none")
    start, rest = _DELIVERY_START.unpack_from(frame), _DELIVERY_SHARED.unpack_from(frame, _DELIVERY_START.size)
    follows, four, version, kind, mark, header_bytes, seven, wide, number = start
    m1, attributes_bytes, m2, hops, m3, incarnation, m4, counter = rest
    if (four, version, kind, mark, seven, wide, m1, m2, m3, m4) != _DELIVERY_MARKS:
        raise WireError(f"Delivery: the header is not one: {frame[PREFIX_BYTES:_DELIVERY_SIZE].hex()}")
    body = PREFIX_BYTES + header_bytes
    payload = body + attributes_bytes
    if follows != len(frame) - PREFIX_BYTES or body <= _DELIVERY_SIZE or payload > len(frame):
        raise WireError(
            f"Delivery: {header_bytes} bytes of header and {attributes_bytes} of attributes are announced, "
            f"{len(frame) - PREFIX_BYTES} follow"
        )
    names = frame[_DELIVERY_SIZE:body]
    found = _names_cache.get(names)
    if found is None:
        found = _read_names(names, limits)
    if max(number, incarnation, counter) > LARGEST_NUMBER:
        raise WireError(f"Delivery: one of {(number, incarnation, counter)} is beyond {LARGEST_NUMBER}")
    broker, subscriptions = found
    id = PublicationId(broker, incarnation, counter)
    return Delivery(number, subscriptions, hops, id, frame[body:payload], frame[payload:])


def _read_names(packed: bytes, limits: Limits) -> tuple[str, tuple[str, ...]]:
    if len(packed) > limits.header_bytes:
        raise limit_exceeded(
            "Delivery", f"the header has {len(packed)} bytes of names", "header_bytes", limits.header_bytes
        )
    # The marker of an array of two elements, which the reader expects.
    names = _NAMES_READER.read(b"\x92" + packed, limits)
    if len(_names_cache) >= _MOST_NAMES_CACHED:
        _names_cache.clear()
    found = _names_cache[packed] = (names.broker, names.subscriptions)
    return found


def attribute_count(attributes: bytes) -> int:
    """The number of entries in the head of a packed map; 0 if it is no map, which other code refuses."""
    first = attributes[0] if attributes else 0
    if first & 0xF0 == 0x80:
        return first & 0x0F
    if first == 0xDE:
        return int.from_bytes(attributes[1:3], "big")
    return int.from_bytes(attributes[1:5], "big") if first == 0xDF else 0
