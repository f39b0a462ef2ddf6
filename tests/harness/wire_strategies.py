"""Hypothesis strategies for all messages between brokers, and functions that build frames from any bytes.

The fields of messages are listed by name, so that a test can check that none is missing.
"""

from __future__ import annotations

from struct import Struct
from typing import Any

import msgpack
from hypothesis import strategies as st

from broker.wire.broker_codec import VERSION
from routing.messages import (
    LARGEST_NUMBER,
    Advertise,
    Announce,
    Credit,
    EntryId,
    Heartbeat,
    LinkState,
    LinkStates,
    Message,
    Neighbour,
    OnceId,
    ProposalAnswered,
    Propose,
    PublicationId,
    Publish,
    Resend,
    Settled,
    Subscribe,
    Turn,
    Unadvertise,
    Unsubscribe,
    Update,
    UpdateAcknowledged,
)

Fields = dict[str, st.SearchStrategy[Any]]

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
NUMBERS = st.integers(0, 300) | st.integers(0, LARGEST_NUMBER)
FLOATS = st.floats(allow_nan=False)
BODIES = st.binary(max_size=60)


def tuples_of(elements: st.SearchStrategy[Any], most: int = 20) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(elements, max_size=most).map(tuple)


DESTINATIONS = st.lists(TEXTS, max_size=20, unique=True).map(tuple)
ENTRIES = st.builds(EntryId, TEXTS, NUMBERS, NUMBERS)
MAYBE_ENTRIES = st.none() | ENTRIES
PUBLICATION_IDS = st.builds(PublicationId, TEXTS, NUMBERS, NUMBERS)
TURNS = st.lists(st.builds(Turn, TEXTS, NUMBERS, NUMBERS), max_size=20, unique_by=lambda turn: turn.destination)
NEIGHBOURS = st.lists(st.builds(Neighbour, TEXTS, NUMBERS), max_size=20, unique_by=lambda neighbour: neighbour.broker)
DIGESTS = st.lists(st.tuples(TEXTS, st.binary(max_size=64)), max_size=20, unique_by=lambda known: known[0])

CHANGE_FIELDS: dict[type, Fields] = {
    Advertise: {
        "entry": ENTRIES,
        "expression": TEXTS,
        "crossed": tuples_of(TEXTS, 3),
        "is_stale": st.booleans(),
    },
    Unadvertise: {"entry": ENTRIES},
    Subscribe: {
        "entry": ENTRIES,
        "expression": TEXTS,
        "crossed": tuples_of(TEXTS, 3),
        "tree": MAYBE_ENTRIES,
        "is_stale": st.booleans(),
        "since": NUMBERS,
    },
    Unsubscribe: {"entry": ENTRIES, "tree": MAYBE_ENTRIES},
}
CHANGES = st.one_of([st.builds(change, **fields) for change, fields in CHANGE_FIELDS.items()])

LINK_STATE_FIELDS: Fields = {
    "broker": TEXTS,
    "incarnation": NUMBERS,
    "sequence": NUMBERS,
    "domain": TEXTS,
    "neighbours": NEIGHBOURS.map(tuple),
    "clusters": tuples_of(TEXTS, 3),
    "address": TEXTS,
    "has_left": st.booleans(),
}

_FROM: Fields = {"source": TEXTS, "domain": TEXTS, "hop_limit": NUMBERS}
_ROUTED: Fields = {**_FROM, "destinations": DESTINATIONS}

MESSAGE_FIELDS: dict[type, Fields] = {
    Publish: {
        **_FROM,
        "id": PUBLICATION_IDS,
        "local": DESTINATIONS,
        "transit": DESTINATIONS,
        "attributes": BODIES,
        "payload": BODIES,
        "crossed": tuples_of(TEXTS, 3),
        "tree": MAYBE_ENTRIES,
        "hops": NUMBERS,
        "expires": st.none() | NUMBERS,
        "is_traced": st.booleans(),
        "once": st.none() | st.builds(OnceId, TEXTS, TEXTS),
    },
    Update: {
        **_FROM,
        "incarnation": NUMBERS,
        "turns": TURNS.map(tuple),
        "changes": tuples_of(CHANGES),
        "is_unfinished": st.booleans(),
    },
    UpdateAcknowledged: {
        **_ROUTED,
        "incarnation": NUMBERS,
        "destination_incarnation": NUMBERS,
        "epoch": NUMBERS,
        "sequence": NUMBERS,
        "is_inquiry": st.booleans(),
    },
    Resend: {**_ROUTED, "incarnation": NUMBERS, "epoch": NUMBERS},
    Settled: {**_ROUTED, "publications": tuples_of(PUBLICATION_IDS), "duties": NUMBERS},
    LinkStates: {"states": tuples_of(st.builds(LinkState, **LINK_STATE_FIELDS), 5)},
    Heartbeat: {"incarnation": NUMBERS, "clusters": tuples_of(TEXTS, 3), "known": DIGESTS.map(tuple)},
    Credit: {"acknowledged_through": NUMBERS},
    Propose: {**_ROUTED, "gain": FLOATS, "minimal_loss": FLOATS, "address": TEXTS},
    ProposalAnswered: {**_ROUTED, "accepted": st.booleans(), "address": TEXTS},
    Announce: {**_ROUTED, "state": st.builds(LinkState, **LINK_STATE_FIELDS)},
}


def messages_of(kind: type[Message]) -> st.SearchStrategy[Message]:
    return st.builds(kind, **MESSAGE_FIELDS[kind])


MESSAGES: st.SearchStrategy[Message] = st.one_of([messages_of(kind) for kind in MESSAGE_FIELDS])


@st.composite
def numbered_messages(draw: st.DrawFn) -> tuple[Message, int | None]:
    """A message and its sequence number. Only publications may have a number."""
    message = draw(MESSAGES)
    return message, draw(st.none() | NUMBERS) if isinstance(message, Publish) else None


_START = Struct(">IBBBBI")


def frame_of(kind: int, packed: bytes, body: bytes = b"", version: int = VERSION) -> bytes:
    """A frame with these bytes in place of its fields, valid or not."""
    header = _START.size - 4 + len(packed)
    return _START.pack(header + len(body), 0x94, version, kind, 0xCE, header) + packed + body


def frame_with(kind: int, fields: object, body: bytes = b"") -> bytes:
    packed: bytes = msgpack.packb(fields)
    return frame_of(kind, packed, body)
