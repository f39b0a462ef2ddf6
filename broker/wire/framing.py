"""The common format of all frames, between brokers and with clients, and the splitting of a byte stream into frames.

    bytes 0 to 3     the number of bytes that follow, big-endian
    bytes 4 to 11    the start of the header, a MessagePack array of four elements: the version, the kind, and the
                     header's size (from byte 4 to its end, always a 32-bit integer), all at fixed offsets
    to its end       the header's fourth element: an array of the kind's fields; fields at the end of an array that
                     have a default may be missing
    then             for a publication, its attributes and its payload, unchanged

A `HeaderReader` decodes the fields of one kind of frame into typed values. msgspec checks types and ranges while it
decodes, and builds nothing that claims more memory than the bytes justify. The limits of lists and texts are checked
afterwards, and only if the header is long enough to exceed one.

For any bytes, the functions raise `WireError` and nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from struct import Struct
from typing import Generic, TypeVar

import msgspec

from broker.wire.header_errors import LONGEST_SHOWN, explain
from broker.wire.limits import Limits, WireError, limit_exceeded

PREFIX_BYTES = 4
START = Struct(">IBBBBI")
FOUR_ELEMENTS = 0x94
UINT32 = 0xCE

_LIMIT_OF_FIELD = {
    "changes": "changes",
    "destinations": "destinations",
    "local": "destinations",
    "transit": "destinations",
    "turns": "destinations",
}
"""The limit of a list by the name of its field. All other lists have the limit `items`."""

T = TypeVar("T")

_encoder = msgspec.msgpack.Encoder()


@dataclass(frozen=True, slots=True)
class Kinds:
    """The kinds of frames of one protocol."""

    version: int
    names: Mapping[int, str]
    unknown: Callable[[int], str]
    """Returns the error message for an unknown kind number."""
    protocol: str = ""
    """Follows the version in error messages."""


def pack_start(kind: int, version: int, header_bytes: int, body_bytes: int = 0) -> bytes:
    return START.pack(header_bytes + body_bytes, FOUR_ELEMENTS, version, kind, UINT32, header_bytes)


def read_start(frame: bytes, kinds: Kinds, limits: Limits) -> tuple[int, str, int]:
    """Checks the lengths of a whole frame. Returns the kind, its name, and the offset of the body."""
    if len(frame) < START.size:
        raise WireError(f"a frame of {len(frame)} bytes is shorter than any header")
    follows, marker, version, kind, integer_marker, header_bytes = START.unpack_from(frame)
    if version != kinds.version:
        raise WireError(f"version {version}{kinds.protocol} is not known here; this is version {kinds.version}")
    name = kinds.names.get(kind)
    if name is None:
        raise WireError(kinds.unknown(kind))
    if len(frame) > limits.frame_bytes:
        raise limit_exceeded(name, f"the frame has {len(frame)} bytes", "frame_bytes", limits.frame_bytes)
    if follows != len(frame) - PREFIX_BYTES:
        raise WireError(f"{name}: {follows} bytes are announced, {len(frame) - PREFIX_BYTES} follow")
    if marker != FOUR_ELEMENTS or integer_marker != UINT32:
        raise WireError(f"{name}: the header does not start as one: {frame[PREFIX_BYTES : START.size].hex()}")
    if header_bytes > limits.header_bytes:
        raise limit_exceeded(name, f"the header has {header_bytes} bytes", "header_bytes", limits.header_bytes)
    body = PREFIX_BYTES + header_bytes
    if not START.size < body <= len(frame):
        raise WireError(f"{name}: the header cannot have {header_bytes} bytes in a frame of {len(frame)}")
    return kind, name, body


def check_no_body(frame: bytes, name: str, body: int) -> None:
    """Raises if bytes follow the header, for frames without a body."""
    if body != len(frame):
        raise WireError(f"{name}: {len(frame) - body} bytes follow the header")


def pack(fields: object, kind: str) -> bytes:
    """Returns the MessagePack bytes of a header's fields. `kind` names the frame in errors."""
    try:
        return _encoder.encode(fields)
    except (ValueError, OverflowError) as error:
        # The text has a lone surrogate, or an integer has more than 64 bits.
        raise WireError(f"{kind}: cannot be written: {error}") from None


class HeaderReader(Generic[T]):
    def __init__(self, kind: str, type: type[T]) -> None:
        """`kind` names the frame in errors."""
        self.kind = kind
        self._type = type
        self._decoder = msgspec.msgpack.Decoder(type)

    def read(self, packed: bytes, limits: Limits) -> T:
        try:
            fields = self._decoder.decode(packed)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise WireError(f"{self.kind}: {explain(error, packed, self._type)}") from None
        if len(packed) > limits.smallest:
            _check_limits(fields, "", self.kind, limits)
        return fields


