"""Retention: keeps recently matched publications for subscriptions that this broker learns of late.

A subscription is in force from the moment at which its home broker confirms it. Other brokers learn of it later: after
some milliseconds, or when a partition has healed or a broker has recovered. Until then they match publications without
it. So every broker that matches for others retains the matched publications, as long as it keeps publications for
unreachable brokers. It matches them again with the subscriptions that it learns.

Time, number and bytes are bounded. A publication that is evicted early is remembered for a while without its payload.
If a late subscription matches it, the broker reports it as a drop.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from broker.core.context import CoreContext
from broker.core.settings import FOREVER
from matching import MatchingError
from matching.indexes.with_fallback import for_any_expression
from routing.messages import EntryId, PublicationId, Publish
from routing.router import LearnedSubscription
from routing.tables import expression_of

EVICTED_FACTOR = 16
"""How many times as many evicted publications are remembered as publications are retained."""


@dataclass(slots=True)
class RetainedPublication:
    """A publication that this broker accepted from a client, or passes on."""

    id: PublicationId
    message: Publish
    peer: str | None
    """The neighbour that sent it; None: it was published here."""
    arrived_at: int
    """When it was accepted here, or arrived."""
    depth: int
    """Hops from the publisher's broker, on the route by which it arrived first."""
    upstream: list[tuple[str, str]] = field(default_factory=list)
    """Domains and brokers that wait until it is settled; none at the publisher's broker."""
    advertisement: EntryId | None = None
    """The advertisement that permitted it, if it was published here. Because of this advertisement other brokers send
    their subscriptions here."""
    served: set[str] = field(default_factory=set)
    """Brokers that it was sent to with the duty to serve their clients."""
    passed: dict[tuple[str, str], int] = field(default_factory=dict)
    """Domains and brokers that it was sent to with the duty to pass it on, with the broker's incarnation."""
    given_up: frozenset[str] = frozenset()
    """Brokers that were unreachable for too long. The publication was dropped for them."""
    counted_bytes: int = 0
    """The bytes that it counts for while it is retained as settled."""
    is_open: bool = True
    """Whether a destination has yet to settle it, or it is being stored."""
    is_storing: bool = False
    """Whether deliveries to local clients are being stored."""

    former_trees: frozenset[EntryId | None] = frozenset()
    """Trees in which it arrived before its present one."""

    def knows_tree(self, tree: EntryId | None) -> bool:
        """Whether the publication arrived in this tree before."""
        return tree == self.message.tree or tree in self.former_trees

    def switch_tree(self, message: Publish, peer: str) -> None:
        """Continues in another tree, because a restart of the publisher's broker has ended the previous tree.

        While the publication is open, the depth of its first route stays in force, also for brokers further on.
        """
        if message.tree != self.message.tree:
            self.former_trees |= {self.message.tree}
        if self.is_open:
            message = message._replace(hops=self.depth)
        self.depth = message.hops
        self.message, self.peer = message, peer

    @property
    def sent_to(self) -> set[str]:
        """Brokers that it was sent to, with either duty."""
        return self.served.union(broker for _, broker in self.passed)

    @property
    def size(self) -> int:
        return len(self.message.attributes) + len(self.message.payload)


class EvictedPublication(NamedTuple):
    """The remembered part of a publication that was evicted early.

    There are many of them, so no field is a container that the garbage collector must visit.
    """

    id: PublicationId
    arrived_at: int
    attributes: bytes
    tree: EntryId | None
    sent_to: tuple[str, ...]


class LateInterest:
    """Subscriptions that this broker just learned."""

    def __init__(self, learned: list[LearnedSubscription], clock_skew: int) -> None:
        """`clock_skew`: the largest difference between the clocks of two brokers, in nanoseconds."""
        earliest: dict[tuple[str, str, EntryId | None], int] = {}
        for source, text, since, tree in learned:
            key = (source, text, tree)
            earliest[key] = min(since - clock_skew, earliest.get(key, since))
        self._entries = [(source, tree, since) for (source, _, tree), since in earliest.items()]
        self._earliest = min(earliest.values(), default=0)
        self._index = for_any_expression("auto")
        for number, (_, text, _) in enumerate(earliest):
            self._index.add(number, expression_of(text))

    def sources(self, arrived_at: int, attributes: bytes, publication_tree: EntryId | None) -> set[str]:
        """Brokers that announced a matching subscription that was confirmed before the publication arrived."""
        if arrived_at < self._earliest:
            return set()
        try:
            found = self._index.match_packed(attributes).ids
        except MatchingError:
            # The attributes are unreadable. They got here because a broker that only passes on does not read them.
            return set()
        sources: set[str] = set()
        for number in found:
            source, tree, since = self._entries[number]
            if arrived_at >= since and tree in (None, publication_tree):
                sources.add(source)
        return sources


