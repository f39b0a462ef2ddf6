"""The messages between brokers.

A message names its destinations. Brokers between source and destination read only that header. They do not decode the
body of a publication (`attributes` and `payload`): it stays the bytes that the publisher sent.

Every message may be lost, delayed, duplicated or reordered. The responsible broker repeats publications and updates
until each destination has acknowledged them. A destination recognises duplicates.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple, TypeAlias

from msgspec import Meta, Struct

LARGEST_NUMBER = 2**63 - 1
"""Half of the encodable range: a receiver can still send a received number after incrementing it."""
Number: TypeAlias = Annotated[int, Meta(ge=0, le=LARGEST_NUMBER)]
"""A count, a position or a time. The wire refuses all others."""
DIGEST_BYTES = 64
Digest: TypeAlias = Annotated[bytes, Meta(max_length=DIGEST_BYTES)]

DEFAULT_HOP_LIMIT = 64
GAP = 0
"""The entry number of a gap: its broker does not know the subscriptions of all brokers behind it. The numbers of
subscriptions and advertisements start at 1."""


SERVE = 1
PASS_ON = 2
BOTH_DUTIES = SERVE | PASS_ON
"""The duties of a destination: to serve its own clients, and to pass the publication on."""


class Record(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A value that a frame holds as an array of its fields, in the order of their declaration."""


class PublicationId(NamedTuple):
    """Identifies a publication. It is unique across restarts: a broker's incarnation grows with each start, its counter
    with each publication."""

    broker: str
    incarnation: Number
    counter: Number

    def __str__(self) -> str:
        return f"{self.broker}/{self.incarnation}/{self.counter}"


class OnceId(NamedTuple):
    """Identifies a publication by its client. The client may publish it again at another broker, where it receives
    another `PublicationId`. Brokers deliver one of them to each subscriber."""

    client: str
    id: str
    """Unique among the publications of all sessions with the client's name."""


class EntryId(NamedTuple):
    """Identifies an advertisement or a subscription by the number that its home broker gave it in this incarnation."""

    broker: str
    incarnation: Number
    number: Number

    def __str__(self) -> str:
        return f"{self.broker}/{self.incarnation}/{self.number}"


class Advertise(Record, frozen=True, tag=1):
    """`crossed` lists the clusters that the entry crossed, the home cluster first. The entry is stale if a broker on
    its path is unreachable at present. A stale entry stays valid, but a path that is not stale is preferred."""

    entry: EntryId
    expression: str
    crossed: tuple[str, ...] = ()
    is_stale: bool = False


class Unadvertise(Record, frozen=True, tag=2):
    entry: EntryId


class Subscribe(Record, frozen=True, tag=3):
    """`tree` is the advertisement whose tree the subscription is bound to. Only filter-based routing uses it."""

    entry: EntryId
    expression: str
    crossed: tuple[str, ...] = ()
    tree: EntryId | None = None
    is_stale: bool = False
    since: Number = 0
    """The time in nanoseconds at which the home broker confirmed the subscription. Publications accepted later are owed
    to it, even by brokers that learn of it after they accepted them. 0 means before every retained publication."""

    @property
    def is_gap(self) -> bool:
        """Whether this announces a gap instead of a subscription: the source cannot reach all brokers behind it, and
        does not know their subscriptions."""
        return self.entry.number == GAP


class Unsubscribe(Record, frozen=True, tag=4):
    entry: EntryId
    tree: EntryId | None = None


Change: TypeAlias = Advertise | Unadvertise | Subscribe | Unsubscribe


class Turn(NamedTuple):
    """The position of an update in the sequence from a source to one destination."""

    destination: str
    epoch: Number
    """Counts openings. An epoch starts with an opening, which replaces all entries that the destination has from the
    source."""
    sequence: Number


class Update(Record, frozen=True):
    """Changes of advertisements and subscriptions, in order for each destination."""

    source: str
    incarnation: Number
    domain: str
    turns: tuple[Turn, ...]
    changes: tuple[Change, ...]
    hop_limit: Number = DEFAULT_HOP_LIMIT
    is_unfinished: bool = False
    """Whether this update belongs to an opening, and the next one continues it."""

    @property
    def destinations(self) -> tuple[str, ...]:
        return tuple(turn.destination for turn in self.turns)