def check_distinct(names: Sequence[str], kind: str, what: str) -> None:
    if len(names) > 1 and len(set(names)) != len(names):
        twice, _ = Counter(names).most_common(1)[0]
        raise WireError(f"{kind}: {what} names {twice[:LONGEST_SHOWN]!r} twice")


def _check_limits(value: object, place: str, kind: str, limits: Limits) -> None:
    """Raises `WireError` for the first list or text in `value` that exceeds its limit. `place` names the value."""
    if isinstance(value, str):
        size = len(value.encode())
        if size > limits.text_bytes:
            raise limit_exceeded(kind, f"{place} has {size} bytes", "text_bytes", limits.text_bytes)
        return
    for name, element in _fields_of(value):
        inner = f"{place}.{name}" if place else name
        if type(element) is tuple:
            limit = _LIMIT_OF_FIELD.get(name, "items")
            if len(element) > getattr(limits, limit):
                raise limit_exceeded(kind, f"{inner} has {len(element)} elements", limit, getattr(limits, limit))
            for index, each in enumerate(element):
                _check_limits(each, f"{inner}[{index}]", kind, limits)
        else:
            _check_limits(element, inner, kind, limits)


def _fields_of(value: object) -> Iterable[tuple[str, object]]:
    if isinstance(value, msgspec.Struct):
        return ((name, getattr(value, name)) for name in value.__struct_fields__)
    if isinstance(value, tuple):
        names = getattr(value, "_fields", None) or map(str, range(len(value)))
        return zip(names, value, strict=True)
    return ()


class FrameSplitter:
    """Splits a stream, which arrives in pieces, into whole frames.

    The splitter refuses a length beyond the limit as soon as it is received. It also refuses every further piece,
    because it is unknown where the next frame begins.
    """

    def __init__(self, limits: Limits, hello_bytes: int | None = None) -> None:
        """`hello_bytes`: a smaller limit for the first frame, from a peer that is not authenticated."""
        self._frame_bytes = limits.frame_bytes
        self._is_first = hello_bytes is not None and hello_bytes < limits.frame_bytes
        self._largest = hello_bytes if hello_bytes is not None and self._is_first else limits.frame_bytes
        # Many small pieces as objects of their own would need far more memory than their bytes.
        self._partial = bytearray()
        """The received part of an incomplete frame."""
        self._missing = 0
        self._refused: int | None = None
        """The announced length that was too large."""

    def feed(self, data: bytes) -> list[bytes]:
        """Adds a piece. Returns the frames that it completes."""
        if self._refused is not None:
            raise self._refusal(self._refused)
        if self._missing:
            self._partial += data
            self._missing -= len(data)
            if self._missing > 0:
                return []
            data, self._partial, self._missing = bytes(self._partial), bytearray(), 0
        frames: list[bytes] = []
        start, size = 0, len(data)
        while size - start >= PREFIX_BYTES:
            length = PREFIX_BYTES + int.from_bytes(data[start : start + PREFIX_BYTES], "big")
            if length > self._largest:
                if self._is_first and frames:
                    self._end_first()
                    continue
                return self._refuse(frames, length)
            if length > size - start:
                break
            frames.append(data[start : start + length])
            start += length
        if self._is_first and frames:
            self._end_first()
        if start < size:
            self._collect(data[start:])
        return frames

    def _end_first(self) -> None:
        """Applies the limit of further frames."""
        self._is_first, self._largest = False, self._frame_bytes

    def _collect(self, rest: bytes) -> None:
        known = len(rest) >= PREFIX_BYTES
        length = PREFIX_BYTES + int.from_bytes(rest[:PREFIX_BYTES], "big") if known else PREFIX_BYTES
        self._partial += rest
        self._missing = length - len(rest)

    def _refuse(self, frames: list[bytes], length: int) -> list[bytes]:
        """Returns the frames before the refused one, and the next call raises. Raises at once if there are none."""
        self._refused = length
        if not frames:
            raise self._refusal(length)
        return frames

    def _refusal(self, length: int) -> WireError:
        """Returns a new error each time: an error that is raised again keeps the frames of all its tracebacks."""
        limit = "hello_bytes" if self._is_first else "frame_bytes"
        return limit_exceeded("frame", f"{length} bytes are announced", limit, self._largest)
