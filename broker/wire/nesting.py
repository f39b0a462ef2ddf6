"""Checks the structure of packed bytes without building values.

A MessagePack reader allocates an array when it sees the array's length. Long arrays, each the first element of the
one around it, would make the reader claim megabytes for every few bytes. This check finds them first. It is slower than
reading. So it runs only when there are enough long arrays for such a nesting, or when reading has failed.
"""

from __future__ import annotations

from broker.wire.limits import DIGEST_BYTES, MOST_LONG_ARRAYS, Limits, WireError, limit_exceeded

_ARRAY, _TEXT, _BYTES, _SCALAR, _REFUSED = "array", "text", "bytes", "scalar", "refused"

_SIZES = {0xCA: 5, 0xCB: 9, 0xCC: 2, 0xCD: 3, 0xCE: 5, 0xCF: 9, 0xD0: 2, 0xD1: 3, 0xD2: 5, 0xD3: 9}
"""The size of each kind of number in bytes, with its marker. All other scalars have one byte."""

_LENGTHS = {
    0xC4: (_BYTES, 1),
    0xC5: (_BYTES, 2),
    0xC6: (_BYTES, 4),
    0xD9: (_TEXT, 1),
    0xDA: (_TEXT, 2),
    0xDB: (_TEXT, 4),
    0xDC: (_ARRAY, 2),
    0xDD: (_ARRAY, 4),
}
"""Elements whose length follows the marker, with the number of bytes of that length."""

_NEVER_SENT = frozenset((*range(0x80, 0x90), 0xC1, *range(0xC7, 0xCA), *range(0xD4, 0xD9), 0xDE, 0xDF))
"""Markers of maps and extensions, and the unused marker."""


def may_nest_long_arrays(packed: bytes) -> bool:
    """Whether the bytes may have too many long arrays. Long arrays start with one of two bytes, which also occur within
    texts and numbers."""
    return packed.count(0xDC) + packed.count(0xDD) > MOST_LONG_ARRAYS


def check_structure(packed: bytes, kind: str, limits: Limits, longest_bytes: int = DIGEST_BYTES) -> None:
    """Raises `WireError` for the first element that is invalid."""
    longest = limits.longest_array
    position = 0
    missing = [1]
    while missing:
        if not missing[-1]:
            missing.pop()
            continue
        missing[-1] -= 1
        what, length, position = _element(packed, position) if position < len(packed) else (_SCALAR, 1, position)
        if what == _ARRAY and len(missing) > limits.nesting:
            raise limit_exceeded(kind, f"arrays are nested {len(missing)} deep", "nesting", limits.nesting)
        if what == _ARRAY and length > longest:
            raise limit_exceeded(kind, f"an array has {length} elements", "of the longest list", longest)
        if what == _TEXT and length > limits.text_bytes:
            raise limit_exceeded(kind, f"a text has {length} bytes", "text_bytes", limits.text_bytes)
        if what == _BYTES and length > longest_bytes:
            raise limit_exceeded(kind, f"a digest has {length} bytes", "digest_bytes", longest_bytes)
        if what == _REFUSED:
            raise WireError(f"{kind}: byte {packed[position - 1]:#04x} starts nothing that a header may hold")
        # Each element of an array has at least one byte, so this check is valid for arrays too.
        if length > len(packed) - position:
            raise WireError(f"{kind}: the header ends within its fields, after {len(packed)} bytes")
        if what == _ARRAY:
            missing.append(length)
        else:
            position += length
    if position != len(packed):
        raise WireError(f"{kind}: {len(packed) - position} bytes follow the fields in the header")


def _element(packed: bytes, position: int) -> tuple[str, int, int]:
    """The kind of the element at this position, its length (in bytes, or elements of an array), and its offset."""
    marker = packed[position]
    position += 1
    if marker in _NEVER_SENT:
        return _REFUSED, 0, position
    if 0x90 <= marker <= 0x9F:
        return _ARRAY, marker & 0x0F, position
    if 0xA0 <= marker <= 0xBF:
        return _TEXT, marker & 0x1F, position
    if marker in _LENGTHS:
        what, size = _LENGTHS[marker]
        return what, int.from_bytes(packed[position : position + size], "big"), position + size
    return _SCALAR, _SIZES.get(marker, 1) - 1, position
