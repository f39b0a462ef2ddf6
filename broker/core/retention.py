"""Publications that were matched here a short while ago, for subscriptions that this broker hears of late.

A subscription counts from the moment at which its home broker confirms it. Other brokers hear of it later: after some
milliseconds, or when a partition has healed or a broker has recovered. Until then they match publications without it.
So every broker that matches for others keeps what it matched, for as long as it keeps publications for brokers that it
cannot reach, and matches it once more with what it learns. Time, number and bytes are bounded: what has to go early is
remembered a while longer without its payload, so that a late subscription makes it a drop by name.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from matching import MatchingError
from matching.indexes.with_fallback import for_any_expression
from routing.messages import EntryId, PublicationId, Publish
from routing.router import LearnedSubscription
from routing.tables import expression_of

LET_GO = 16
"""Times as many passages are remembered as are kept."""


@dataclass(slots=True)
class RetainedPublication:
    """A publication that this broker takes in from a client, or passes on."""

    id: PublicationId
    message: Publish
    peer: str | None
    """The neighbour that it came from; None: it was published here."""
    arrived_at: int
    """When it was accepted, or arrived."""
    depth: int
    """Hops from the publisher's broker, on the way by which it came first."""
    upstream: list[tuple[str, str]] = field(default_factory=list)
    """Domains and brokers that wait for it; none at the publisher's broker."""
    advertisement: EntryId | None = None
    """What permitted it, if it was published here. Others know it by this advertisement, and tell their interest."""
    served: set[str] = field(default_factory=set)
    """Brokers that were asked to serve their clients."""
    passed: dict[tuple[str, str], int] = field(default_factory=dict)
    """Domains and brokers that were asked to pass it on, with the incarnation that was asked."""
    given_up: frozenset[str] = frozenset()
    """Brokers that could not be reached in time, for which it was dropped."""
    counted_bytes: int = 0
    """What it takes up while it is kept as settled."""
    is_open: bool = True
    """Some of them have yet to settle it, or it is being stored."""
    is_storing: bool = False
    """Deliveries to clients here are being stored."""

    former_trees: frozenset[EntryId | None] = frozenset()
    """Trees that it came in before its present one."""

    def knows_tree(self, tree: EntryId | None) -> bool:
        return tree == self.message.tree or tree in self.former_trees

    def switch_tree(self, message: Publish, peer: str) -> None:
        """It goes on in another tree: a restart of the publisher's broker has ended the one before.

        While others wait for it, or it for others, the way by which it came first counts, for those further on too.
        """
        if message.tree != self.message.tree:
            self.former_trees |= {self.message.tree}
        if self.is_open:
            message = message._replace(hops=self.depth)
        self.depth = message.hops
        self.message, self.peer = message, peer

    @property
    def sent_to(self) -> set[str]:
        """Brokers that were sent it."""
        return self.served.union(broker for _, broker in self.passed)

    @property
    def size(self) -> int:
        return len(self.message.attributes) + len(self.message.payload)


class EvictedPublication(NamedTuple):
    """What is remembered of a passage that had to go early. There are many of them: nothing in it needs to be looked at
    by the garbage collector."""

    id: PublicationId
    arrived_at: int
    attributes: bytes
    tree: EntryId | None
    sent_to: tuple[str, ...]


class LateInterest:
    """Subscriptions that became known here a moment ago."""

    def __init__(self, learned: list[LearnedSubscription], clock_skew: int) -> None:
        """`clock_skew`: how far the clocks of two brokers may be apart, in nanoseconds."""
        earliest: dict[tuple[str, str, EntryId | None], int] = {}
        for source, text, since, tree in learned:
            key = (source, text, tree)
            earliest[key] = min(since - clock_skew, earliest.get(key, since))
        self._entries = [(source, tree, since) for (source, _, tree), since in earliest.items()]
        self._earliest = min(earliest.values(), default=0)
        self._index = for_any_expression("auto")
        for number, (_, text, _) in enumerate(earliest):
            self._index.add(number, expression_of(text))

    def sources(self, came: int, attributes: bytes, publication_tree: EntryId | None) -> set[str]:
        """Brokers that told of a subscription which was confirmed before the publication came, and matches it."""
        if came < self._earliest:
            return set()
        try:
            found = self._index.match_packed(attributes).ids
        except MatchingError:
            # A broker that only passes on does not read them.
            return set()
        sources: set[str] = set()
        for number in found:
            source, tree, since = self._entries[number]
            if came >= since and tree in (None, publication_tree):
                sources.add(source)
        return sources


