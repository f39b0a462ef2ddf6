"""What every router is to the broker around it.

A router keeps tables and decides; the broker keeps clients, time and responsibility for publications. The broker
tells it what happened and takes the messages for neighbours out of `drain`. A router never looks at a clock: what
must be repeated is repeated when the broker says that a tick has passed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from matching.matcher import DestinationReport, MatchReport
from matching.model import Expression
from routing.messages import EntryId, Heartbeat, LinkState, Message, Publish, Routed
from routing.reorganise import CloseLink, OpenLink


@dataclass(frozen=True, slots=True)
class Stretch:
    """Where a publication goes from here, and what for."""

    domain: str
    local: tuple[str, ...]
    transit: tuple[str, ...]
    crossed: tuple[str, ...] = ()
    tree: EntryId | None = None


@dataclass(frozen=True, slots=True)
class TableWork:
    """One table was asked: for traces and for the simulation's cost of matching."""

    table: str
    stored: int
    candidates: int
    evaluated: int
    matched: int


@dataclass(frozen=True, slots=True)
class Matched:
    """What the matching layer says of a publication at this broker."""

    clients: Mapping[str, tuple[EntryId, ...]] = field(default_factory=dict)
    stretches: tuple[Stretch, ...] = ()
    work: tuple[TableWork, ...] = ()
    dropped: str | None = None
    """Why the publication goes nowhere from here, when that is not for lack of interest."""


@dataclass(frozen=True, slots=True)
class Counts:
    """What a router holds, for traces and `status`."""

    advertisements: int
    local_subscriptions: int
    remote_subscriptions: int
    routing_table_bytes: int
    duplicate_advertisements: int = 0
    unroutable: int = 0
    out_of_hops: int = 0
    unacknowledged_changes: int = 0


class Router(Protocol):
    name: str
    is_behind: bool
    """Is there news of other brokers' links that `catch_up` has not taken account of?"""

    def start_with(self, states: tuple[LinkState, ...]) -> None:
        """The overlay as a configuration file describes it."""

    def catch_up(self) -> None:
        """Takes account of news that may wait for more of its kind; nothing that is asked gets an old answer."""

    def neighbour_up(self, peer: str, greeting: Heartbeat, cost: int) -> None: ...

    def neighbour_lost(self, peer: str) -> None: ...

    def advertise(self, entry: EntryId, client: str, expression: Expression) -> None: ...

    def unadvertise(self, entry: EntryId) -> None: ...

    def subscribe(self, entry: EntryId, client: str, expression: Expression) -> None: ...

    def unsubscribe(self, entry: EntryId) -> None: ...

    def match_own(self, client: str, attributes: bytes) -> Matched | None:
        """A client publishes here. None: outside what it advertised."""

    def match_arrived(self, publication: Publish, peer: str) -> Matched:
        """A publication arrived that names this broker."""

    def still_leads(self, stretch: Stretch) -> bool:
        """Does a stretch that was planned before a restart lead anywhere now?"""

    def send(self, message: Routed) -> None:
        """Sends a message of the broker's own to its destinations."""

    def take(self, message: Message, peer: str) -> Message | None:
        """Handles what arrived and passes on what is for others. Returns what is for the broker itself."""

    def tick(self) -> None:
        """Repeats what nobody acknowledged."""

    def greeting(self) -> Heartbeat: ...

    def is_reachable(self, domain: str, broker: str) -> bool: ...

    def substitutes(self, publication: Publish, lost: str) -> Stretch | None:
        """Who serves what the lost destination would have served, if anyone does by now."""

    def leave(self) -> None: ...

    def drain(self) -> list[tuple[str, Message]]: ...

    def counts(self) -> Counts: ...

    def reorganise_with(self, most_links: int) -> None:
        """Lets the broker change its links, up to so many. Routers that know their neighbours only cannot."""

    def reorganise(self) -> None:
        """A cycle of self-reorganisation ends."""

    def wishes(self) -> list[OpenLink | CloseLink]:
        """Links that are to come or to go, since this was last asked."""

    def counts_of_losses(self) -> int:
        """How often a link was lost that others may have been using: a reason to send again."""


def work_of(table: str, report: MatchReport | DestinationReport) -> TableWork:
    return TableWork(table, report.stored, report.candidates, report.evaluated, report.matched)
