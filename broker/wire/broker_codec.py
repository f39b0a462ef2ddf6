"""Encodes and decodes frames between brokers.

`broker.wire.framing` describes the format of a frame. The size of a publication's attributes is a field of its header.
A broker that passes a publication on reads only the header. The attributes and the payload are slices of the frame:
they are not decoded, not checked and not encoded again.

For any bytes, `decode` raises `WireError` and nothing else.
"""

from __future__ import annotations

import msgpack

from broker.wire.framing import PREFIX_BYTES, START, Kinds, check_no_body, pack_start, read_fields, read_start
from broker.wire.limits import Limits, WireError
from broker.wire.message_fields import CONTROL, NAMES, PUBLISH, WRITERS, read_publish, write_publish
from routing.messages import Message, Publish

VERSION = 2

_KINDS = Kinds(VERSION, NAMES, lambda kind: f"no message has the number {kind}; they go from 1 to {len(NAMES)}")
_packer = msgpack.Packer()
"""One packer for all frames, because creating one takes longer than packing a header."""

__all__ = ["VERSION", "Limits", "WireError", "decode", "encode", "header_size", "size"]


def encode(message: Message, sequence: int | None = None) -> bytes:
    """Returns the frame's bytes, with the length prefix. `sequence` is the publication's number on its link."""
    kind, fields = _fields(message, sequence)
    header_bytes = START.size - PREFIX_BYTES + len(fields)
    body = (message.attributes, message.payload) if isinstance(message, Publish) else ()
    follows = header_bytes + sum(map(len, body))
    if follows > 0xFFFFFFFF:
        raise WireError(f"{NAMES[kind]}: {follows} bytes are more than a frame's length can say")
    return b"".join((pack_start(kind, VERSION, header_bytes, follows - header_bytes), fields, *body))


def header_size(message: Message, sequence: int | None = None) -> int:
    """The bytes of the length prefix and the header, without the publication's attributes and payload."""
    return START.size + len(_fields(message, sequence)[1])


def size(message: Message, sequence: int | None = None) -> int:
    """`len(encode(message, sequence))`, without building the frame."""
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
        # The text has a lone surrogate, or an integer has more than 64 bits.
        raise WireError(f"{NAMES[kind]}: cannot be written: {error}") from None
    return kind, packed


def decode(frame: bytes, limits: Limits) -> tuple[Message, int | None]:
    """Decodes a whole frame, with its length prefix. Returns the message and the publication's number on its link."""
    kind, name, body = read_start(frame, _KINDS, limits)
    fields = read_fields(frame[START.size : body], name, limits)
    if kind == PUBLISH:
        return read_publish(fields, frame, body, limits)
    check_no_body(frame, name, body)
    _, _, read = CONTROL[kind]
    return read(fields, limits), None
