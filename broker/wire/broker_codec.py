"""Frames between brokers: messages as bytes, and back.

How a frame is built is said in `broker.wire.framing`; the size of a publication's attributes is a field of its header.
Who passes a publication on reads the header. The attributes and the payload are bytes cut out of the frame: they are
not decoded, not checked and not written anew.

Whatever the bytes are, `decode` raises `WireError` and nothing else.
"""

from __future__ import annotations

import msgpack

from broker.wire.framing import PREFIX_BYTES, START, Kinds, read_fields, read_start, refuse_body, written_start
from broker.wire.limits import Limits, WireError
from broker.wire.message_fields import CONTROL, NAMES, PUBLISH, WRITERS, read_publish, write_publish
from routing.messages import Message, Publish

VERSION = 2

_KINDS = Kinds(VERSION, NAMES, lambda kind: f"no message has the number {kind}; they go from 1 to {len(NAMES)}")
_packer = msgpack.Packer()
"""One for all frames: making one takes longer than packing a header."""

__all__ = ["VERSION", "Limits", "WireError", "decode", "encode", "header_size", "size"]


def encode(message: Message, sequence: int | None = None) -> bytes:
    """The frame, length prefix included. `sequence` is the publication's number on its link."""
    kind, fields = _fields(message, sequence)
    header_bytes = START.size - PREFIX_BYTES + len(fields)
    body = (message.attributes, message.payload) if isinstance(message, Publish) else ()
    follows = header_bytes + sum(map(len, body))
    if follows > 0xFFFFFFFF:
        raise WireError(f"{NAMES[kind]}: {follows} bytes are more than a frame's length can say")
    return b"".join((written_start(kind, VERSION, header_bytes, follows - header_bytes), fields, *body))


def header_size(message: Message, sequence: int | None = None) -> int:
    """Bytes of the frame that are not the publication's own: the length prefix and the header."""
    return START.size + len(_fields(message, sequence)[1])


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
    kind, name, body = read_start(frame, _KINDS, limits)
    fields = read_fields(frame[START.size : body], name, limits)
    if kind == PUBLISH:
        return read_publish(fields, frame, body, limits)
    refuse_body(frame, name, body)
    _, _, read = CONTROL[kind]
    return read(fields, limits), None
