"""The three kinds of nodes [BET 4.1], and the subscriptions in them.

    PartitionNode   an attribute: all that is below has a condition on it. Holds a cluster directory.
    ClusterNode     a bucket of that attribute's keys: all that is below stays within it. Holds a leaf node, and a
                    partition directory (partition nodes by dimension).
    LeafNode        subscriptions.

The root is a cluster node without a bucket. Buckets point to the halves below them and to the bucket above.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from matching.expressions.conjunction import Condition
from matching.expressions.values import Value
from matching.indexes.be_tree.keys import Access, Bounds

if TYPE_CHECKING:
    from matching.indexes.be_tree.directories import Directory


class Requirement:
    """A condition as the index keeps it: once, however many subscriptions have it."""

    __slots__ = ("access", "condition", "dimension", "prepared", "users")

    def __init__(self, dimension: int, condition: Condition, access: Access, prepared: Any) -> None:
        self.dimension = dimension
        self.condition = condition
        self.access = access
        self.prepared = prepared
        """What the evaluation made of it."""
        self.users = 0


class Subscription:
    """One stored conjunction, by numbers of dimensions."""

    __slots__ = ("absent", "checks", "covered", "id", "leaf", "points", "requirements", "signature", "subsumed")

    def __init__(self, id: int, requirements: dict[int, Requirement], absent: list[int], signature: int) -> None:
        self.id = id
        self.requirements = requirements
        """By dimension, those first that are likely to fail first."""
        self.points = tuple(number for number, each in requirements.items() if each.access.point is not None)
        """The dimensions with an equality."""
        self.absent = tuple(absent)
        """Dimensions of presence that a publication must not have: NOT EXISTS."""
        self.signature = signature
        """The attributes, for the filter."""
        self.leaf: LeafNode | None = None
        self.subsumed = 0
        """Conditions on the path to the leaf that the path proves."""
        self.covered = 0
        """Conditions on the path that are still to be verified."""
        self.checks: Any = ()
        """What the evaluation made of the conditions that the present place leaves to verify."""

    def access(self, dimension: int) -> Access:
        return self.requirements[dimension].access

    def is_point(self, dimension: int) -> bool:
        return self.requirements[dimension].access.point is not None


class LeafNode:
    __slots__ = ("capacity", "cluster", "subscriptions")

    def __init__(self, cluster: ClusterNode, capacity: int) -> None:
        self.cluster = cluster
        self.capacity = capacity
        self.subscriptions: dict[int, Subscription] = {}

    @property
    def is_overflowing(self) -> bool:
        return len(self.subscriptions) > self.capacity

    def put(self, subscription: Subscription) -> None:
        self.subscriptions[subscription.id] = subscription
        subscription.leaf = self

    def move_to(self, other: LeafNode, subscription: Subscription) -> None:
        del self.subscriptions[subscription.id]
        other.put(subscription)


class ClusterNode:
    __slots__ = (
        "above",
        "high",
        "is_split",
        "leaf",
        "left",
        "low",
        "middle",
        "owner",
        "partitions",
        "point",
        "recycled",
        "right",
    )

    def __init__(self, owner: PartitionNode | None, bounds: Bounds, capacity: int, point: Value | None = None) -> None:
        self.owner = owner
        """The partition node whose directory this bucket belongs to; None for the root."""
        self.set_bounds(bounds)
        self.point = point
        """The value of a bucket in a hash table."""
        self.is_split = False
        self.left: ClusterNode | None = None
        self.right: ClusterNode | None = None
        self.above: ClusterNode | None = None
        self.leaf = LeafNode(self, capacity)
        self.partitions: dict[int, PartitionNode] = {}
        self.recycled: dict[int, RecycledPartition] | None = None

    def set_bounds(self, bounds: Bounds) -> None:
        self.low, self.high = bounds
        self.middle = (self.low + self.high) // 2

    @property
    def is_atomic(self) -> bool:
        return self.low == self.high

    @property
    def is_open(self) -> bool:
        """Not partitioned yet [BET Definition 4.2]."""
        return not self.partitions

    @property
    def is_empty(self) -> bool:
        return not self.leaf.subscriptions and not self.partitions and self.left is None and self.right is None

    def encloses(self, bounds: Bounds) -> bool:
        return self.low <= bounds[0] and bounds[1] <= self.high

    def path(self) -> Iterator[PartitionNode]:
        """The partition nodes above, nearest first."""
        partition = self.owner
        while partition is not None:
            yield partition
            partition = partition.cluster.owner


class RecycledPartition:
    """What a cluster node knows of a partition that did not pay and was recycled."""

    __slots__ = ("loss_per_subscription", "window_factor")

    def __init__(self, loss_per_subscription: float, window_factor: int) -> None:
        self.loss_per_subscription = loss_per_subscription
        """Discarded evaluations for each publication and subscription."""
        self.window_factor = window_factor


class PartitionNode:
    __slots__ = ("cluster", "covered", "dimension", "directory", "loss", "size", "subsumed")

    def __init__(self, cluster: ClusterNode, dimension: int, loss: LossWindow) -> None:
        self.cluster = cluster
        """The cluster node in whose partition directory this stands."""
        self.dimension = dimension
        self.directory: Directory
        self.size = 0
        """Subscriptions below."""
        self.subsumed = 0
        """Sum over the subscriptions below of their conditions that the path proves."""
        self.covered = 0
        self.loss = loss

    def subscriptions(self) -> list[Subscription]:
        """All that is below, in a fixed order."""
        found: list[Subscription] = []
        pending = list(self.directory.clusters())
        while pending:
            cluster = pending.pop()
            found += cluster.leaf.subscriptions.values()
            for partition in cluster.partitions.values():
                pending += partition.directory.clusters()
        return found


class Clock:
    """Counts what happened to the index; windows are measured in it, never in time."""

    __slots__ = ("operations", "publications")

    def __init__(self) -> None:
        self.operations = 0
        """Insertions, deletions and matches."""
        self.publications = 0


class LossWindow:
    """The evaluations below a node that came to nothing, for each publication of a window [BET eq. 11]."""

    __slots__ = ("clock", "discarded", "opened_at", "per_publication", "seen_at", "window_factor")

    def __init__(self, clock: Clock, window_factor: int = 1) -> None:
        self.clock = clock
        self.window_factor = window_factor
        """Multiplies the window of a partition that was recycled before and came back."""
        self.per_publication = 0.0
        """As measured in the last window that ended."""
        self._open()

    def _open(self) -> None:
        self.discarded = 0
        self.opened_at = self.clock.operations
        self.seen_at = self.clock.publications

    def is_over(self, operations: int, publications: int) -> bool:
        """Is the window that long?"""
        seen = self.clock.publications - self.seen_at
        return seen >= publications and self.clock.operations - self.opened_at >= operations * self.window_factor

    def running(self) -> float:
        """As measured since the window was opened."""
        return self.discarded / max(1, self.clock.publications - self.seen_at)

    def close(self) -> None:
        self.per_publication = self.running()
        self._open()
