"""What a client and its broker say to each other.

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

References of publications and numbers of requests count from 1 over a client's session, reconnects included; they are
sent in order. A broker that still knows the session says in `Welcome` which publications it accepted: all up to `taken`
but those in `missing`. These are answered by that. All others that had no answer are sent again, in the order of their
references and before new ones: what was refused is judged again; what is being stored is recognised, and answered once.
So nothing is published twice, and nothing that was refused or lost counts as accepted.
Deliveries are numbered on each connection; a delivery with number 0 (at most once) is never acknowledged.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from routing.messages import PublicationId


class DeliveryMode(StrEnum):
    AT_LEAST_ONCE = "at-least-once"
    """Publications are answered, deliveries acknowledged and sent again after a reconnect."""
    AT_MOST_ONCE = "at-most-once"
    """Publications are answered only when they are refused; deliveries are sent once and not acknowledged."""


class Reason(StrEnum):
    """Why something was refused or a connection ended, for programs; the text beside it is for people."""

    MALFORMED = "malformed"
    VERSION = "version"
    UNAUTHORISED = "unauthorised"
    FORBIDDEN = "forbidden"
    """The client is known, and may not do this."""
    NAME_IN_USE = "name-in-use"
    NOT_ADVERTISED = "not-advertised"
    NOT_DURABLE = "not-durable"
    """A durable client asked a broker that has no data directory."""
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
    """The client did not take its deliveries."""
    DONE = "done"
    """The client goes in good order."""


@dataclass(frozen=True, slots=True)
class Hello:
    client: str
    """The client's name: unique at a broker while it is connected, and kept over restarts by a durable client."""
    session: str
    """Drawn once by a client's process. The same session may take over its own earlier connection."""
    token: str = field(default="", repr=False)
    mode: DeliveryMode = DeliveryMode.AT_LEAST_ONCE
    is_durable: bool = False
    """What the client entered stays, and deliveries wait, while it is away."""
    window: int = 1024
    """Deliveries that may be on their way without an acknowledgement."""
    capabilities: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Welcome:
    broker: str
    incarnation: int
    is_resumed: bool
    """The broker still has what this session entered: nothing has to be entered again."""
    taken: int
    """The last publication of this session that was accepted; 0 when none is known."""
    frame_bytes: int
    """The largest frame that the broker takes."""
    text_bytes: int
    """The longest name or expression that it takes; of a name never more than `LONGEST_NAME`."""
    publish_window: int
    """Publications that may wait for their answer."""
    idle_ms: int
    """A connection that is silent for so long is closed; 0 when never. Clients ping well before."""
    window: int
    """Deliveries that the broker sends before the first of them is acknowledged."""
    capabilities: tuple[str, ...] = ()
    missing: tuple[int, ...] = ()
    """Publications before `taken` that were refused, or are not stored yet; earlier refusals may be left out, if the
    client has sent a window of publications since, and so must have heard."""


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
    """A name that is known is no error: the expression replaces the one it had, so that this may be repeated."""

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
    """A tuple, because a broker makes thousands of these a second."""

    reference: int
    attributes: bytes
    """One MessagePack map."""
    payload: bytes = b""
    lifetime_ms: int = 0
    """Not delivered later than so long after it was accepted; 0 when it never expires."""
    is_traced: bool = False
    """Every broker on the way remembers what it did with the publication, for `TraceQuery`."""


@dataclass(frozen=True, slots=True)
class PublicationsAccepted:
    """`answers` holds pairs: a publication's reference and the counter of the id that the broker gave it."""

    answers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PublicationRefused:
    reference: int
    reason: str
    text: str


class Delivery(NamedTuple):
    """A tuple, because a client reads tens of thousands of these a second."""

    number: int
    subscriptions: tuple[str, ...]
    hops: int
    id: PublicationId
    attributes: bytes
    payload: bytes


@dataclass(frozen=True, slots=True)
class Acknowledge:
    """All deliveries of this connection up to the number have been taken."""

    number: int


@dataclass(frozen=True, slots=True)
class Ping:
    number: int


@dataclass(frozen=True, slots=True)
class Pong:
    number: int


@dataclass(frozen=True, slots=True)
class Goodbye:
    """The last frame of a connection. A client says whether what it entered is to be kept."""

    reason: str
    text: str = ""
    is_kept: bool = False


@dataclass(frozen=True, slots=True)
class TraceQuery:
    request: int
    publication: PublicationId


class TraceStep(NamedTuple):
    """What one broker did with a traced publication."""

    at_ns: int
    """Wall-clock time."""
    what: str
    """accepted, received, matched, sent, delivered, settled or dropped."""
    text: str
    peer: str = ""
    """The broker or client on the other side, where there is one."""
    address: str = ""
    """Where that broker can be asked for its steps."""


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
