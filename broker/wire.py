"""Frames between brokers: messages as bytes, and back.

    bytes 0 to 3     how many bytes follow, big-endian
    bytes 4 to 11    the start of the header, a MessagePack array of four elements: the version (1), the kind, the
                     header's size (bytes 4 to its end, always as a 32-bit integer), so that all three have their place
    to its end       the header's fourth element: an array of the kind's fields
    then             for a publication, its attributes (their size is a field of the header) and its payload

Who passes a publication on reads the header. The attributes and the payload are bytes cut out of the frame: they are
not decoded, not checked and not written anew.

Whatever the bytes are, `decode` and `FrameReader` raise `WireError` and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct

import msgpack

from broker.wire_limits import DIGEST_BYTES, Limits, WireError, beyond
from broker.wire_messages import CONTROL, NAMES, PUBLISH, WRITERS, read_publish, write_publish
from broker.wire_nesting import check_structure, may_nest_long_arrays
from routing.messages import Message, Publish

VERSION = 1

_PREFIX_BYTES = 4
_START = Struct(">IBBBBI")
_FOUR_ELEMENTS = 0x94
_32_BIT_INTEGER = 0xCE
_packer = msgpack.Packer()
"""One for all frames: making one takes longer than packing a header."""

__all__ = ["VERSION", "FrameReader", "Limits", "WireError", "decode", "encode", "header_size", "size"]


def encode(message: Message, sequence: int | None = None) -> bytes:
    """The frame, length prefix included. `sequence` is the publication's number on its link."""
    kind, fields = _fields(message, sequence)
    header_bytes = _START.size - _PREFIX_BYTES + len(fields)
    body = (message.attributes, message.payload) if isinstance(message, Publish) else ()
    follows = header_bytes + sum(map(len, body))
    if follows > 0xFFFFFFFF:
        raise WireError(f"{NAMES[kind]}: {follows} bytes are more than a frame's length can say")
    start = _START.pack(follows, _FOUR_ELEMENTS, VERSION, kind, _32_BIT_INTEGER, header_bytes)
    return b"".join((start, fields, *body))


def header_size(message: Message, sequence: int | None = None) -> int:
    """Bytes of the frame that are not the publication's own: the length prefix and the header."""
    return _START.size + len(_fields(message, sequence)[1])


def size(message: Message, sequence: int | None = None) -> int:
    """`len(encode(message, sequence))`, without putting the frame together."""
    body = len(message.attributes) + len(message.payload) if isinstance(message, Publish) else 0
    return header_size(message, sequence) + body


def _fields(message: Message, sequence: int | None) -> tuple[int, bytes]:
    if isinstance(message, Publish):
        kind, fields = PUBLISH, write_publish(message, sequence)
    else:
        kind, write = WRITERS[type(message)]
        if sequence is not None:
            raise WireError(f"{NAMES[kind]}: only publications are numbered, and this one has number {sequence}")
        fields = write(message)
    try:
        packed: bytes = _packer.pack(fields)
    except (ValueError, OverflowError) as error:
        # A lone surrogate in a text, or an integer of more than 64 bits.
        raise WireError(f"{NAMES[kind]}: cannot be written: {error}") from None
    return kind, packed


def decode(frame: bytes, limits: Limits) -> tuple[Message, int | None]:
    """The message of a whole frame, length prefix included, and the publication's number on its link."""
    if len(frame) < _START.size:
        raise WireError(f"a frame of {len(frame)} bytes is shorter than any header")
    follows, marker, version, kind, integer_marker, header_bytes = _START.unpack_from(frame)
    if version != VERSION:
        raise WireError(f"version {version} is not known here; this is version {VERSION}")
    name = NAMES.get(kind)
    if name is None:
        raise WireError(f"no message has the number {kind}; they go from 1 to {len(NAMES)}")
    if len(frame) > limits.frame_bytes:
        raise beyond(name, f"the frame has {len(frame)} bytes", "frame_bytes", limits.frame_bytes)
    if follows != len(frame) - _PREFIX_BYTES:
        raise WireError(f"{name}: {follows} bytes are announced, {len(frame) - _PREFIX_BYTES} follow")
    if marker != _FOUR_ELEMENTS or integer_marker != _32_BIT_INTEGER:
        raise WireError(f"{name}: the header does not start as one: {frame[_PREFIX_BYTES : _START.size].hex()}")
    if header_bytes > limits.header_bytes:
        raise beyond(name, f"the header has {header_bytes} bytes", "header_bytes", limits.header_bytes)
    body = _PREFIX_BYTES + header_bytes
    if not _START.size < body <= len(frame):
        raise WireError(f"{name}: the header cannot have {header_bytes} bytes in a frame of {len(frame)}")
    fields = _unpacked(frame[_START.size : body], name, limits)
    if kind == PUBLISH:
        return read_publish(fields, frame, body, limits)
    if body != len(frame):
        raise WireError(f"{name}: {len(frame) - body} bytes follow the header")
    _, _, read = CONTROL[kind]
    return read(fields, limits), None


def _unpacked(packed: bytes, kind: str, limits: Limits) -> object:
    if may_nest_long_arrays(packed):
        check_structure(packed, kind, limits)
    try:
        fields: object = msgpack.unpackb(
            packed,
            use_list=False,
            raw=False,
            strict_map_key=True,
            max_str_len=limits.text_bytes,
            max_bin_len=DIGEST_BYTES,
            max_array_len=limits.longest_array,
            max_map_len=0,
            max_ext_len=0,
        )
    except (ValueError, msgpack.exceptions.UnpackException) as error:
        check_structure(packed, kind, limits)
        raise WireError(f"{kind}: the header cannot be read: {error}") from None
    return fields


class FrameReader:
    """Frames from a stream that comes in pieces: `feed` a piece, then iterate over what is complete.

    A length beyond the limit is refused as soon as it is there, and again at every further attempt: nobody knows
    where the next frame would begin.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._buffer = bytearray()
        self._refusal: WireError | None = None

    def feed(self, data: bytes) -> None:
        if self._refusal is None:
            self._buffer += data

    def __iter__(self) -> Iterator[bytes]:
        while (end := self._end()) is not None:
            with memoryview(self._buffer) as view:
                frame = bytes(view[:end])
            del self._buffer[:end]
            yield frame

    def _end(self) -> int | None:
        """Where the first frame ends, if all of it is there."""
        if self._refusal is None and len(self._buffer) >= _PREFIX_BYTES:
            length = _PREFIX_BYTES + int.from_bytes(self._buffer[:_PREFIX_BYTES], "big")
            if length <= self._limits.frame_bytes:
                return length if length <= len(self._buffer) else None
            self._refusal = beyond("frame", f"{length} bytes are announced", "frame_bytes", self._limits.frame_bytes)
            self._buffer.clear()
        if self._refusal is not None:
            raise self._refusal
        return None
