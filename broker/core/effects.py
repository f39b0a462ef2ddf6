"""What is to be done: the broker core's effects, as commands for its driver, in the order in which they stand.

Those that every publication causes are named tuples, which are made several times as fast as frozen dataclasses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from routing.messages import Message, PublicationId
from routing.reorganisation import CloseLink, OpenLink
from routing.router import TableWork


class Send(NamedTuple):
    peer: str
    message: Message
    sequence: int | None = None


class Deliver(NamedTuple):
    """A publication for a client, once, with all of its subscriptions that match."""

    client: str
    publication: PublicationId
    subscriptions: tuple[str, ...]
    attributes: bytes
    payload: bytes
    hops: int
    number: int = 0
    """Grows with the deliveries of a reliable session; acknowledgements name it."""
    expires: int | None = None


@dataclass(frozen=True, slots=True)
class Greet:
    """The answer to a client that named its session. `is_resumed`: what it entered before is still there."""

    client: str
    is_resumed: bool
    accepted_through: int
    """The last of the session's publications that was accepted, by the client's number for it."""
    missing: tuple[int, ...] = ()
    """Those before it that were not, or are not yet."""


@dataclass(frozen=True, slots=True)
class Disconnect:
    """End the client's connection. Its session goes on as for a client that lost its connection."""

    client: str
    reason: str


class Accept(NamedTuple):
    """The broker answers for the request from now on. `publication` is the id of an accepted publication."""

    client: str
    reference: int | str
    publication: PublicationId | None = None


@dataclass(frozen=True, slots=True)
class Refuse:
    client: str
    reference: int | str
    reason: str
    """For people."""
    code: str = "invalid"
    """For programs: one of a few words."""


@dataclass(frozen=True, slots=True)
class SetTimer:
    """Replaces the timer of that name."""

    name: str
    at: int


@dataclass(frozen=True, slots=True)
class Persist:
    """Answered by `Persisted` when the record would survive a crash; also if it is forgotten before it was written.

    Records are written in the order in which they are asked for, and those that one input causes all at once.
    """

    key: tuple[str, ...]
    record: object


@dataclass(frozen=True, slots=True)
class Forget:
    key: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ResetLink:
    """The neighbour was silent for too long: close the link, at both ends, and try to open it again."""

    peer: str


class MatchedRow(NamedTuple):
    publication: PublicationId
    work: TableWork


@dataclass(frozen=True, slots=True)
class DroppedRow:
    reason: str
    publication: PublicationId | None
    detail: str


class Record(NamedTuple):
    """A row for the trace."""

    row: MatchedRow | DroppedRow


class Failed(NamedTuple):
    """The core raised an error: a defect. The other effects of the input, timers above all, are to be performed."""

    input: str
    """Its kind, and what tells it from others."""
    error: Exception


Effect: TypeAlias = (
    Send
    | Deliver
    | Accept
    | Refuse
    | Greet
    | Disconnect
    | SetTimer
    | Persist
    | Forget
    | Record
    | ResetLink
    | OpenLink
    | CloseLink
    | Failed
)
"""`OpenLink` and `CloseLink` are the router's wishes: the driver answers with `PeerUp` and `PeerLost`, at both ends."""

__all__ = [
    "Accept",
    "CloseLink",
    "Deliver",
    "Disconnect",
    "DroppedRow",
    "Effect",
    "Failed",
    "Forget",
    "Greet",
    "MatchedRow",
    "OpenLink",
    "Persist",
    "Record",
    "Refuse",
    "ResetLink",
    "Send",
    "SetTimer",
]
