"""The broker core's inputs, named in the past tense. The frequent ones are named tuples, for speed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from matching.expressions.model import Expression
from routing.messages import Heartbeat, Message, PublicationId


@dataclass(frozen=True, slots=True)
class ClientConnected:
    """A client connected, for the first time or again. Waiting deliveries are sent to it.

    If the input names a session, the core answers with `Greet`, which says whether the session is resumed. A new
    session under the same client name replaces the old one. A durable client (`keep` is None) keeps its entries and
    waiting deliveries.
    """

    client: str
    session: str = ""
    is_reliable: bool | None = None
    """Whether the client acknowledges deliveries. None: it does if the broker is durable."""
    keep: int | None = None
    """Nanoseconds for which the session outlives a connection; None: for ever. Ignored unless a session is named."""
    window: int | None = None
    """The largest number of deliveries in flight; None: no limit."""


@dataclass(frozen=True, slots=True)
class ClientPaused:
    """The client's connection has no room for more deliveries at present."""

    client: str


@dataclass(frozen=True, slots=True)
class ClientResumed:
    """The client's connection has room again."""

    client: str


@dataclass(frozen=True, slots=True)
class ClientLost:
    """The client's connection was lost. A durable client keeps its entries and its waiting deliveries."""

    client: str


@dataclass(frozen=True, slots=True)
class ClientLeft:
    """The client left for good: its session ends, and its entries and deliveries are removed."""

    client: str


@dataclass(frozen=True, slots=True)
class RightsNarrowed:
    """The client's rights no longer cover these entries and publications. The broker withdraws the entries in the
    client's name, whether the client is connected or not, and sends no answer."""

    client: str
    subscriptions: tuple[str, ...]
    """The client's names of the subscriptions."""
    advertisements: tuple[str, ...]
    publications: frozenset[PublicationId]
    """Publications that must not be delivered, or delivered again."""


@dataclass(frozen=True, slots=True)
class Advertised:
    """A client entered an advertisement."""

    client: str
    name: str
    """The client's own name for the advertisement; unique among the client's advertisements."""
    expression: str | Expression
    """A text, or an expression that the driver has read already."""
    reference: str = ""
    """The answer carries it. Empty: the answer carries the name."""


@dataclass(frozen=True, slots=True)
class Unadvertised:
    """A client withdrew an advertisement."""

    client: str
    name: str
    reference: str = ""


@dataclass(frozen=True, slots=True)
class Subscribed:
    """A client entered a subscription."""

    client: str
    name: str
    expression: str | Expression
    """A text, or an expression that the driver has read already."""
    reference: str = ""


@dataclass(frozen=True, slots=True)
class Unsubscribed:
    """A client withdrew a subscription."""

    client: str
    name: str
    reference: str = ""


class Published(NamedTuple):
    """A client sent a publication."""

    client: str
    reference: int
    """The client's number for this request; the answer carries it."""
    attributes: bytes
    payload: bytes = b""
    expires: int | None = None
    is_traced: bool = False
    once: str = ""
    """The id of the publication among those of the client's name; see `routing.messages.OnceId`. Empty: none."""


@dataclass(frozen=True, slots=True)
class DeliveryAcknowledged:
    """The client acknowledged all deliveries up to this number."""

    client: str
    number: int


@dataclass(frozen=True, slots=True)
class PeerUp:
    """A link to a neighbour is up. `greeting` is the neighbour's first heartbeat."""

    peer: str
    greeting: Heartbeat
    cost: int = 1
    remembers: bool = False
    """Whether the neighbour knows an earlier incarnation of this broker."""


@dataclass(frozen=True, slots=True)
class PeerLost:
    """The link to a neighbour broke, or the neighbour left the overlay."""

    peer: str
    has_left: bool = False
    """Whether the neighbour announced that it leaves the overlay for good."""


@dataclass(frozen=True, slots=True)
class PeerDelayed:
    """Frames of the neighbour have arrived, and the driver will pass them on later. So the neighbour is alive."""

    peer: str


class FrameReceived(NamedTuple):
    """A neighbour's frame arrived. `sequence` numbers the publication frames of a link; other frames have none."""

    peer: str
    message: Message
    sequence: int | None = None


@dataclass(frozen=True, slots=True)
class TimerFired:
    """A timer that the core set has expired."""

    name: str


@dataclass(frozen=True, slots=True)
class Persisted:
    """The store committed the record of this key."""

    key: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Restored:
    """The records of the store when the broker started."""

    records: Mapping[tuple[str, ...], object]


@dataclass(frozen=True, slots=True)
class LeaveRequested:
    """The operator requested that the broker leaves the overlay in good order."""


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
Input: TypeAlias = (
    ClientInput | PeerUp | PeerLost | PeerDelayed | FrameReceived | TimerFired | Persisted | Restored | LeaveRequested
)
"""Everything that `Broker.handle` accepts."""
