"""The interface between a router and its broker.

A router keeps tables and makes routing decisions. The broker keeps clients, time and responsibility for publications.
The broker calls the router when something happens, and sends the messages that `drain` returns. A router never reads
a clock: it repeats messages when the broker calls `tick`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from matching.expressions.model import Expression
from routing.messages import EntryId, Heartbeat, LinkState, Message, Publish, Routed
from routing.reorganisation import CloseLink, OpenLink
from routing.tables import TableWork

ANY_NUMBER = 1 << 62
"""As many ticks as a driver likes."""


@dataclass(frozen=True, slots=True)
class ForwardingLeg:
    """The destinations of a publication in one domain, with their duties: `local` serve their own clients, `transit`
    pass the publication on."""

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
class RoutingDecision:
    """The legs and local clients that the router finds for a publication at this broker."""

    clients: Mapping[str, tuple[EntryId, ...]] = field(default_factory=dict)
    legs: tuple[ForwardingLeg, ...] = ()
    work: tuple[TableWork, ...] = ()
    dropped: str | None = None
    """The reason for which the router drops the publication. None if it does not, or if no subscription matches."""
    tree: EntryId | None = None
    """The tree that the publication belongs to. Only filter-based routing uses it."""
    advertisement: EntryId | None = None
    """The advertisement that permits the publication, if a client of this broker published it."""


class LearnedSubscription(NamedTuple):
    """A subscription that this router learned of. Publications accepted after `since` are owed to it."""

    source: str
    """The broker that sent the subscription. Publications for it go to this broker."""
    expression: str
    since: int
    tree: EntryId | None = None
    """The tree whose publications the subscription requests. None means all publications."""


class UnknownInterest(NamedTuple):
    """Brokers that may want a publication but cannot send their subscriptions, with the ticks since they last could."""

    own: Mapping[str, int] = {}
    """Unreachable brokers whose own clients may want the publication."""
    behind: Mapping[str, int] = {}
    """Unreachable brokers that may pass the publication on to other brokers."""
    gaps: Mapping[str, int] = {}
    """Reachable brokers that announced a gap: they cannot reach all brokers behind them."""


@dataclass(frozen=True, slots=True)
class Counts:
    """The sizes of a router's tables and its counters, for traces and `status`."""

    advertisements: int
    local_subscriptions: int
    remote_subscriptions: int
    routing_table_bytes: int
    duplicate_advertisements: int = 0
    unroutable: int = 0
    out_of_hops: int = 0
    unacknowledged_changes: int = 0


class RouterSettings(NamedTuple):
    """Settings that the broker gives its router. Times are in ticks."""

    detection_ticks: int = 10
    """Time in which every broker notices that a broker has become unreachable or reachable, and receives its
    updates."""
    retention_ticks: int = 60
    """The longest time for which a broker retains a publication."""
    settles_early: bool = True
    """Whether a broker may settle a publication that it keeps for unreachable neighbours. If it crashes, no other
    broker has the publication. Memory mode accepts this loss."""


class RouterOutput(NamedTuple):
    """The output of a router for its broker since the last `drain`."""

    messages: list[tuple[str, Message]]
    """Messages to send, each with the neighbour to send it to."""
    link_requests: Sequence[OpenLink | CloseLink] = ()
    """Links to open and to close."""
    learned_subscriptions: Sequence[LearnedSubscription] = ()
    """Subscriptions of other brokers that this router learned of."""
    link_losses: int = 0
    """How many links of other brokers were lost since the start. Publications may have been on them: the broker sends
    again."""
    has_pending_link_states: bool = False
    """Whether link states have arrived that `apply_link_states` has not applied yet."""


