"""What is to be done: the broker core's effects, as commands for its driver, in the order in which they stand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from routing.messages import Message, PublicationId
from routing.reorganise import CloseLink, OpenLink
from routing.router import TableWork


@dataclass(frozen=True, slots=True)
class Send:
    peer: str
    message: Message
    sequence: int | None = None


@dataclass(frozen=True, slots=True)
class Deliver:
    """A publication for a client, once, with all of its subscriptions that match."""

    client: str
    publication: PublicationId
    subscriptions: tuple[str, ...]
    attributes: bytes
    payload: bytes
    hops: int


@dataclass(frozen=True, slots=True)
class Accept:
    """The broker answers for the request from now on. `publication` is the id of an accepted publication."""

    client: str
    reference: int | str
    publication: PublicationId | None = None


@dataclass(frozen=True, slots=True)
class Refuse:
    client: str
    reference: int | str
    reason: str


@dataclass(frozen=True, slots=True)
class SetTimer:
    """Replaces the timer of that name."""

    name: str
    at: int


@dataclass(frozen=True, slots=True)
class Persist:
    """Answered by `Persisted` when the record would survive a crash."""

    key: tuple[str, ...]
    record: object


@dataclass(frozen=True, slots=True)
class Forget:
    key: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ResetLink:
    """The neighbour was silent for too long: close the link, at both ends, and try to open it again."""

    peer: str


@dataclass(frozen=True, slots=True)
class MatchedRow:
    publication: PublicationId
    work: TableWork


@dataclass(frozen=True, slots=True)
class DroppedRow:
    reason: str
    publication: PublicationId | None
    detail: str


@dataclass(frozen=True, slots=True)
class Record:
    """A row for the trace."""

    row: MatchedRow | DroppedRow


Effect: TypeAlias = (
    Send | Deliver | Accept | Refuse | SetTimer | Persist | Forget | Record | ResetLink | OpenLink | CloseLink
)
"""`OpenLink` and `CloseLink` are the router's wishes: the driver answers with `PeerUp` and `PeerLost`, at both ends."""

__all__ = [
    "Accept",
    "CloseLink",
    "Deliver",
    "DroppedRow",
    "Effect",
    "Forget",
    "MatchedRow",
    "OpenLink",
    "Persist",
    "Record",
    "Refuse",
    "ResetLink",
    "Send",
    "SetTimer",
]
