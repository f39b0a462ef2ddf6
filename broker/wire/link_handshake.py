"""The frames that open and close a link between two brokers.

The broker that dials sends `LinkHello`. The other broker answers with `LinkWelcome` or `LinkGoodbye`. A `LinkGoodbye`
may also come later, as the last frame of a link. These frames have the common format (see `broker.wire.framing`) and
their own kinds. So a broker of another version finds the version at the usual offset.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from msgspec.structs import asdict

from broker.wire import broker_codec
from broker.wire.framing import PREFIX_BYTES, START, HeaderReader, Kinds, check_no_body, pack, pack_start, read_start
from broker.wire.limits import Limits, WireError
from routing.messages import Heartbeat, Number, Record

HELLO, WELCOME, GOODBYE, TIMES, CLOCK = 32, 33, 34, 35, 36
KINDS = (HELLO, WELCOME, GOODBYE, TIMES, CLOCK)
CAPABILITIES = ("credit", "link-state")
"""The capabilities of every broker of this version."""
CLOCKS_COMPARED = "clock"
"""The broker understands `LinkClock`. A broker of an earlier version does not, and is sent none."""
TIMES_WANTED = "times"
"""The broker records a trace. Its neighbours send it `LinkTimes` before frames."""
ONCE = "once"
"""The broker reads once ids. To another broker its neighbours send publications without them."""


@dataclass(frozen=True, slots=True)
class LinkHello:
    """The first frame of a link, from the broker that opens it."""

    broker: str
    incarnation: int
    overlay: str
    protocol: str
    clusters: tuple[str, ...]
    address: str
    """The address at which the broker listens."""
    greeting: Heartbeat
    token: str = field(default="", repr=False)
    to: str = ""
    """The id of the broker that it dials; empty: any broker."""
    remembered: int = 0
    """The last incarnation of the other broker that the sender has seen; 0: none, or the other broker is unknown."""
    capabilities: tuple[str, ...] = CAPABILITIES


@dataclass(frozen=True, slots=True)
class LinkWelcome:
    """The answer: the `LinkHello` of the broker that was dialled."""

    hello: LinkHello


class LinkGoodbye(Record, frozen=True):
    """The last frame of a link, with the reason."""

    code: str
    """For programs: one of the codes below, or the name of a limit."""
    reason: str


class LinkTimes(Record, frozen=True):
    """When the next frame was sent and, if it is a publication, when it was published (0: unknown)."""

    sent: Number
    published: Number


class LinkClock(Record, frozen=True):
    """The sender's time, for the comparison of clocks. All times are in nanoseconds."""

    sent: Number
    echoed: Number
    """The time in the last `LinkClock` from the other end; 0: there was none."""
    held: Number
    """How long ago that frame arrived."""


CLOSED = "closed"
"""The link is no longer wanted: do not dial again."""
LEFT = "left"
"""The broker leaves the overlay."""
STOPPING = "stopping"
REFUSED = "refused"
DUPLICATE = "duplicate"
"""There is a link already."""
OUTLIVED = "outlived"
"""A later incarnation of the broker is known. A `LinkWelcome` before this goodbye has its number, as `remembered`."""
VERSION_UNKNOWN = "version"
MALFORMED = "malformed"
UNAUTHORISED = "unauthorised"
LIMIT = "limit"

LinkFrame: TypeAlias = LinkHello | LinkWelcome | LinkGoodbye | LinkTimes | LinkClock


class _HelloFields(Record, frozen=True):
    """The fields of `LinkHello` in the header. The greeting is a whole frame."""

    broker: str
    incarnation: Number
    overlay: str
    protocol: str
    clusters: tuple[str, ...]
    address: str
    greeting: bytes
    token: str
    to: str
    remembered: Number
    capabilities: tuple[str, ...]


_NAMES = {HELLO: "LinkHello", WELCOME: "LinkWelcome", GOODBYE: "LinkGoodbye", TIMES: "LinkTimes", CLOCK: "LinkClock"}
_READERS: dict[
    int,
    HeaderReader[_HelloFields] | HeaderReader[LinkGoodbye] | HeaderReader[LinkTimes] | HeaderReader[LinkClock],
] = {
    HELLO: HeaderReader(_NAMES[HELLO], _HelloFields),
    WELCOME: HeaderReader(_NAMES[WELCOME], _HelloFields),
    GOODBYE: HeaderReader(_NAMES[GOODBYE], LinkGoodbye),
    TIMES: HeaderReader(_NAMES[TIMES], LinkTimes),
    CLOCK: HeaderReader(_NAMES[CLOCK], LinkClock),
}
_KINDS = Kinds(
    broker_codec.VERSION,
    _NAMES,
    lambda kind: f"a link starts with LinkHello, not with a frame of kind {kind}",
)


def encode(frame: LinkFrame, version: int = broker_codec.VERSION) -> bytes:
    """Returns the frame's bytes, with the length prefix."""
    if isinstance(frame, LinkGoodbye):
        return _framed(GOODBYE, frame, version)
    if isinstance(frame, LinkTimes):
        return _framed(TIMES, frame, version)
    if isinstance(frame, LinkClock):
        return _framed(CLOCK, frame, version)
    kind, hello = (WELCOME, frame.hello) if isinstance(frame, LinkWelcome) else (HELLO, frame)
    fields = _HelloFields(
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


def _framed(kind: int, fields: _HelloFields | LinkGoodbye | LinkTimes | LinkClock, version: int) -> bytes:
    packed = pack(fields, _NAMES[kind])
    return pack_start(kind, version, START.size - PREFIX_BYTES + len(packed)) + packed


def decode(frame: bytes, limits: Limits) -> LinkFrame:
    """Decodes a whole frame. For any bytes, raises `WireError` and nothing else."""
    kind, name, body = read_start(frame, _KINDS, limits)
    check_no_body(frame, name, body)
    fields = _READERS[kind].read(frame[START.size :], limits)
    if not isinstance(fields, _HelloFields):
        return fields
    greeting, _ = broker_codec.decode(fields.greeting, limits)
    if not isinstance(greeting, Heartbeat):
        raise WireError(f"{name}: the greeting is a {type(greeting).__name__}, not a Heartbeat")
    hello = LinkHello(**{**asdict(fields), "greeting": greeting})
    return LinkWelcome(hello) if kind == WELCOME else hello