class Retention:
    def __init__(self, most: int, most_bytes: int, keep: int) -> None:
        """`keep`: nanoseconds from acceptance on. `most` and `most_bytes` limit the settled publications. The window
        limits the open ones."""
        self._most = most
        self._most_bytes = most_bytes
        self._keep = keep
        self._open: dict[PublicationId, RetainedPublication] = {}
        self._closed: OrderedDict[PublicationId, RetainedPublication] = OrderedDict()
        self._closed_bytes = 0
        self._evict_above = most + most // 8
        self._evict_above_bytes = most_bytes + most_bytes // 8
        self._evicted: deque[EvictedPublication] = deque()
        self._evicted_bytes = 0

    def find(self, id: PublicationId) -> RetainedPublication | None:
        return self._open.get(id) or self._closed.get(id)

    def open(self, publication: RetainedPublication) -> None:
        """Adds a publication, or opens a settled one again."""
        if self._closed.pop(publication.id, None) is not None:
            self._closed_bytes -= publication.counted_bytes
        publication.is_open = True
        self._open[publication.id] = publication

    def close(self, publication: RetainedPublication) -> None:
        del self._open[publication.id]
        publication.is_open = False
        self._closed[publication.id] = publication
        publication.counted_bytes = publication.size
        self._closed_bytes += publication.counted_bytes

    def evict(self, now: int, *, is_settling: bool) -> list[RetainedPublication]:
        """Removes settled publications that are too old or too many, and returns them. While brokers that were
        unreachable may still send updates (`is_settling`), publications are kept twice as long."""
        keep = 2 * self._keep if is_settling else self._keep
        evicted: list[RetainedPublication] = []
        closed = self._closed
        while closed:
            oldest = next(iter(closed.values()))
            has_too_many = len(closed) > self._most or self._closed_bytes > self._most_bytes
            if not has_too_many and now - oldest.arrived_at <= keep:
                break
            closed.popitem(last=False)
            self._closed_bytes -= oldest.counted_bytes
            evicted.append(oldest)
            if has_too_many:
                message = oldest.message
                sent_to = tuple(oldest.sent_to) if oldest.passed else tuple(oldest.served)
                self._evicted.append(
                    EvictedPublication(oldest.id, oldest.arrived_at, message.attributes, message.tree, sent_to)
                )
                self._evicted_bytes += len(message.attributes)
        self._forget(now)
        return evicted

    def idle_until(self, now: int, *, is_settling: bool) -> int:
        """Returns the last time at which `evict` would change nothing, if no publication is added until then."""
        if self._evicted:
            return now
        oldest = next(iter(self._closed.values()), None)
        return FOREVER if oldest is None else oldest.arrived_at + (2 * self._keep if is_settling else self._keep)

    def _forget(self, now: int) -> None:
        while self._evicted:
            oldest = self._evicted[0]
            has_too_many = len(self._evicted) > EVICTED_FACTOR * self._most or self._evicted_bytes > self._most_bytes
            if not has_too_many and now - oldest.arrived_at <= self._keep:
                break
            self._evicted.popleft()
            self._evicted_bytes -= len(oldest.attributes)

    def evicted_early(self) -> Iterator[EvictedPublication]:
        """Publications that were evicted early and are still remembered."""
        return iter(self._evicted)

    @property
    def is_over_limit(self) -> bool:
        """Whether the limits are exceeded by an eighth. Evicting many publications at once takes less time for each."""
        return len(self._closed) > self._evict_above or self._closed_bytes > self._evict_above_bytes

    def closed(self) -> Iterator[RetainedPublication]:
        return iter(self._closed.values())

    def __iter__(self) -> Iterator[RetainedPublication]:
        """All retained publications, the open ones last."""
        return iter([*self._closed.values(), *self._open.values()])

    def __len__(self) -> int:
        return len(self._open) + len(self._closed)


class AdvertisementUse:
    """Advertisements that clients have withdrawn and that other brokers still need.

    Other brokers send their late subscriptions to this broker because of an advertisement. So the advertisement stays
    known to them while publications under it are retained or being stored.
    """

    def __init__(self, context: CoreContext) -> None:
        self._router = context.router
        self._being_stored: dict[PublicationId, EntryId | None] = {}
        """Publications of clients here that are accepted when they are stored, with the advertisement that permits
        them."""
        self._retained: Counter[EntryId] = Counter()
        """For each advertisement, the number of retained publications under it."""
        self._ending: dict[EntryId, None] = {}
        """Withdrawn advertisements that are still in use."""

    def begin_store(self, publication: PublicationId, entry: EntryId | None) -> None:
        self._being_stored[publication] = entry

    def end_store(self, publication: PublicationId) -> None:
        self._being_stored.pop(publication, None)

    def retain(self, entry: EntryId | None) -> None:
        """Counts a publication that is retained under the advertisement."""
        if entry is not None:
            self._retained[entry] += 1

    def release(self, entry: EntryId | None) -> None:
        """Counts a publication that is no longer retained."""
        if entry is not None:
            self._retained[entry] -= 1
            if not self._retained[entry]:
                del self._retained[entry]

    def unadvertise(self, entry: EntryId) -> None:
        """Ends an advertisement for publishers here at once, and for other brokers when it is no longer in use."""
        self._router.deactivate_advertisement(entry)
        if self._is_used(entry):
            self._ending[entry] = None
        else:
            self._router.unadvertise(entry)

    def end_unused(self) -> None:
        """Withdraws from other brokers the advertisements that are no longer in use."""
        for entry in [each for each in self._ending if not self._is_used(each)]:
            del self._ending[entry]
            self._router.unadvertise(entry)

    def _is_used(self, entry: EntryId) -> bool:
        return entry in self._retained or entry in self._being_stored.values()
