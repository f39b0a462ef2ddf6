"""The three kinds of nodes [BET 4.1], and the subscriptions in them.

    PartitionNode   an attribute: all subscriptions below have a condition on it. It has a cluster directory.
    ClusterNode     a bucket of that attribute's keys: the conditions of all subscriptions below are within it. It has a
                    leaf node and a partition directory (partition nodes by dimension).
    LeafNode        subscriptions.

The root is a cluster node without a bucket. Buckets refer to the halves below them and to the bucket above.
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
    """A condition of the index. All subscriptions with an equal condition share it."""

    __slots__ = ("access", "condition", "dimension", "prepared", "users")

    def __init__(self, dimension: int, condition: Condition, access: Access, prepared: Any) -> None:
        self.dimension = dimension
        self.condition = condition
        self.access = access
        self.prepared = prepared
        """The result of `Evaluation.prepare`."""
        self.users = 0


class Subscription:
    """One stored conjunction, with numbers for dimensions."""

    __slots__ = ("absent", "checks", "covered", "id", "leaf", "points", "requirements", "signature", "subsumed")

    def __init__(self, id: int, requirements: dict[int, Requirement], absent: list[int], signature: int) -> None:
        self.id = id
        self.requirements = requirements
        """The requirements by dimension. Those that are most likely to fail come first."""
        self.points = tuple(number for number, each in requirements.items() if each.access.point is not None)
        """The dimensions with an equality."""
        self.absent = tuple(absent)
        """The dimensions of NOT EXISTS, which a publication must not have."""
        self.signature = signature
        """The signature of the attributes, for the filter."""
        self.leaf: LeafNode | None = None
        self.subsumed = 0
        """The number of conditions on the path to the leaf that the path proves."""
        self.covered = 0
        """The number of conditions on the path that must still be verified."""
        self.checks: Any = ()
        """The result of `Evaluation.arrange` for the conditions that must be verified in the present leaf."""

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
        """The value of a bucket in a hash table, otherwise None."""
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
        """Whether the node is not partitioned yet [BET Definition 4.2]."""
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
    """The data that a cluster node keeps about a partition that did not pay and was recycled."""

    __slots__ = ("loss_per_subscription", "window_factor")

    def __init__(self, loss_per_subscription: float, window_factor: int) -> None:
        self.loss_per_subscription = loss_per_subscription
        """The number of discarded evaluations for each publication and subscription."""
        self.window_factor = window_factor


class PartitionNode:
    __slots__ = ("cluster", "covered", "dimension", "directory", "loss", "size", "subsumed")

    def __init__(self, cluster: ClusterNode, dimension: int, loss: LossWindow) -> None:
        self.cluster = cluster
        """The cluster node whose partition directory contains this node."""
        self.dimension = dimension
        self.directory: Directory
        self.size = 0
        """The number of subscriptions below."""
        self.subsumed = 0
        """The sum of `subsumed` over the subscriptions below."""
        self.covered = 0
        self.loss = loss

    def subscriptions(self) -> list[Subscription]:
        """All subscriptions below, in a fixed order."""
        found: list[Subscription] = []
        pending = list(self.directory.clusters())
        while pending:
            cluster = pending.pop()
            found += cluster.leaf.subscriptions.values()
            for partition in cluster.partitions.values():
                pending += partition.directory.clusters()
        return found


class Clock:
    """Counts the operations on the index. Windows are measured in operations, never in time."""

    __slots__ = ("operations", "publications")

    def __init__(self) -> None:
        self.operations = 0
        """The number of insertions, deletions and matches."""
        self.publications = 0


class LossWindow:
    """The discarded evaluations below a node, per publication of a window [BET eq. 11]."""

    __slots__ = ("clock", "discarded", "opened_at", "per_publication", "seen_at", "window_factor")

    def __init__(self, clock: Clock, window_factor: int = 1) -> None:
        self.clock = clock
        self.window_factor = window_factor
        """The factor of the window's length. It grows for a partition that was recycled before."""
        self.per_publication = 0.0
        """The loss in the last window that ended."""
        self._open()

    def _open(self) -> None:
        self.discarded = 0
        self.opened_at = self.clock.operations
        self.seen_at = self.clock.publications

    def is_over(self, operations: int, publications: int) -> bool:
        """Whether the window has at least this many publications, and this many operations times the factor."""
        seen = self.clock.publications - self.seen_at
        return seen >= publications and self.clock.operations - self.opened_at >= operations * self.window_factor

    def running(self) -> float:
        """The loss since the window was opened."""
        return self.discarded / max(1, self.clock.publications - self.seen_at)

    def close(self) -> None:
        """Stores the loss of the window and opens the next one."""
        self.per_publication = self.running()
        self._open()
