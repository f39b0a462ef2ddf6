"""The limits of frames and their parts, and the only error that a frame can cause."""

from __future__ import annotations

from dataclasses import dataclass

LARGEST_NUMBER = 2**63 - 1
"""Half of the encodable range: a receiver can still send a received number after incrementing it."""

DEEPEST_NESTING = 5
"""Arrays within arrays: a header's fields, link states, one of them, its neighbours, one of these."""

MOST_FIELDS = 13
"""The number of fields in a publication's header."""

DIGEST_BYTES = 64

LONGEST_NAME = 255
"""The largest name of a client, a subscription or an advertisement, in bytes."""

LONGEST_LIFETIME_MS = 100 * 365 * 24 * 3600 * 1000
"""The longest lifetime of a publication. Brokers exchange the time of expiry in nanoseconds since 1970, and
`LARGEST_NUMBER` is in 2262."""

REQUEST_OVERHEAD_BYTES = 512
"""An upper bound of a request's bytes without its longest text: the frame's start, numbers, and a name."""

MOST_LONG_ARRAYS = 64
"""This many nested arrays of the largest length claim at most a few megabytes."""


class WireError(Exception):
    """Bytes that are no frame, or a frame beyond a limit. The sender cannot be trusted any further."""

    exit_code = 1


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a receiver. Each is the largest value that it accepts."""

    frame_bytes: int = 1 << 20
    """A whole frame, with its length prefix."""
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
        """The longest text that is accepted in any client request."""
        return min(
            self.text_bytes, self.header_bytes - REQUEST_OVERHEAD_BYTES, self.frame_bytes - REQUEST_OVERHEAD_BYTES
        )

    @property
    def longest_array(self) -> int:
        return max(self.destinations, self.changes, self.items, MOST_FIELDS)


def limit_exceeded(kind: str, what: str, limit: str, largest: int) -> WireError:
    return WireError(f"{kind}: {what}; the limit {limit} is {largest}")


def attribute_count(attributes: bytes) -> int:
    """The number of entries in the head of a packed map; 0 if it is no map, which other code refuses."""
    first = attributes[0] if attributes else 0
    if first & 0xF0 == 0x80:
        return first & 0x0F
    if first == 0xDE:
        return int.from_bytes(attributes[1:3], "big")
    return int.from_bytes(attributes[1:5], "big") if first == 0xDF else 0
