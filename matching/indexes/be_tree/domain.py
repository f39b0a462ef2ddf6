"""The domain of a cluster directory: the range of its intervals [BET Table I: v_min, v_max].

In the paper, the domain of an attribute is known. Here it is learned from the ends of the added intervals. An interval
without an end extends to the end of the domain. Both ends are rounded outwards, to powers of two from zero, but not
beyond the smallest bucket that encloses all. An end therefore moves only a few times, not with every new extreme. Its
position does not depend on the order of insertion.

A value beyond an end is treated as the last key inside, if there are intervals without an end on that side. Otherwise
no interval contains it.
"""

from __future__ import annotations

from matching.indexes.be_tree.keys import (
    LARGEST_KEY,
    LINEAR_KEYS,
    PRESENT_KEY,
    ZERO_KEY,
    Access,
    Bounds,
    enclosing_bucket,
)

_ONE_EXPONENT = (1 << 52) - 1
"""A mask of the bits of a double below its exponent."""


class Domain:
    """The range of the keys. While no interval has an end, all keys have the same position."""

    __slots__ = ("_bounds", "_is_open_above", "_is_open_below")

    def __init__(self) -> None:
        self._bounds: Bounds | None = None
        self._is_open_below = False
        self._is_open_above = False

    @property
    def bounds(self) -> Bounds | None:
        return self._bounds

    def is_outgrown_by(self, access: Access) -> bool:
        """Whether adding the access would move an end."""
        return self._widened(access) != self._bounds

    def widen(self, access: Access) -> None:
        self._bounds = self._widened(access)
        self._is_open_below |= access.low is None
        self._is_open_above |= access.high is None

    def _widened(self, access: Access) -> Bounds | None:
        ends = [end for end in (access.low, access.high) if end is not None]
        if not ends:
            return self._bounds
        if self._bounds is not None:
            if all(self._bounds[0] <= end <= self._bounds[1] for end in ends):
                return self._bounds
            ends += self._bounds
        return rounded_outwards(min(ends), max(ends))

    def interval(self, access: Access) -> Bounds:
        """The interval of an access that is within the domain."""
        if self._bounds is None:
            return PRESENT_KEY, PRESENT_KEY
        low, high = self._bounds
        return low if access.low is None else access.low, high if access.high is None else access.high

    def position(self, key: int) -> int | None:
        """The position of a value's key, or None if no interval can contain it."""
        if self._bounds is None:
            return PRESENT_KEY
        low, high = self._bounds
        if key < low:
            return low if self._is_open_below else None
        if key > high:
            return high if self._is_open_above else None
        return key

    def overlap(self, first: int | None, last: int | None) -> Bounds | None:
        """The range of positions of the keys from first to last, or None if no interval can contain any of them.

        None as first or last means that the range has no such end.
        """
        if self._bounds is None:
            return PRESENT_KEY, PRESENT_KEY
        low, high = self._bounds
        if (last is not None and last < low and not self._is_open_below) or (
            first is not None and first > high and not self._is_open_above
        ):
            return None
        return (
            low if first is None else min(max(first, low), high),
            high if last is None else max(min(last, high), low),
        )


def rounded_outwards(low: int, high: int) -> Bounds:
    first, last = enclosing_bucket(low, high)
    return max(first, _rounded_down(low)), min(last, LARGEST_KEY - _rounded_down(LARGEST_KEY - high))


def _rounded_down(key: int) -> int:
    """Rounds towards smaller keys: to a smaller power of two above zero, to a larger one below zero."""
    if key < ZERO_KEY:
        below = ZERO_KEY - 1 - key
        return ZERO_KEY - 1 - (below | _ONE_EXPONENT if below >= LINEAR_KEYS else (1 << below.bit_length()) - 1)
    above = key - ZERO_KEY
    return ZERO_KEY + (above & ~_ONE_EXPONENT if above >= LINEAR_KEYS else 1 << above.bit_length() >> 1)