class Retention:
    def __init__(self, most: int, most_bytes: int, keep: int) -> None:
        """`keep`: nanoseconds from acceptance on. The bounds are for what is settled; open passages have their own."""
        self._most = most
        self._most_bytes = most_bytes
        self._keep = keep
        self._open: dict[PublicationId, RetainedPublication] = {}
        self._closed: OrderedDict[PublicationId, RetainedPublication] = OrderedDict()
        self._closed_bytes = 0
        self._crowd = most + most // 8
        self._crowd_bytes = most_bytes + most_bytes // 8
        self._let_go: deque[EvictedPublication] = deque()
        self._let_go_bytes = 0

    def find(self, id: PublicationId) -> RetainedPublication | None:
        return self._open.get(id) or self._closed.get(id)

    def open(self, passage: RetainedPublication) -> None:
        """Adds a passage, or opens one again that was settled."""
        if self._closed.pop(passage.id, None) is not None:
            self._closed_bytes -= passage.counted_bytes
        passage.is_open = True
        self._open[passage.id] = passage

    def close(self, passage: RetainedPublication) -> None:
        del self._open[passage.id]
        passage.is_open = False
        self._closed[passage.id] = passage
        passage.counted_bytes = passage.size
        self._closed_bytes += passage.counted_bytes

    def evict(self, now: int, *, is_settling: bool) -> list[RetainedPublication]:
        """Takes out the settled passages that are too old or too many. While brokers that were out of reach may have
        more to tell, passages are kept twice as long."""
        keep = 2 * self._keep if is_settling else self._keep
        evicted: list[RetainedPublication] = []
        closed = self._closed
        while closed:
            oldest = next(iter(closed.values()))
            is_crowded = len(closed) > self._most or self._closed_bytes > self._most_bytes
            if not is_crowded and now - oldest.arrived_at <= keep:
                break
            closed.popitem(last=False)
            self._closed_bytes -= oldest.counted_bytes
            evicted.append(oldest)
            if is_crowded:
                message = oldest.message
                asked = tuple(oldest.sent_to) if oldest.passed else tuple(oldest.served)
                self._let_go.append(
                    EvictedPublication(oldest.id, oldest.arrived_at, message.attributes, message.tree, asked)
                )
                self._let_go_bytes += len(message.attributes)
        self._forget(now)
        return evicted

    def _forget(self, now: int) -> None:
        while self._let_go:
            oldest = self._let_go[0]
            is_crowded = len(self._let_go) > LET_GO * self._most or self._let_go_bytes > self._most_bytes
            if not is_crowded and now - oldest.arrived_at <= self._keep:
                break
            self._let_go.popleft()
            self._let_go_bytes -= len(oldest.attributes)

    def evicted_early(self) -> Iterator[EvictedPublication]:
        """What is remembered of passages that had to go early."""
        return iter(self._let_go)

    @property
    def is_over_limit(self) -> bool:
        """An eighth more than the bounds: passages are evicted together, which takes less time for each."""
        return len(self._closed) > self._crowd or self._closed_bytes > self._crowd_bytes

    def closed(self) -> Iterator[RetainedPublication]:
        return iter(self._closed.values())

    def __iter__(self) -> Iterator[RetainedPublication]:
        """All passages, the open ones last."""
        return iter([*self._closed.values(), *self._open.values()])

    def __len__(self) -> int:
        return len(self._open) + len(self._closed)