class Router(Protocol):
    """What the broker core requires of a routing protocol."""

    name: str
    settings: RouterSettings

    def load_link_states(self, states: tuple[LinkState, ...]) -> None:
        """Loads the overlay as a configuration file describes it."""

    def apply_link_states(self) -> None:
        """Applies the link states that arrived since the last call. A router may collect several of them; it applies
        them before it answers any query."""

    def neighbour_up(self, peer: str, greeting: Heartbeat, cost: int) -> None:
        """Adds a neighbour. `greeting` is its first heartbeat on the link."""

    def neighbour_lost(self, peer: str) -> None:
        """Records that the link to a neighbour is down. The neighbour may come back."""

    def neighbour_left(self, peer: str) -> None:
        """Removes a neighbour that has left the overlay for good. Its link is down, or will be."""

    def advertise(self, entry: EntryId, client: str, expression: Expression) -> None: ...

    def deactivate_advertisement(self, entry: EntryId) -> None:
        """Stops permitting publications under the advertisement. Other brokers keep it until `unadvertise`."""

    def unadvertise(self, entry: EntryId) -> None:
        """Withdraws a deactivated advertisement from other brokers."""

    def subscribe(self, entry: EntryId, client: str, expression: Expression, since: int = 0) -> None:
        """Adds a client's subscription. `since` is the time at which it was confirmed; see `Subscribe`."""

    def unsubscribe(self, entry: EntryId) -> None: ...

    def match_own(self, client: str, attributes: bytes) -> RoutingDecision | None:
        """Matches a publication of a local client. Returns None if no advertisement of the client permits it."""

    def match_arrived(self, publication: Publish, peer: str) -> RoutingDecision:
        """Matches a publication that arrived with this broker among its destinations."""

    def current_legs(self, publication: Publish, peer: str | None) -> tuple[ForwardingLeg, ...]:
        """Returns the legs that a publication would have if it were matched again now.

        `peer` is the neighbour that sent the publication. None means that a local client published it.
        """

    def unknown_interest(self, publication: Publish, peer: str | None) -> UnknownInterest:
        """Returns the brokers that may want the publication but cannot send their subscriptions: they are unreachable,
        or announced a gap."""

    @property
    def is_converging(self) -> bool:
        """Whether brokers became reachable or recovered a short while ago, so that more updates may follow."""

    def incarnation_of(self, broker: str) -> int:
        """Returns the last known incarnation of a broker, or 0 for an unknown broker."""

    def members(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Returns, for each domain, the brokers whose subscriptions this broker must know. A durable broker stores
        them."""

    def restore_members(self, domain: str, members: tuple[str, ...]) -> None:
        """Adds brokers that were in the domain before a restart. They may be unreachable now."""

    def expect_neighbours(self, peers: tuple[str, ...]) -> None:
        """Adds neighbours that a configuration names. They may be unreachable now, and unknown to all other brokers."""

    def begin_recovery(self) -> None:
        """Begins recovery after a restart: requests the openings of other brokers, and leaves its own unfinished."""

    @property
    def has_all_openings(self) -> bool:
        """Whether all reachable brokers have completed the openings of their present incarnations."""

    def end_recovery(self) -> None: ...

    def is_valid(self, leg: ForwardingLeg) -> bool:
        """Whether a leg that was computed before a restart can still be used."""

    def send(self, message: Routed) -> None:
        """Sends a message that this broker originates to its destinations."""

    def receive(self, message: Message, peer: str) -> Message | None:
        """Handles a message and passes it on to its other destinations. Returns it if the broker must handle it too."""

    def tick(self) -> None:
        """Repeats updates that were not acknowledged, and counts a tick."""

    def idle_ticks(self) -> int:
        """Returns how many ticks from now on only count, if the last tick sent nothing and no message comes."""

    def skip_ticks(self, count: int) -> None:
        """Counts ticks without running them: at most `idle_ticks`."""

    def greeting(self) -> Heartbeat:
        """Returns the heartbeat for all neighbours."""

    def is_reachable(self, domain: str, broker: str) -> bool: ...

    def substitute_leg(self, publication: Publish, lost: str) -> ForwardingLeg | None:
        """Returns a leg to brokers that can take over the duties of an unreachable destination, or None."""

    def leave(self) -> None:
        """Announces that this broker leaves the overlay for good."""

    def drain(self) -> RouterOutput:
        """Removes and returns the router's output."""

    def counts(self) -> Counts: ...

    def enable_reorganisation(self, most_links: int) -> None:
        """Enables self-reorganisation with at most `most_links` links. Routers that know only their neighbours cannot
        reorganise and raise RoutingError."""

    def reorganise(self) -> None:
        """Ends a cycle of self-reorganisation."""
