"""The broker core's effects: commands for the driver, which performs them in the order of the list.

Effects that every publication causes are named tuples. Creating one is several times as fast as a frozen dataclass.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from routing.messages import Message, PublicationId
from routing.reorganisation import CloseLink, OpenLink
from routing.tables import TableWork


class Send(NamedTuple):
    """Send a message to a neighbour. `sequence` numbers the publications of a link."""

    peer: str
    message: Message
    sequence: int | None = None


class Deliver(NamedTuple):
    """Send a publication to a client, once, with the names of all its subscriptions that match."""

    client: str
    publication: PublicationId
    subscriptions: tuple[str, ...]
    attributes: bytes
    payload: bytes
    hops: int
    number: int = 0
    """Numbers the deliveries of a reliable session; acknowledgements refer to it. 0: not acknowledged."""
    expires: int | None = None


@dataclass(frozen=True, slots=True)
class Greet:
    """Answer a client that named its session. `is_resumed`: the broker still has the session's entries."""

    client: str
    is_resumed: bool
    accepted_through: int
    """The reference of the last accepted publication of the session."""
    missing: tuple[int, ...] = ()
    """Earlier references that are not accepted, or not accepted yet."""


@dataclass(frozen=True, slots=True)
class Disconnect:
    """Close the client's connection. Its session continues as if the connection had been lost."""

    client: str
    reason: str


class Accept(NamedTuple):
    """Answer a client's request with an acceptance. The broker is responsible for it from now on.

    `publication` is the id of an accepted publication.
    """

    client: str
    reference: int | str
    publication: PublicationId | None = None


@dataclass(frozen=True, slots=True)
class Refuse:
    """Answer a client's request or publication with a refusal."""

    client: str
    reference: int | str
    reason: str
    """Text for people."""
    code: str = "invalid"
    """For programs: one of the codes of `broker.wire.client_frames.Reason`."""


@dataclass(frozen=True, slots=True)
class SetTimer:
    """Set the timer of this name, which replaces an earlier one."""

    name: str
    at: int


@dataclass(frozen=True, slots=True)
class Persist:
    """Write a record. The driver answers with `Persisted` when the record would survive a crash.

    The driver answers also if the record is forgotten before it is written. Records are written in the order of their
    effects, and the records of one input in one transaction.
    """

    key: tuple[str, ...]
    record: object


@dataclass(frozen=True, slots=True)
class Forget:
    """Delete a record from the store."""

    key: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ResetLink:
    """Close a link at both ends and try to open it again, because the neighbour was silent for too long."""

    peer: str


class MatchedRow(NamedTuple):
    """A row of the trace: a lookup of a publication in a routing table, and its work."""

    publication: PublicationId
    work: TableWork


@dataclass(frozen=True, slots=True)
class DroppedRow:
    """A row of the trace: a drop with its reason."""

    reason: str
    publication: PublicationId | None
    detail: str


class Record(NamedTuple):
    """Record a row in the trace."""

    row: MatchedRow | DroppedRow


class Failed(NamedTuple):
    """Report that the core raised an error, which is a defect. The driver still performs the input's other effects,
    timers above all."""

    input: str
    """The input's kind, and details that identify it."""
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
"""`OpenLink` and `CloseLink` come from the router: the driver answers with `PeerUp` and `PeerLost`, at both ends."""

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