class UpdateAcknowledged(Record, frozen=True):
    """`source` has applied all updates of the epoch up to and including `sequence`."""

    source: str
    incarnation: Number
    domain: str
    destinations: tuple[str, ...]
    destination_incarnation: Number
    """The incarnation of the destination that sent the updates. Epochs of an earlier incarnation had the same
    numbers."""
    epoch: Number
    sequence: Number
    hop_limit: Number = DEFAULT_HOP_LIMIT
    is_inquiry: bool = False
    """Whether `source`, which could not reach the destination for a while, requests an empty update if there are no
    further changes."""


class Resend(Record, frozen=True):
    """`source` does not know this epoch. The destination must start a new one with an opening."""

    source: str
    incarnation: Number
    domain: str
    destinations: tuple[str, ...]
    epoch: Number
    hop_limit: Number = DEFAULT_HOP_LIMIT


class Publish(NamedTuple):
    """A publication on one leg. `source` is the broker that matched it and is responsible for the leg.

    Under D-DBR the source is the publisher's broker. A new leg begins at an edge broker, and at every hop of
    filter-based routing. `id` is the same on all legs. A broker in `local` has clients that want the publication. A
    broker in `transit` knows other brokers behind it that want it. A broker may be in both.
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
    hops: Number = 0
    expires: Number | None = None
    hop_limit: Number = DEFAULT_HOP_LIMIT
    is_traced: bool = False
    """Whether the publisher traces the publication: every broker on its route records what it did with it."""
    once: OnceId | None = None


class Settled(Record, frozen=True):
    """`source` has settled these duties for these publications. It served its clients, and the brokers behind it have
    settled; or it dropped the publications with a counted reason."""

    source: str
    domain: str
    destinations: tuple[str, ...]
    publications: tuple[PublicationId, ...]
    hop_limit: Number = DEFAULT_HOP_LIMIT
    duties: Number = BOTH_DUTIES


class Neighbour(NamedTuple):
    """A link in a link state: the broker at its other end, and its cost."""

    broker: str
    cost: Number
    """The cost of a hop over this link: 1 unless another metric is configured."""


class LinkState(Record, frozen=True):
    """A broker's list of its links, sent to all brokers of a domain. The highest (incarnation, sequence) counts."""

    broker: str
    incarnation: Number
    sequence: Number
    domain: str
    neighbours: tuple[Neighbour, ...]
    clusters: tuple[str, ...] = ()
    address: str = ""
    has_left: bool = False

    @property
    def version(self) -> tuple[int, int]:
        return (self.incarnation, self.sequence)


class LinkStates(Record, frozen=True):
    """Link states for one neighbour, which passes on those that are new to it. They are part of a flood, or the ones
    that the neighbour lacks."""

    states: tuple[LinkState, ...]


class Announce(Record, frozen=True):
    """A link state for every broker of the domain, along shortest paths. Each broker receives one message; a flood
    sends one over each link in both directions."""

    source: str
    domain: str
    destinations: tuple[str, ...]
    state: LinkState
    hop_limit: Number = DEFAULT_HOP_LIMIT


class Heartbeat(Record, frozen=True):
    """Sent to each neighbour. It carries a digest of each domain's link states, so that a lost one is noticed."""

    incarnation: Number
    clusters: tuple[str, ...]
    known: tuple[tuple[str, Digest], ...] = ()


class Credit(Record, frozen=True):
    """The receiver has processed the publication frames of this link up to the number
    `acknowledged_through`. The sender may send as many more as the credit allows."""

    acknowledged_through: Number


class Propose(Record, frozen=True):
    """Self-reorganisation: `source` proposes a link to the destination, which would save it `gain`."""

    source: str
    domain: str
    destinations: tuple[str, ...]
    gain: float
    minimal_loss: float
    address: str = ""
    hop_limit: Number = DEFAULT_HOP_LIMIT


class ProposalAnswered(Record, frozen=True):
    """Self-reorganisation: the answer to `Propose`."""

    source: str
    domain: str
    destinations: tuple[str, ...]
    accepted: bool
    address: str = ""
    hop_limit: Number = DEFAULT_HOP_LIMIT


Routed: TypeAlias = Update | UpdateAcknowledged | Resend | Publish | Settled | Propose | ProposalAnswered | Announce
"""Messages with destinations. Several brokers may pass them on."""

Message: TypeAlias = Routed | LinkStates | Heartbeat | Credit
"""Everything that brokers send each other over a link."""

FREE_MESSAGES = frozenset({Heartbeat, Credit, Settled, UpdateAcknowledged})
"""Acknowledgements and heartbeats. They bypass the queues of publications. Simulations charge no cost for them, and
traces have no rows of them."""


def is_free(message: Message) -> bool:
    """Whether the message bypasses the queues of publications."""
    return type(message) in FREE_MESSAGES
