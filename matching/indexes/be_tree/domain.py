"""The domain of a cluster directory: from where to where its intervals reach [BET Table I: v_min, v_max].

The paper knows the domain of an attribute. Ours is learned from the ends of the intervals that come in; an interval
without an end reaches to the domain's. Both ends are rounded outwards, to powers of two counted from zero, but not
beyond the smallest bucket around all: so an end moves a few times, not with every new extreme, and where it is does
not depend on the order in which they came.

A value beyond an end counts as the last key inside, if there are intervals that reach there; otherwise nothing does.
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
"""The bits of a double below its exponent."""


class Domain:
    """Without any end yet, all keys are one: it is then all or nothing."""

    __slots__ = ("_bounds", "_is_open_above", "_is_open_below")

    def __init__(self) -> None:
        self._bounds: Bounds | None = None
        self._is_open_below = False
        self._is_open_above = False

    @property
    def bounds(self) -> Bounds | None:
        return self._bounds

    def is_outgrown_by(self, access: Access) -> bool:
        """Would accepting the access move an end?"""
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
        """Where an access that the domain encloses stands in it."""
        if self._bounds is None:
            return PRESENT_KEY, PRESENT_KEY
        low, high = self._bounds
        return low if access.low is None else access.low, high if access.high is None else access.high

    def position(self, key: int) -> int | None:
        """Where a value stands; None if no interval reaches there."""
        if self._bounds is None:
            return PRESENT_KEY
        low, high = self._bounds
        if key < low:
            return low if self._is_open_below else None
        if key > high:
            return high if self._is_open_above else None
        return key

    def overlap(self, first: int | None, last: int | None) -> Bounds | None:
        """Where the values from one key to another stand, None for no end; None if no interval reaches there."""
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
    """Towards smaller keys: to a smaller power of two above zero, to a larger one below."""
    if key < ZERO_KEY:
        below = ZERO_KEY - 1 - key
        return ZERO_KEY - 1 - (below | _ONE_EXPONENT if below >= LINEAR_KEYS else (1 << below.bit_length()) - 1)
    above = key - ZERO_KEY
    return ZERO_KEY + (above & ~_ONE_EXPONENT if above >= LINEAR_KEYS else 1 << above.bit_length() >> 1)
