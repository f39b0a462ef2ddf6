"""What brokers say to each other.

A message to other brokers names its destinations. Brokers between source and destination read that header and
nothing else: the body of a publication (`attributes` and `payload`) stays the bytes that the publisher sent.

Every message may be lost, delayed, duplicated or overtaken. Publications and changes are repeated by whoever is
responsible for them until each destination has acknowledged, and a destination recognises what it has seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

DEFAULT_HOP_LIMIT = 64
GAP = 0
"""The number of an entry by which a broker says that it does not know what all brokers behind it want. Those of
subscriptions and advertisements count from 1 on."""


SERVE = 1
PASS_ON = 2
BOTH_DUTIES = SERVE | PASS_ON
"""What a destination may be asked for: to serve its own clients, and to pass the publication on."""


class PublicationId(NamedTuple):
    """Unique over restarts: a broker's incarnation grows with each start, its counter with each publication."""

    broker: str
    incarnation: int
    counter: int

    def __str__(self) -> str:
        return f"{self.broker}/{self.incarnation}/{self.counter}"


class EntryId(NamedTuple):
    """An advertisement or a subscription: a number that its home broker gave in this incarnation."""

    broker: str
    incarnation: int
    number: int

    def __str__(self) -> str:
        return f"{self.broker}/{self.incarnation}/{self.number}"


@dataclass(frozen=True, slots=True)
class Advertise:
    """`crossed` are the clusters that the entry came through, the home's first. On a stale way a broker cannot be
    reached at present: unreachable is not gone, but any other way is better."""

    entry: EntryId
    expression: str
    crossed: tuple[str, ...] = ()
    is_stale: bool = False


@dataclass(frozen=True, slots=True)
class Unadvertise:
    entry: EntryId


@dataclass(frozen=True, slots=True)
class Subscribe:
    """`tree` is the advertisement whose tree the subscription is bound to; filter-based routing alone uses it."""

    entry: EntryId
    expression: str
    crossed: tuple[str, ...] = ()
    tree: EntryId | None = None
    is_stale: bool = False
    since: int = 0
    """When its home broker confirmed it, in nanoseconds. Publications accepted later are owed to it, even by brokers
    that hear of it later still. 0: before anything that a broker remembers."""

    @property
    def is_gap(self) -> bool:
        """It is no subscription: its source says that it cannot reach all brokers behind it, and so does not know what
        they want."""
        return self.entry.number == GAP


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    entry: EntryId
    tree: EntryId | None = None


Change: TypeAlias = Advertise | Unadvertise | Subscribe | Unsubscribe


class Turn(NamedTuple):
    """Where a batch of changes stands in what a source tells one destination."""

    destination: str
    epoch: int
    """Counts fresh starts; an epoch starts with what replaces all that the destination had from the source."""
    sequence: int


@dataclass(frozen=True, slots=True)
class Update:
    """Changes of advertisements and subscriptions, in order for each destination."""

    source: str
    incarnation: int
    domain: str
    turns: tuple[Turn, ...]
    changes: tuple[Change, ...]
    hop_limit: int = DEFAULT_HOP_LIMIT
    is_unfinished: bool = False
    """An epoch starts with all that there is to tell, and the next batch has more of it."""

    @property
    def destinations(self) -> tuple[str, ...]:
        return tuple(turn.destination for turn in self.turns)


@dataclass(frozen=True, slots=True)
class UpdateAcknowledged:
    """`source` has taken in all batches of the epoch up to and including `sequence`."""

    source: str
    incarnation: int
    domain: str
    destinations: tuple[str, ...]
    heard: int
    """The destination's incarnation that told them: an earlier life's epochs had the same numbers."""
    epoch: int
    sequence: int
    hop_limit: int = DEFAULT_HOP_LIMIT
    is_inquiry: bool = False
    """`source` could not reach the destination for a while, and asks for an empty batch if there is no more to tell."""


@dataclass(frozen=True, slots=True)
class Resend:
    """`source` does not know this epoch: the destination should start a new one with all that it has to tell."""

    source: str
    incarnation: int
    domain: str
    destinations: tuple[str, ...]
    epoch: int
    hop_limit: int = DEFAULT_HOP_LIMIT


