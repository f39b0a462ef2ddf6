"""What every router is to the broker around it.

A router keeps tables and decides; the broker keeps clients, time and responsibility for publications. The broker
tells it what happened and takes the messages for neighbours out of `drain`. A router never looks at a clock: what
must be repeated is repeated when the broker says that a tick has passed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from matching.expressions.model import Expression
from matching.matcher import DestinationReport, MatchReport
from routing.messages import EntryId, Heartbeat, LinkState, Message, Publish, Routed
from routing.reorganisation import CloseLink, OpenLink


@dataclass(frozen=True, slots=True)
class ForwardingLeg:
    """Where a publication goes from here, and what for."""

    domain: str
    local: tuple[str, ...]
    transit: tuple[str, ...]
    crossed: tuple[str, ...] = ()
    tree: EntryId | None = None

    def only_to(self, brokers: set[str]) -> ForwardingLeg:
        local = tuple([each for each in self.local if each in brokers])
        transit = tuple([each for each in self.transit if each in brokers])
        return ForwardingLeg(self.domain, local, transit, self.crossed, self.tree)


@dataclass(frozen=True, slots=True)
class TableWork:
    """One table was asked: for traces and for the simulation's cost of matching."""

    table: str
    stored: int
    candidates: int
    evaluated: int
    matched: int


@dataclass(frozen=True, slots=True)
class RoutingDecision:
    """What the matching layer says of a publication at this broker."""

    clients: Mapping[str, tuple[EntryId, ...]] = field(default_factory=dict)
    legs: tuple[ForwardingLeg, ...] = ()
    work: tuple[TableWork, ...] = ()
    dropped: str | None = None
    """Why the publication goes nowhere from here, when that is not for lack of interest."""
    tree: EntryId | None = None
    """The tree that the publication belongs to; filter-based routing alone uses it."""
    advertisement: EntryId | None = None
    """For a publication of a client here: what permits it."""


class LearnedSubscription(NamedTuple):
    """Interest that became known here. Publications that were accepted after `since` are owed to it."""

    source: str
    """The broker that told of it, to which they go from here."""
    expression: str
    since: int
    tree: EntryId | None = None
    """The tree whose publications are concerned; None: all."""


class UnknownInterest(NamedTuple):
    """Brokers that may want a publication and could not say so, with the ticks for which that has been so."""

    own: Mapping[str, int] = {}
    """Brokers out of reach, for their clients."""
    behind: Mapping[str, int] = {}
    """Brokers out of reach, for others behind them."""
    gaps: Mapping[str, int] = {}
    """Brokers that said that some behind them are out of reach."""


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


class RouterSettings(NamedTuple):
    """Times that matter to a router, in ticks, and how long others keep publications for it."""

    detection_ticks: int = 10
    """By then it is noticed everywhere that a broker is out of reach or back, and what it told has arrived."""
    retention_ticks: int = 60
    """So long a publication may be retained."""
    settles_early: bool = True
    """A broker may settle a publication that it keeps for neighbours out of reach. If it crashes, nobody else keeps it
    for these: that is accepted in memory mode."""


class Router(Protocol):
    name: str
    settings: RouterSettings
    learned_subscriptions: list[LearnedSubscription]
    """What others want and was not known here before. The broker empties it."""
    has_pending_link_states: bool
    """Is there news of other brokers' links that `catch_up` has not taken account of?"""

    def load_link_states(self, states: tuple[LinkState, ...]) -> None:
        """The overlay as a configuration file describes it."""

    def apply_link_states(self) -> None:
        """Takes account of news that may wait for more of its kind; nothing that is asked gets an old answer."""

    def neighbour_up(self, peer: str, greeting: Heartbeat, cost: int) -> None: ...

    def neighbour_lost(self, peer: str) -> None: ...

    def neighbour_left(self, peer: str) -> None:
        """A neighbour that was lost, or is about to be, has left the overlay for good."""

    def advertise(self, entry: EntryId, client: str, expression: Expression) -> None: ...

    def deactivate_advertisement(self, entry: EntryId) -> None:
        """Nothing may be published under it any more. Other brokers keep it until `unadvertise`."""

    def unadvertise(self, entry: EntryId) -> None:
        """Withdraws an advertisement that was closed."""

    def subscribe(self, entry: EntryId, client: str, expression: Expression, since: int = 0) -> None:
        """`since`: when the subscription was confirmed; see `Subscribe`."""

    def unsubscribe(self, entry: EntryId) -> None: ...

    def match_own(self, client: str, attributes: bytes) -> RoutingDecision | None:
        """A client publishes here. None: outside what it advertised."""

    def match_arrived(self, publication: Publish, peer: str) -> RoutingDecision:
        """A publication arrived that names this broker."""

    def current_legs(self, publication: Publish, peer: str | None) -> tuple[ForwardingLeg, ...]:
        """Where a publication that was matched here before would go from here by what is known now.

        `peer` is the neighbour that it came from; None: it was published here.
        """

    def unknown_interest(self, publication: Publish, peer: str | None) -> UnknownInterest:
        """Brokers that may want the publication and could not say so: they cannot be reached, or say that some behind
        them cannot."""

    @property
    def is_converging(self) -> bool:
        """Brokers can be reached again since a short while, or recover: there may be more to hear."""

    def incarnation_of(self, broker: str) -> int:
        """As far as it is known; 0 for a broker that is not."""

    def members(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """For each domain, the brokers whose interest this broker must know. A durable broker stores them."""

    def restore_members(self, domain: str, members: tuple[str, ...]) -> None:
        """They were there before a restart, and may be unreachable now."""

    def expect_neighbours(self, peers: tuple[str, ...]) -> None:
        """A configuration names them. They may be unreachable now, and nobody else may know them."""

    def begin_recovery(self) -> None:
        """After a restart: asks others for what they want, and passes nothing on as complete."""

    @property
    def has_all_openings(self) -> bool:
        """All brokers that can be reached have told what they want, in their present incarnation."""

    def end_recovery(self) -> None: ...

    def is_valid(self, leg: ForwardingLeg) -> bool:
        """Does a stretch that was planned before a restart lead anywhere now?"""

    def send(self, message: Routed) -> None:
        """Sends a message of the broker's own to its destinations."""

    def receive(self, message: Message, peer: str) -> Message | None:
        """Handles what arrived and passes on what is for others. Returns what is for the broker itself."""

    def tick(self) -> None:
        """Repeats what nobody acknowledged."""

    def greeting(self) -> Heartbeat: ...

    def is_reachable(self, domain: str, broker: str) -> bool: ...

    def substitute_leg(self, publication: Publish, lost: str) -> ForwardingLeg | None:
        """Who serves what the lost destination would have served, if anyone does by now."""

    def leave(self) -> None: ...

    def drain(self) -> list[tuple[str, Message]]: ...

    def counts(self) -> Counts: ...

    def enable_reorganisation(self, most_links: int) -> None:
        """Lets the broker change its links, up to so many. Routers that know their neighbours only cannot."""

    def reorganise(self) -> None:
        """A cycle of self-reorganisation ends."""

    def drain_link_requests(self) -> list[OpenLink | CloseLink]:
        """Links that are to come or to go, since this was last asked."""

    def link_losses(self) -> int:
        """How often a link was lost that others may have been using: a reason to send again."""


def work_of(table: str, report: MatchReport | DestinationReport) -> TableWork:
    return TableWork(table, report.stored, report.candidates, report.evaluated, report.matched)
