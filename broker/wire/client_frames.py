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

After a reconnect, `Welcome` lists the publications that the broker accepted in the session: all up to
`accepted_through` except those in `missing`. This answers them. The client resends all others that had no answer, in
the order of their references and before new ones. The broker decides again about a refused publication. It recognises
one that is being stored, and answers it once. So nothing is published twice, and no refused or lost publication counts
as accepted.

Deliveries are numbered on each connection. A delivery with the number 0 (at most once) is never acknowledged.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, NamedTuple, TypeAlias

from msgspec import Meta

from routing.messages import LARGEST_NUMBER, Number, PublicationId, Record

Window: TypeAlias = Annotated[int, Meta(ge=1, le=LARGEST_NUMBER)]
Name: TypeAlias = Annotated[str, Meta(min_length=1)]
"""The name of a client, a subscription or an advertisement. `LONGEST_NAME` limits its bytes."""


ONCE = "once"
"""A capability. In Welcome: the broker accepts ids of publications. In Hello: each publication of the session has an
id, by default its session and its reference, because the client may publish it again at another broker."""


class DeliveryMode(StrEnum):
    """How reliably a session delivers."""

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


class Hello(Record, frozen=True):
    """The client's first frame: its name, its session and its credentials."""

    client: Name
    """The client's name: unique at a broker while it is connected, and kept over restarts by a durable client."""
    session: Name
    """A random id that the client's process chooses once. A session may replace its own earlier connection."""
    token: str = ""
    mode: DeliveryMode = DeliveryMode.AT_LEAST_ONCE
    is_durable: bool = False
    """Whether the broker keeps the client's entries and deliveries while the client is disconnected."""
    window: Window = 1024
    """The largest number of unacknowledged deliveries in flight."""
    capabilities: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Leaves out the token, which is a secret."""
        return f"Hello(client={self.client!r}, session={self.session!r}, mode={self.mode!r}, window={self.window})"


class Welcome(Record, frozen=True):
    """The broker's answer to Hello: its limits, and the state of the session."""

    broker: str
    incarnation: Number
    is_resumed: bool
    """Whether the broker still has the entries of this session. Then the client need not enter them again."""
    accepted_through: Number
    """The reference of the last accepted publication of this session; 0 if none is known."""
    frame_bytes: Number
    """The largest frame that the broker accepts."""
    text_bytes: Number
    """The longest expression that the broker accepts. A name is also limited by `LONGEST_NAME`."""
    publish_window: Window
    """Publications that may wait for an answer."""
    idle_ms: Number
    """The broker closes a connection that is silent for this long; 0: never. Clients ping well before."""
    window: Window
    """Deliveries that the broker sends before the first of them is acknowledged."""
    capabilities: tuple[str, ...] = ()
    missing: tuple[Number, ...] = ()
    """References before `accepted_through` that were refused or are not stored yet. The broker may leave out an old
    refusal if the client has sent a window of publications since: it must have received that answer."""


class Advertise(Record, frozen=True):
    """Requests an advertisement."""

    request: Number
    name: Name
    expression: str


class Unadvertise(Record, frozen=True):
    """Withdraws an advertisement."""

    request: Number
    name: Name


class Subscribe(Record, frozen=True):
    """Add a subscription. If the name exists, the expression replaces the old one, so the request may be repeated."""

    request: Number
    name: Name
    expression: str


class Unsubscribe(Record, frozen=True):
    """Withdraws a subscription."""

    request: Number
    name: Name


class RequestAccepted(Record, frozen=True):
    """Answers a request that the broker accepts."""

    request: Number


class RequestRefused(Record, frozen=True):
    """Answers a request that the broker refuses."""

    request: Number
    reason: str
    text: str


class PublishRequest(NamedTuple):
    """A publication. A named tuple, because a broker creates thousands of these a second."""

    reference: Number
    attributes: bytes
    """One MessagePack map."""
    payload: bytes = b""
    lifetime_ms: Number = 0
    """The publication expires this long after it was accepted; 0: never."""
    is_traced: bool = False
    """Whether every broker on the route records its steps with the publication, for `TraceQuery`."""
    id: str = ""
    """An id that the client chose, unique among the publications of its name. A subscriber receives one of several
    publications with the same id. Empty: none, or with the capability `ONCE` the session and the reference."""


class PublicationsAccepted(Record, frozen=True):
    """`answers` has two numbers for each publication: its reference, and the counter of the id that it received."""

    answers: tuple[Number, ...]


class PublicationRefused(Record, frozen=True):
    """Answers a publication that the broker refuses."""

    reference: Number
    reason: str
    text: str


class Delivery(NamedTuple):
    """A publication for a client. A named tuple, because a client reads tens of thousands of these a second."""

    number: Number
    subscriptions: tuple[str, ...]
    hops: Number
    id: PublicationId
    attributes: bytes
    payload: bytes


class Acknowledge(Record, frozen=True):
    """The client acknowledges all deliveries of this connection up to the number."""

    number: Number


class Ping(Record, frozen=True):
    """Requests a Pong with the same number."""

    number: Number


class Pong(Record, frozen=True):
    """Answers a Ping."""

    number: Number


class Goodbye(Record, frozen=True):
    """The last frame of a connection. With `is_kept` a client requests that the broker keeps its session."""

    reason: str
    text: str = ""
    is_kept: bool = False


class TraceQuery(Record, frozen=True):
    """Requests the steps of a traced publication at this broker."""

    request: Number
    publication: PublicationId


class TraceStep(NamedTuple):
    """A step of one broker with a traced publication."""

    at_ns: Number
    """Wall-clock time."""
    what: str
    """accepted, received, matched, sent, delivered, settled or dropped."""
    text: str
    peer: str = ""
    """The other broker or the client of the step, if there is one."""
    address: str = ""
    """The address of that broker, for a `TraceQuery`."""


class TraceAnswer(Record, frozen=True):
    """Answers a TraceQuery."""

    request: Number
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
"""Frames that a broker sends to a client."""
ClientFrame: TypeAlias = FromClient | FromBroker
"""All frames between a client and its broker."""
