"""Order-preserving 64-bit keys, and the buckets that halve their range.

A cluster directory of the paper halves a known, finite domain [BET 4.3]. The domains here are open, so values are
mapped to 64-bit keys and the range of the keys is halved. If v <= w then key(v) <= key(w). Values with the same key
are in the same bucket. Candidates are verified, so a tie costs an evaluation but never changes a result.

Numbers with an absolute value below 2^31 are mapped linearly, in steps of 2^-31, so that halving the keys halves the
values. For larger numbers, the key is taken from the bits of the double. The key of a string is its first eight bytes.
The keys of booleans are 0 and 1.

A bucket is a dyadic interval of keys: all keys with a common prefix of bits. Of two buckets, either they are disjoint
or one encloses the other. The smallest bucket that encloses two keys depends only on these keys.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import TypeAlias

from matching.expressions.conjunction import Condition
from matching.expressions.intervals import ValueSet
from matching.expressions.values import LARGEST_INT, SMALLEST_INT, Value, smallest

Bounds: TypeAlias = tuple[int, int]
"""A bucket: its first and its last key."""

KEY_BITS = 64
LARGEST_KEY = (1 << KEY_BITS) - 1
ZERO_KEY = 1 << 63
_LINEAR_LIMIT = 1 << 31
_STEPS = 1 << 31
LINEAR_KEYS = _LINEAR_LIMIT * _STEPS
"""The number of linear keys on each side of zero."""
_LIMIT_BITS: int = struct.unpack(">Q", struct.pack(">d", float(_LINEAR_LIMIT)))[0]
_KEY_BYTES = KEY_BITS // 8


def key_of(value: Value) -> int:
    """The key of a value."""
    if isinstance(value, str):
        return int.from_bytes(value[:_KEY_BYTES].encode()[:_KEY_BYTES].ljust(_KEY_BYTES, b"\0"), "big")
    if isinstance(value, bool):
        return int(value)
    return _number_key(value)


def _number_key(number: int | float) -> int:
    size = abs(number)
    if size < _LINEAR_LIMIT:
        steps = int(size * _STEPS)
    else:
        bits: int = struct.unpack(">Q", struct.pack(">d", size))[0]
        steps = LINEAR_KEYS + bits - _LIMIT_BITS
    return ZERO_KEY + steps if number >= 0 else ZERO_KEY - 1 - steps


def enclosing_bucket(low: int, high: int) -> Bounds:
    """The smallest bucket that encloses both keys."""
    free_bits = (low ^ high).bit_length()
    first = low >> free_bits << free_bits
    return first, first | ((1 << free_bits) - 1)


@dataclass(frozen=True, slots=True)
class Access:
    """A condition as a directory uses it: the interval of its keys [BET Table I], and its value if it has only one."""

    low: int | None
    """None if the condition has no lower end. It then starts at the lower end of the directory's domain."""
    high: int | None
    """None if the condition has no upper end."""
    point: Value | None = None
    """The only value that can satisfy the condition."""
    is_proven_by_point: bool = False
    """Whether every publication with that value satisfies the condition."""
    is_proven_by_presence: bool = False
    """Whether every publication with any value of the dimension satisfies the condition."""

    @property
    def openness(self) -> int:
        """0 for a single value, else 1 plus the number of missing ends. A higher value is more likely to be true."""
        return 0 if self.point is not None else 1 + (self.low is None) + (self.high is None)

    @property
    def is_bounded(self) -> bool:
        return self.low is not None and self.high is not None


def access_to(condition: Condition) -> Access:
    """The access of a condition.

    If the condition has several intervals, the access spans all of them. A condition that no value satisfies has
    neither end, because its place does not matter.
    """
    values = condition.values
    if values is None:
        return Access(None, None, is_proven_by_presence=condition.is_exact)
    if values.is_empty:
        return Access(None, None)
    points = values.points(at_most=1)
    if points:
        key = key_of(points[0])
        return Access(key, key, points[0], is_proven_by_point=condition.is_exact)
    return Access(*key_span(values))


def key_span(values: ValueSet) -> tuple[int | None, int | None]:
    """The smallest and the largest key of a non-empty set. None for an end that the set does not have."""
    lower, upper = values.intervals[0][0], values.intervals[-1][1]
    low = None if lower == smallest(values.type_class) else key_of(lower)
    high = None if upper is None else _last_key_before(upper)
    return low, high


def _last_key_before(upper: Value) -> int:
    if isinstance(upper, str):
        encoded = upper.encode()
        # A string shares its key with a smaller one only if it is longer than the key or ends with NUL.
        has_tie = len(encoded) > _KEY_BYTES or encoded.endswith(b"\0")
        return key_of(upper) if has_tie else key_of(upper) - 1
    if isinstance(upper, bool):
        return 0
    return _number_key(_previous_number(upper))


def _previous_number(number: int | float) -> int | float:
    as_float = float(number)
    preceding: list[int | float] = [as_float if as_float < number else math.nextafter(as_float, -math.inf)]
    if math.isfinite(number):
        previous_int = math.ceil(number) - 1
        if SMALLEST_INT <= previous_int <= LARGEST_INT:
            preceding.append(previous_int)
    return max(preceding)


PRESENT_KEY = 0
"""The key for the presence of an attribute, which `EXISTS` tests."""