class Publish(NamedTuple):
    """A publication on its way from `source`, who answers for it on this stretch.

    Under D-DBR the source is the publisher's broker; at an edge broker and at every hop of filter-based routing a new
    stretch begins. `id` stays the same all the way. A broker in `local` has clients that want the publication, one in
    `transit` knows others behind it that do; it may be both.
    """

    id: PublicationId
    source: str
    domain: str
    local: tuple[str, ...]
    transit: tuple[str, ...]
    attributes: bytes
    payload: bytes
    crossed: tuple[str, ...] = ()
    tree: EntryId | None = None
    hops: int = 0
    expires: int | None = None
    hop_limit: int = DEFAULT_HOP_LIMIT
    is_traced: bool = False
    """Its publisher wants to know where it goes: every broker on the way remembers what it did with it."""

    @property
    def destinations(self) -> tuple[str, ...]:
        if not self.transit or self.local == self.transit:
            return self.local
        return tuple(sorted({*self.local, *self.transit})) if self.local else self.transit

    def forwarded(self, local: tuple[str, ...], transit: tuple[str, ...], further: int) -> Publish:
        """For these destinations, and so many hops further. Brokers between source and destination do this with every
        publication: hence a tuple, and every field by hand."""
        return Publish(
            self.id,
            self.source,
            self.domain,
            local,
            transit,
            self.attributes,
            self.payload,
            self.crossed,
            self.tree,
            self.hops + further,
            self.expires,
            self.hop_limit - further,
            self.is_traced,
        )


@dataclass(frozen=True, slots=True)
class Settled:
    """`source` has done these duties for these publications: clients were served, those behind it have settled; or it
    gave up with a counted reason."""

    source: str
    domain: str
    destinations: tuple[str, ...]
    publications: tuple[PublicationId, ...]
    hop_limit: int = DEFAULT_HOP_LIMIT
    duties: int = BOTH_DUTIES


class Neighbour(NamedTuple):
    broker: str
    cost: int
    """What a hop over this link counts: 1 unless another metric was asked for."""


@dataclass(frozen=True, slots=True)
class LinkState:
    """What a broker says of itself to all brokers of a domain; the newest (incarnation, sequence) counts."""

    broker: str
    incarnation: int
    sequence: int
    domain: str
    neighbours: tuple[Neighbour, ...]
    clusters: tuple[str, ...] = ()
    address: str = ""
    has_left: bool = False

    @property
    def version(self) -> tuple[int, int]:
        return (self.incarnation, self.sequence)


@dataclass(frozen=True, slots=True)
class LinkStates:
    """Link states for one neighbour, who passes on what was news to it: a flood, or what the neighbour lacks."""

    states: tuple[LinkState, ...]


@dataclass(frozen=True, slots=True)
class Announce:
    """A link state for every broker of the domain, along shortest paths: one message for each, where a flood sends
    one over each link and back."""

    source: str
    domain: str
    destinations: tuple[str, ...]
    state: LinkState
    hop_limit: int = DEFAULT_HOP_LIMIT


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Sent to each neighbour; carries a hash of each domain's link states, so that a lost one is noticed."""

    incarnation: int
    clusters: tuple[str, ...]
    known: tuple[tuple[str, bytes], ...] = ()


@dataclass(frozen=True, slots=True)
class Credit:
    """The receiver has taken in the publication frames of this link up to this number: as many more may come."""

    taken: int


@dataclass(frozen=True, slots=True)
class Propose:
    """Self-reorganisation: `source` would gain `gain` by a link to the destination."""

    source: str
    domain: str
    destinations: tuple[str, ...]
    gain: float
    minimal_loss: float
    address: str = ""
    hop_limit: int = DEFAULT_HOP_LIMIT


@dataclass(frozen=True, slots=True)
class ProposalAnswered:
    source: str
    domain: str
    destinations: tuple[str, ...]
    accepted: bool
    address: str = ""
    hop_limit: int = DEFAULT_HOP_LIMIT


Routed: TypeAlias = Update | UpdateAcknowledged | Resend | Publish | Settled | Propose | ProposalAnswered | Announce
"""Messages with destinations, carried over several brokers."""

Message: TypeAlias = Routed | LinkStates | Heartbeat | Credit

FREE_MESSAGES = frozenset({Heartbeat, Credit, Settled, UpdateAcknowledged})
"""Acknowledgements and heartbeats. They have their own lane. Simulations charge nothing for them, and traces have no
rows of them."""


def is_free(message: Message) -> bool:
    return type(message) in FREE_MESSAGES
