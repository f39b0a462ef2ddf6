"""Frames on a link between two brokers that concern the link itself: who is there, and may they talk?

Whoever dials says `LinkHello`, the other answers `LinkWelcome` or `LinkGoodbye`. A `LinkGoodbye` may also come later,
as the last frame of a link. All are built as other frames are (see `broker.wire`), with kinds of their own, so that a
version is found where it always is, also by brokers that know another.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import msgpack

from broker.wire import broker_codec
from broker.wire.framing import PREFIX_BYTES, START, Kinds, read_fields, read_start, refuse_body, written_start
from broker.wire.limits import Limits, WireError
from broker.wire.shapes import Shape, texts
from routing.messages import Heartbeat

HELLO, WELCOME, GOODBYE, TIMES = 32, 33, 34, 35
KINDS = (HELLO, WELCOME, GOODBYE, TIMES)
CAPABILITIES = ("credit", "link-state")
"""What every broker of this version can do."""
TIMES_WANTED = "times"
"""The broker records a trace, and is told when frames were sent."""


@dataclass(frozen=True, slots=True)
class LinkHello:
    broker: str
    incarnation: int
    overlay: str
    protocol: str
    clusters: tuple[str, ...]
    address: str
    """Where the broker listens."""
    greeting: Heartbeat
    token: str = field(default="", repr=False)
    to: str = ""
    """The broker that it means to talk to; empty: whoever is there."""
    remembered: int = 0
    """The last incarnation of the other broker that was seen here; 0: none, or the other is not known."""
    capabilities: tuple[str, ...] = CAPABILITIES


@dataclass(frozen=True, slots=True)
class LinkWelcome:
    """The other end's own introduction."""

    hello: LinkHello


@dataclass(frozen=True, slots=True)
class LinkGoodbye:
    code: str
    """For programs: one of the words below, or the name of a limit."""
    reason: str


@dataclass(frozen=True, slots=True)
class LinkTimes:
    """Of the frame that follows: when it was sent and, for a publication, when it was published (0: not known)."""

    sent: int
    published: int


CLOSED = "closed"
"""The link is not wanted any more: do not dial again."""
LEFT = "left"
"""The broker leaves the overlay."""
STOPPING = "stopping"
REFUSED = "refused"
DUPLICATE = "duplicate"
"""There is a link already."""
VERSION_UNKNOWN = "version"
MALFORMED = "malformed"
UNAUTHORISED = "unauthorised"
LIMIT = "limit"

LinkFrame: TypeAlias = LinkHello | LinkWelcome | LinkGoodbye | LinkTimes

_HELLO = Shape(
    "the header",
    broker=str,
    incarnation=int,
    overlay=str,
    protocol=str,
    clusters=tuple,
    address=str,
    greeting=bytes,
    token=str,
    to=str,
    remembered=int,
    capabilities=tuple,
)
_GOODBYE = Shape("the header", code=str, reason=str)
_TIMES = Shape("the header", sent=int, published=int)
_KINDS = Kinds(
    broker_codec.VERSION,
    {HELLO: "LinkHello", WELCOME: "LinkWelcome", GOODBYE: "LinkGoodbye", TIMES: "LinkTimes"},
    lambda kind: f"a link starts with LinkHello, not with a frame of kind {kind}",
)


def encode(frame: LinkFrame, version: int = broker_codec.VERSION) -> bytes:
    """The frame, length prefix included."""
    if isinstance(frame, LinkGoodbye):
        return _framed(GOODBYE, (frame.code, frame.reason), version)
    if isinstance(frame, LinkTimes):
        return _framed(TIMES, (frame.sent, frame.published), version)
    kind, hello = (WELCOME, frame.hello) if isinstance(frame, LinkWelcome) else (HELLO, frame)
    fields = (
        hello.broker,
        hello.incarnation,
        hello.overlay,
        hello.protocol,
        hello.clusters,
        hello.address,
        broker_codec.encode(hello.greeting),
        hello.token,
        hello.to,
        hello.remembered,
        hello.capabilities,
    )
    return _framed(kind, fields, version)


def _framed(kind: int, fields: tuple[object, ...], version: int) -> bytes:
    packed: bytes = msgpack.packb(fields)
    return written_start(kind, version, START.size - PREFIX_BYTES + len(packed)) + packed


def decode(frame: bytes, limits: Limits) -> LinkFrame:
    """The content of a whole frame. Whatever the bytes are, `WireError` is all that it raises."""
    kind, name, body = read_start(frame, _KINDS, limits)
    refuse_body(frame, name, body)
    fields = read_fields(frame[START.size :], name, limits, longest_bytes=limits.header_bytes)
    if kind == GOODBYE:
        return LinkGoodbye(*_GOODBYE.check(fields, name))
    if kind == TIMES:
        return LinkTimes(*_TIMES.check(fields, name))
    hello = _read_hello(fields, name, limits)
    return LinkWelcome(hello) if kind == WELCOME else hello


def _read_hello(fields: object, name: str, limits: Limits) -> LinkHello:
    broker, incarnation, overlay, protocol, clusters, address, packed, token, to, remembered, capabilities = (
        _HELLO.check(fields, name)
    )
    greeting, _ = broker_codec.decode(packed, limits)
    if not isinstance(greeting, Heartbeat):
        raise WireError(f"{name}: the greeting is a {type(greeting).__name__}, not a Heartbeat")
    return LinkHello(
        broker,
        incarnation,
        overlay,
        protocol,
        texts(clusters, name, "clusters", "items", limits.items),
        address,
        greeting,
        token,
        to,
        remembered,
        texts(capabilities, name, "capabilities", "items", limits.items),
    )
