"""The limits of frames and their parts, and the only error that a frame can cause."""

from __future__ import annotations

from dataclasses import dataclass, field

LONGEST_NAME = 255
"""The largest name of a client, a subscription or an advertisement, in bytes."""

LONGEST_LIFETIME_MS = 100 * 365 * 24 * 3600 * 1000
"""The longest lifetime of a publication. Brokers exchange the time of expiry in nanoseconds since 1970, and
`LARGEST_NUMBER` is in 2262."""

REQUEST_OVERHEAD_BYTES = 512
"""An upper bound of a request's bytes without its longest text: the frame's start, numbers, and a name."""


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
    destinations: int = 4096
    changes: int = 16_384
    """Advertisements and subscriptions, new or withdrawn, in one update."""
    items: int = 16_384
    """Elements of any other list: link states, neighbours, clusters, settled publications."""
    smallest: int = field(init=False, repr=False)
    """The smallest of the limits of lists and texts. A header with fewer bytes cannot exceed any of them."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "smallest", min(self.text_bytes, self.destinations, self.changes, self.items))

    @property
    def request_text_bytes(self) -> int:
        """The longest text that is accepted in any client request."""
        return min(
            self.text_bytes, self.header_bytes - REQUEST_OVERHEAD_BYTES, self.frame_bytes - REQUEST_OVERHEAD_BYTES
        )


def limit_exceeded(kind: str, what: str, limit: str, largest: int) -> WireError:
    return WireError(f"{kind}: {what}; the limit {limit} is {largest}")
