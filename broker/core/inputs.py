"""What happened: the broker core's inputs, in the past tense. The frequent ones are tuples, for speed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from routing.messages import Heartbeat, Message, PublicationId


@dataclass(frozen=True, slots=True)
class ClientConnected:
    """A client is here, for the first time or again; what waits for it is delivered.

    With a session's name the driver is told by `Greet` whether there was such a session. Another session under the
    same name starts anew, except that what a durable client (`keep` is None) entered and waits for stays.
    """

    client: str
    session: str = ""
    is_reliable: bool | None = None
    """Deliveries are to be acknowledged. None: at a durable broker."""
    keep: int | None = None
    """Nanoseconds for which the session outlives a connection; None: for ever. Counts if a session is named."""
    window: int | None = None
    """Deliveries that may be on their way; None: as many as there are."""


@dataclass(frozen=True, slots=True)
class ClientPaused:
    """The client's connection takes no more at present."""

    client: str


@dataclass(frozen=True, slots=True)
class ClientResumed:
    client: str


@dataclass(frozen=True, slots=True)
class ClientLost:
    """The connection is gone. A durable client keeps its entries and what arrives for it."""

    client: str


@dataclass(frozen=True, slots=True)
class ClientLeft:
    """The client said farewell: all that it had goes."""

    client: str


@dataclass(frozen=True, slots=True)
class RightsNarrowed:
    """The client, here or away, may not have these any more: they are withdrawn in its name, and nobody is answered."""

    client: str
    subscriptions: tuple[str, ...]
    """By the client's names for them."""
    advertisements: tuple[str, ...]
    publications: frozenset[PublicationId]
    """Not to be delivered, or not again."""


@dataclass(frozen=True, slots=True)
class Advertised:
    client: str
    name: str
    """The client's own name for the advertisement; unique among the client's advertisements."""
    expression: str
    reference: str = ""
    """What the answer carries; empty: the name."""


@dataclass(frozen=True, slots=True)
class Unadvertised:
    client: str
    name: str
    reference: str = ""


@dataclass(frozen=True, slots=True)
class Subscribed:
    client: str
    name: str
    expression: str
    reference: str = ""


@dataclass(frozen=True, slots=True)
class Unsubscribed:
    client: str
    name: str
    reference: str = ""


class Published(NamedTuple):
    client: str
    reference: int
    """The client's number for this request; the answer carries it."""
    attributes: bytes
    payload: bytes = b""
    expires: int | None = None
    is_traced: bool = False


@dataclass(frozen=True, slots=True)
class DeliveryAcknowledged:
    """The client has taken all its deliveries up to this number."""

    client: str
    number: int


@dataclass(frozen=True, slots=True)
class PeerUp:
    """A link to a neighbour stands; `greeting` is what it said of itself."""

    peer: str
    greeting: Heartbeat
    cost: int = 1
    remembers: bool = False
    """The neighbour knew an earlier incarnation of this broker."""


@dataclass(frozen=True, slots=True)
class PeerLost:
    peer: str
    has_left: bool = False
    """It said that it leaves the overlay for good."""


class FrameReceived(NamedTuple):
    """`sequence` counts the publication frames of the link; other frames have none."""

    peer: str
    message: Message
    sequence: int | None = None


@dataclass(frozen=True, slots=True)
class TimerFired:
    name: str


@dataclass(frozen=True, slots=True)
class Persisted:
    key: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Restored:
    """What the store held when the broker started."""

    records: Mapping[tuple[str, ...], object]


@dataclass(frozen=True, slots=True)
class LeaveRequested:
    """The broker is to leave the overlay in good order."""


ClientInput: TypeAlias = (
    ClientConnected
    | ClientPaused
    | ClientResumed
    | ClientLost
    | ClientLeft
    | RightsNarrowed
    | Advertised
    | Unadvertised
    | Subscribed
    | Unsubscribed
    | Published
    | DeliveryAcknowledged
)
Input: TypeAlias = ClientInput | PeerUp | PeerLost | FrameReceived | TimerFired | Persisted | Restored | LeaveRequested
