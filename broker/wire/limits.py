"""How large a frame and its parts may be, and the one error that a frame can cause."""

from __future__ import annotations

from dataclasses import dataclass

LARGEST_NUMBER = 2**63 - 1
"""Half of what can be written: whoever raises a number that it received by one is still able to send it."""

DEEPEST_NESTING = 5
"""Arrays within arrays: a header's fields, link states, one of them, its neighbours, one of these."""

MOST_FIELDS = 13
"""A publication's header."""

DIGEST_BYTES = 64

LONGEST_NAME = 255
"""Bytes of a client's, a subscription's or an advertisement's name."""

LONGEST_LIFETIME_MS = 100 * 365 * 24 * 3600 * 1000
"""Of a publication. Brokers tell each other when it expires, in nanoseconds since 1970; `LARGEST_NUMBER` is in 2262."""

BESIDE_A_TEXT = 512
"""More bytes than a request's header has beside its longest text: the frame's start, numbers, and a name."""

MANY_LONG_ARRAYS = 64
"""As many arrays of the largest length may be nested without claiming more than a few megabytes."""


class WireError(Exception):
    """Bytes that are no frame, or a frame beyond a limit. Who sent it is not to be believed any further."""

    exit_code = 1


@dataclass(frozen=True, slots=True)
class Limits:
    """What a receiver accepts; each is the largest value that is still taken."""

    frame_bytes: int = 1 << 20
    """A whole frame, its length prefix included."""
    header_bytes: int = 1 << 20
    text_bytes: int = 1 << 16
    """A name, an address or an expression, in UTF-8."""
    nesting: int = DEEPEST_NESTING
    """Arrays within arrays in a header."""
    destinations: int = 4096
    changes: int = 16_384
    """Advertisements and subscriptions, new or withdrawn, in one update."""
    items: int = 16_384
    """Elements of any other list: link states, neighbours, clusters, settled publications."""

    @property
    def request_text_bytes(self) -> int:
        """A text that is taken in a client's request, whatever else the request says."""
        return min(self.text_bytes, self.header_bytes - BESIDE_A_TEXT, self.frame_bytes - BESIDE_A_TEXT)

    @property
    def longest_array(self) -> int:
        return max(self.destinations, self.changes, self.items, MOST_FIELDS)


def beyond(kind: str, what: str, limit: str, largest: int) -> WireError:
    return WireError(f"{kind}: {what}; the limit {limit} is {largest}")


def attribute_count(attributes: bytes) -> int:
    """How many entries a packed map says that it has; 0 for what is no map, which others refuse."""
    first = attributes[0] if attributes else 0
    if first & 0xF0 == 0x80:
        return first & 0x0F
    if first == 0xDE:
        return int.from_bytes(attributes[1:3], "big")
    return int.from_bytes(attributes[1:5], "big") if first == 0xDF else 0
