"""The common format of all frames, between brokers and with clients, and the splitting of a byte stream into frames.

    bytes 0 to 3     the number of bytes that follow, big-endian
    bytes 4 to 11    the start of the header, a MessagePack array of four elements: the version, the kind, and the
                     header's size (from byte 4 to its end, always a 32-bit integer), all at fixed offsets
    to its end       the header's fourth element: an array of the kind's fields; fields at the end of an array that
                     have a default may be missing
    then             for a publication, its attributes and its payload, unchanged

For any bytes, the functions raise `WireError` and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from struct import Struct

from broker.wire.limits import Limits, WireError, limit_exceeded

PREFIX_BYTES = 4
START = Struct(">IBBBBI")
FOUR_ELEMENTS = 0x94
UINT32 = 0xCE


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


class FrameSplitter:
    """Splits a stream, which arrives in pieces, into whole frames.

    The splitter refuses a length beyond the limit as soon as it is received. It also refuses every further piece,
    because it is unknown where the next frame begins.
    """

    def __init__(self, limits: Limits) -> None:
        self._largest = limits.frame_bytes
        # The pieces of a large frame are only collected. Joining them at each piece would copy the frame many times.
        self._missing = 0
        self._pieces: list[bytes] = []
        self._refused: int | None = None
        """The announced length that was too large."""

    def feed(self, data: bytes) -> list[bytes]:
        """Adds a piece. Returns the frames that it completes."""
        if self._refused is not None:
            raise self._refusal(self._refused)
        if self._missing:
            self._pieces.append(data)
            self._missing -= len(data)
            if self._missing > 0:
                return []
            data, self._pieces, self._missing = b"".join(self._pieces), [], 0
        frames: list[bytes] = []
        start, size = 0, len(data)
        while size - start >= PREFIX_BYTES:
            length = PREFIX_BYTES + int.from_bytes(data[start : start + PREFIX_BYTES], "big")
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
        known = len(rest) >= PREFIX_BYTES
        length = PREFIX_BYTES + int.from_bytes(rest[:PREFIX_BYTES], "big") if known else PREFIX_BYTES
        self._pieces.append(rest)
        self._missing = length - len(rest)

    def _refuse(self, frames: list[bytes], length: int) -> list[bytes]:
        """Returns the frames before the refused one, and the next call raises. Raises at once if there are none."""
        self._refused = length
        if not frames:
            raise self._refusal(length)
        return frames

    def _refusal(self, length: int) -> WireError:
        """Returns a new error each time: an error that is raised again keeps the frames of all its tracebacks."""
        return limit_exceeded("frame", f"{length} bytes are announced", "frame_bytes", self._largest)
