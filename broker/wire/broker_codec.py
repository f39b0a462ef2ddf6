"""Encodes and decodes frames between brokers.

`broker.wire.framing` describes the format of a frame. The header's fields are those of the message, in the order of
their declaration in `routing.messages`. The size of a publication's attributes is a field of its header. A broker that
passes a publication on reads only the header. The attributes and the payload are slices of the frame: they are not
decoded, not checked and not encoded again. An expression is parsed where it is stored.

For any bytes, `decode` raises `WireError` and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import astuple

from broker.wire.framing import (
    PREFIX_BYTES,
    START,
    HeaderReader,
    Kinds,
    check_distinct,
    check_no_body,
    pack,
    pack_start,
    read_start,
)
from broker.wire.limits import Limits, WireError
from routing.messages import (
    Announce,
    Credit,
    EntryId,
    Heartbeat,
    LinkState,
    LinkStates,
    Message,
    Number,
    OnceId,
    ProposalAnswered,
    Propose,
    PublicationId,
    Publish,
    Record,
    Resend,
    Settled,
    Update,
    UpdateAcknowledged,
)

VERSION = 2

PUBLISH = 1
_CONTROL: Mapping[int, type[Message]] = {
    2: Settled,
    3: Credit,
    4: Heartbeat,
    5: LinkStates,
    6: Update,
    7: UpdateAcknowledged,
    8: Resend,
    9: Propose,
    10: ProposalAnswered,
    11: Announce,
}
"""All kinds of messages except publications, which alone have a body and a number on their link."""

NAMES = {PUBLISH: Publish.__name__, **{kind: message.__name__ for kind, message in _CONTROL.items()}}
_NUMBERS = {message: kind for kind, message in _CONTROL.items()}
_READERS = {kind: HeaderReader(message.__name__, message) for kind, message in _CONTROL.items()}
_KINDS = Kinds(VERSION, NAMES, lambda kind: f"no message has the number {kind}; they go from 1 to {len(NAMES)}")

__all__ = ["NAMES", "PUBLISH", "VERSION", "Limits", "WireError", "decode", "encode", "header_size", "size"]


class _PublishHeader(Record, frozen=True):
    sequence: Number | None
    attributes_bytes: Number
    id: PublicationId
    source: str
    domain: str
    local: tuple[str, ...]
    transit: tuple[str, ...]
    crossed: tuple[str, ...]
    tree: EntryId | None
    hops: Number
    expires: Number | None
    hop_limit: Number
    is_traced: bool
    once: OnceId | None = None


_PUBLISH_READER = HeaderReader("Publish", _PublishHeader)


def encode(message: Message, sequence: int | None = None) -> bytes:
    """Returns the frame's bytes, with the length prefix. `sequence` is the publication's number on its link."""
    kind, fields = _fields(message, sequence)
    header_bytes = START.size - PREFIX_BYTES + len(fields)
    body = (message.attributes, message.payload) if isinstance(message, Publish) else ()
    follows = header_bytes + sum(map(len, body))
    if follows > 0xFFFFFFFF:
        raise WireError(f"{NAMES[kind]}: {follows} bytes are more than a frame's length can say")
    return b"".join((pack_start(kind, VERSION, header_bytes, follows - header_bytes), fields, *body))


def header_size(message: Message, sequence: int | None = None) -> int:
    """The bytes of the length prefix and the header, without the publication's attributes and payload."""
    return START.size + len(_fields(message, sequence)[1])


def size(message: Message, sequence: int | None = None) -> int:
    """`len(encode(message, sequence))`, without building the frame."""
    body = len(message.attributes) + len(message.payload) if isinstance(message, Publish) else 0
    return header_size(message, sequence) + body


def _fields(message: Message, sequence: int | None) -> tuple[int, bytes]:
    if isinstance(message, Publish):
        fields = (
            sequence,
            len(message.attributes),
            message.id,
            message.source,
            message.domain,
            message.local,
            message.transit,
            message.crossed,
            message.tree,
            message.hops,
            message.expires,
            message.hop_limit,
            message.is_traced,
        )
        # Most publications have no once id, and then it takes no bytes.
        return PUBLISH, pack(fields if message.once is None else (*fields, message.once), "Publish")
    kind = _NUMBERS[type(message)]
    if sequence is not None:
        raise WireError(f"{NAMES[kind]}: only publications are numbered, and this one has number {sequence}")
    return kind, pack(message, NAMES[kind])


def decode(frame: bytes, limits: Limits) -> tuple[Message, int | None]:
    """Decodes a whole frame, with its length prefix. Returns the message and the publication's number on its link."""
    kind, name, body = read_start(frame, _KINDS, limits)
    if kind == PUBLISH:
        return _read_publish(frame, body, limits)
    check_no_body(frame, name, body)
    message = _READERS[kind].read(frame[START.size :], limits)
    check = _CHECKS.get(kind)
    if check is not None:
        check(message, name)
    return message, None


def _read_publish(frame: bytes, body: int, limits: Limits) -> tuple[Publish, int | None]:
    """`body` is the offset of the attributes. The attributes and the payload are unchanged slices of the frame."""
    header = _PUBLISH_READER.read(frame[START.size : body], limits)
    sequence, attributes, id, source, domain, local, transit, *rest = astuple(header)
    crossed, tree, hops, expires, hop_limit, is_traced, once = rest
    check_distinct(local, "Publish", "local")
    check_distinct(transit, "Publish", "transit")
    payload = body + attributes
    if payload > len(frame):
        raise WireError(f"Publish: {attributes} bytes of attributes are announced, {len(frame) - body} bytes are left")
    message = Publish(
        id,
        source,
        domain,
        local,
        transit,
        frame[body:payload],
        frame[payload:],
        crossed,
        tree,
        hops,
        expires,
        hop_limit,
        is_traced,
        once,
    )
    return message, sequence


def _check_destinations(message: Settled | UpdateAcknowledged | Resend | ProposalAnswered, kind: str) -> None:
    check_distinct(message.destinations, kind, "destinations")


def _check_update(message: Update, kind: str) -> None:
    check_distinct(message.destinations, kind, "turns")


def _check_link_state(state: LinkState, kind: str) -> None:
    check_distinct([neighbour.broker for neighbour in state.neighbours], kind, "neighbours")


def _check_link_states(message: LinkStates, kind: str) -> None:
    for state in message.states:
        _check_link_state(state, kind)


def _check_announce(message: Announce, kind: str) -> None:
    check_distinct(message.destinations, kind, "destinations")
    _check_link_state(message.state, kind)


def _check_heartbeat(message: Heartbeat, kind: str) -> None:
    check_distinct([domain for domain, _ in message.known], kind, "known")


def _check_propose(message: Propose, kind: str) -> None:
    check_distinct(message.destinations, kind, "destinations")
    for name in ("gain", "minimal_loss"):
        value = getattr(message, name)
        if value != value:
            raise WireError(f"{kind}: {name} is not a number")


_CHECKS: Mapping[int, Callable[[Any, str], None]] = {
    2: _check_destinations,
    4: _check_heartbeat,
    5: _check_link_states,
    6: _check_update,
    7: _check_destinations,
    8: _check_destinations,
    9: _check_propose,
    10: _check_destinations,
    11: _check_announce,
}
"""By the number of a kind: the rules that types cannot express. Names in a list are distinct, numbers are no NaN."""
