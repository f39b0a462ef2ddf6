"""The frames between a client and its broker.

    client                                  broker
    Hello                              ►
                                       ◄    Welcome, or Goodbye with the reason
    Advertise, Subscribe, … (request)  ►
                                       ◄    RequestAccepted or RequestRefused, by the request's number
    PublishRequest (reference)         ►
                                       ◄    PublicationsAccepted (many at once) or PublicationRefused
                                       ◄    Delivery (number)
    Acknowledge (up to a number)       ►
    Ping, Pong, Goodbye                ◄►

References of publications and numbers of requests count from 1 over a client's session, reconnects included. The
client sends them in order.

After a reconnect, a broker that still has the session lists in `Welcome` the publications that it accepted: all up to
`taken` except those in `missing`. This answers them. The client resends all others that had no answer, in the order of
their references and before new ones. The broker decides again about a refused publication. It recognises one that is
being stored, and answers it once. So nothing is published twice, and no refused or lost publication counts as accepted.

Deliveries are numbered on each connection. A delivery with the number 0 (at most once) is never acknowledged.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from routing.messages import PublicationId


class DeliveryMode(StrEnum):
    AT_LEAST_ONCE = "at-least-once"
    """The broker answers publications. The client acknowledges deliveries; others are sent again after a reconnect."""
    AT_MOST_ONCE = "at-most-once"
    """The broker answers a publication only if it refuses it. It sends deliveries once, without acknowledgement."""


class Reason(StrEnum):
    """Why a request was refused or a connection ended, for programs. A text for people accompanies it."""

    MALFORMED = "malformed"
    VERSION = "version"
    UNAUTHORISED = "unauthorised"
    FORBIDDEN = "forbidden"
    """The client is authenticated, but its rights do not cover this."""
    NAME_IN_USE = "name-in-use"
    NOT_ADVERTISED = "not-advertised"
    NOT_DURABLE = "not-durable"
    """A durable client connected to a broker that has no data directory."""
    OVERLOADED = "overloaded"
    TOO_LARGE = "too-large"
    LIMIT = "limit"
    INVALID = "invalid"
    """An expression or attributes that cannot be read."""
    UNKNOWN = "unknown"
    """No advertisement or subscription has that name."""
    EXISTS = "exists"
    STOPPING = "stopping"
    IDLE = "idle"
    SLOW = "slow"
    """The client received its deliveries too slowly."""
    DONE = "done"
    """The client disconnects in good order."""


@dataclass(frozen=True, slots=True)
class Hello:
    client: str
    """The client's name: unique at a broker while it is connected, and kept over restarts by a durable client."""
    session: str
    """A random id that the client's process chooses once. A session may replace its own earlier connection."""
    token: str = field(default="", repr=False)
    mode: DeliveryMode = DeliveryMode.AT_LEAST_ONCE
    is_durable: bool = False
    """Whether the broker keeps the client's entries and deliveries while the client is disconnected."""
    window: int = 1024
    """The largest number of unacknowledged deliveries in flight."""
    capabilities: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Welcome:
    broker: str
    incarnation: int
    is_resumed: bool
    """Whether the broker still has the entries of this session. Then the client need not enter them again."""
    taken: int
    """The reference of the last accepted publication of this session; 0 if none is known."""
    frame_bytes: int
    """The largest frame that the broker accepts."""
    text_bytes: int
    """The longest expression that the broker accepts. A name is also limited by `LONGEST_NAME`."""
    publish_window: int
    """Publications that may wait for an answer."""
    idle_ms: int
    """The broker closes a connection that is silent for this long; 0: never. Clients ping well before."""
    window: int
    """Deliveries that the broker sends before the first of them is acknowledged."""
    capabilities: tuple[str, ...] = ()
    missing: tuple[int, ...] = ()
    """References before `taken` that were refused or are not stored yet. The broker may leave out an old refusal if
    the client has sent a window of publications since: it must have received that answer."""


@dataclass(frozen=True, slots=True)
class Advertise:
    request: int
    name: str
    expression: str


@dataclass(frozen=True, slots=True)
class Unadvertise:
    request: int
    name: str


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Add a subscription. If the name exists, the expression replaces the old one, so the request may be repeated."""

    request: int
    name: str
    expression: str


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    request: int
    name: str


@dataclass(frozen=True, slots=True)
class RequestAccepted:
    request: int


@dataclass(frozen=True, slots=True)
class RequestRefused:
    request: int
    reason: str
    text: str


class PublishRequest(NamedTuple):
    """A publication. A named tuple, because a broker creates thousands of these a second."""

    reference: int
    attributes: bytes
    """One MessagePack map."""
    payload: bytes = b""
    lifetime_ms: int = 0
    """The publication expires this long after it was accepted; 0: never."""
    is_traced: bool = False
    """Whether every broker on the route records its steps with the publication, for `TraceQuery`."""


@dataclass(frozen=True, slots=True)
class PublicationsAccepted:
    """`answers` has two numbers for each publication: its reference, and the counter of the id that it received."""

    answers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PublicationRefused:
    reference: int
    reason: str
    text: str


class Delivery(NamedTuple):
    """A publication for a client. A named tuple, because a client reads tens of thousands of these a second."""

    number: int
    subscriptions: tuple[str, ...]
    hops: int
    id: PublicationId
    attributes: bytes
    payload: bytes


@dataclass(frozen=True, slots=True)
class Acknowledge:
    """The client acknowledges all deliveries of this connection up to the number."""

    number: int


@dataclass(frozen=True, slots=True)
class Ping:
    number: int


@dataclass(frozen=True, slots=True)
class Pong:
    number: int


@dataclass(frozen=True, slots=True)
class Goodbye:
    """The last frame of a connection. With `is_kept` a client requests that the broker keeps its session."""

    reason: str
    text: str = ""
    is_kept: bool = False


@dataclass(frozen=True, slots=True)
class TraceQuery:
    request: int
    publication: PublicationId


class TraceStep(NamedTuple):
    """A step of one broker with a traced publication."""

    at_ns: int
    """Wall-clock time."""
    what: str
    """accepted, received, matched, sent, delivered, settled or dropped."""
    text: str
    peer: str = ""
    """The other broker or the client of the step, if there is one."""
    address: str = ""
    """The address of that broker, for a `TraceQuery`."""


@dataclass(frozen=True, slots=True)
class TraceAnswer:
    request: int
    broker: str
    steps: tuple[TraceStep, ...]


FromClient: TypeAlias = (
    Hello
    | Advertise
    | Unadvertise
    | Subscribe
    | Unsubscribe
    | PublishRequest
    | Acknowledge
    | Ping
    | Pong
    | Goodbye
    | TraceQuery
)
FromBroker: TypeAlias = (
    Welcome
    | RequestAccepted
    | RequestRefused
    | PublicationsAccepted
    | PublicationRefused
    | Delivery
    | Ping
    | Pong
    | Goodbye
    | TraceAnswer
)
ClientFrame: TypeAlias = FromClient | FromBroker
