"""Cluster directories: the buckets of one attribute's keys [BET 4.3, 4.4].

    BucketTree            generic: buckets are halved when they overflow
    PointTable(rest)      a hash table for equality, another directory for the rest:
                          with a SingleBucket it is the specialised directory, with a BucketTree the hybrid one
    SingleBucket          one bucket for all subscriptions

Every kind follows the rules of [BET 4.3]. A subscription is in the smallest bucket that encloses it. A bucket is split
before its cluster node is partitioned. Halves merge with their parent only while it is open. The directory moves
subscriptions only between its own buckets. The tree handles everything below a bucket.

Departs from [BET 4.4]: a bucket tree does not start with the whole domain. Halving 64 bits from the top would take
dozens of levels to separate small integers. Instead a bucket is no larger than the smallest one that encloses its
contents (the paper's minimal interval boundary). Levels with no subscriptions and only one half are omitted. The shape
of the tree still depends only on its contents, not on the order of insertion. A bucket with at most `capacity`
subscriptions is whole, and one with more is split.

Departs from [BET Table I]: v_min and v_max are not given but learned (see `domain`). So `x < 40` can be in a lower half
although there is no smallest number.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import TypeAlias

from matching.expressions.intervals import ValueSet
from matching.expressions.values import Value
from matching.indexes.be_tree.domain import Domain
from matching.indexes.be_tree.keys import PRESENT_KEY, Access, Bounds, enclosing_bucket, key_span
from matching.indexes.be_tree.nodes import ClusterNode, LeafNode, PartitionNode, Subscription

FEW_POINTS = 16
"""Up to this many values of an expressive event are looked up one by one."""


class Directory(ABC):
    """The buckets below one partition node."""

    @abstractmethod
    def find_or_create_bucket(self, access: Access) -> ClusterNode:
        """Returns the smallest bucket that encloses the access. Creates it if there is none."""

    @abstractmethod
    def collect_buckets(self, value: Value, key: int, into: list[ClusterNode]) -> None:
        """Adds the buckets that contain a value to `into`."""

    @abstractmethod
    def collect_buckets_of_set(self, values: ValueSet | None, into: list[ClusterNode]) -> None:
        """Adds the buckets that contain at least one of the values to `into`. None means all values."""

    @abstractmethod
    def clusters(self) -> Iterator[ClusterNode]:
        """Iterates over all buckets, ascending, each before its halves."""

    @abstractmethod
    def split(self, cluster: ClusterNode) -> list[ClusterNode]:
        """Halves a bucket and moves the subscriptions that a half encloses. Returns the halves that are not empty."""

    @abstractmethod
    def compact(self, cluster: ClusterNode) -> None:
        """Removes or merges the bucket and those above it after a subscription left. It may be removed already."""

    @abstractmethod
    def is_outgrown_by(self, access: Access) -> bool:
        """Whether the access is beyond the domain, so that stored subscriptions may have to change their bucket."""

    @abstractmethod
    def widen(self, access: Access) -> None:
        """Extends the domain to the ends of the access. Stored conditions without an end must be placed again."""

    def proves(self, access: Access) -> bool:
        """Whether every publication that reaches the bucket of this access satisfies the condition."""
        return access.is_proven_by_presence


NewDirectory: TypeAlias = Callable[[PartitionNode, int], Directory]
"""Creates the directory of a new partition node. The number is the capacity of a leaf."""


class SingleBucket(Directory):
    def __init__(self, owner: PartitionNode, capacity: int) -> None:
        self._owner = owner
        self._capacity = capacity
        self._cluster: ClusterNode | None = None

    def find_or_create_bucket(self, access: Access) -> ClusterNode:
        if self._cluster is None:
            self._cluster = ClusterNode(self._owner, (PRESENT_KEY, PRESENT_KEY), self._capacity)
        return self._cluster

    def collect_buckets(self, value: Value, key: int, into: list[ClusterNode]) -> None:
        if self._cluster is not None:
            into.append(self._cluster)

    def collect_buckets_of_set(self, values: ValueSet | None, into: list[ClusterNode]) -> None:
        into.extend(self.clusters())

    def clusters(self) -> Iterator[ClusterNode]:
        if self._cluster is not None:
            yield self._cluster

    def split(self, cluster: ClusterNode) -> list[ClusterNode]:
        raise TypeError("a single bucket is never split")

    def compact(self, cluster: ClusterNode) -> None:
        if cluster.is_empty and self._cluster is cluster:
            self._cluster = None

    def is_outgrown_by(self, access: Access) -> bool:
        return False

    def widen(self, access: Access) -> None:
        """Does nothing: one bucket encloses everything."""


class PointTable(Directory):
    def __init__(self, owner: PartitionNode, capacity: int, rest: Directory) -> None:
        self._owner = owner
        self._capacity = capacity
        self._rest = rest
        self._points: dict[Value, ClusterNode] = {}

    def find_or_create_bucket(self, access: Access) -> ClusterNode:
        if access.point is None:
            return self._rest.find_or_create_bucket(access)
        cluster = self._points.get(access.point)
        if cluster is None:
            assert access.low is not None
            cluster = ClusterNode(self._owner, (access.low, access.low), self._capacity, access.point)
            self._points[access.point] = cluster
        return cluster

    def collect_buckets(self, value: Value, key: int, into: list[ClusterNode]) -> None:
        cluster = self._points.get(value)
        if cluster is not None:
            into.append(cluster)
        self._rest.collect_buckets(value, key, into)

    def collect_buckets_of_set(self, values: ValueSet | None, into: list[ClusterNode]) -> None:
        few = None if values is None else values.points(at_most=FEW_POINTS)
        if few is not None:
            into.extend(self._points[point] for point in few if point in self._points)
        else:
            into.extend(cluster for point, cluster in self._points.items() if values is None or point in values)
        self._rest.collect_buckets_of_set(values, into)

    def clusters(self) -> Iterator[ClusterNode]:
        for point in sorted(self._points):
            yield self._points[point]
        yield from self._rest.clusters()

    def split(self, cluster: ClusterNode) -> list[ClusterNode]:
        return self._rest.split(cluster)

    def compact(self, cluster: ClusterNode) -> None:
        if cluster.point is None:
            self._rest.compact(cluster)
        elif cluster.is_empty and self._points.get(cluster.point) is cluster:
            del self._points[cluster.point]

    def is_outgrown_by(self, access: Access) -> bool:
        return access.point is None and self._rest.is_outgrown_by(access)

    def widen(self, access: Access) -> None:
        if access.point is None:
            self._rest.widen(access)

    def proves(self, access: Access) -> bool:
        return access.is_proven_by_point or self._rest.proves(access)


class BucketTree(Directory):
    def __init__(self, owner: PartitionNode, capacity: int) -> None:
        self._owner = owner
        self._capacity = capacity
        self._root: ClusterNode | None = None
        self._domain = Domain()

    def find_or_create_bucket(self, access: Access) -> ClusterNode:
        bounds = self._bounds(access)
        if self._root is None:
            self._root = ClusterNode(self._owner, bounds, self._capacity)
            return self._root
        node = self._root
        while True:
            if not node.encloses(bounds):
                together = enclosing_bucket(min(node.low, bounds[0]), max(node.high, bounds[1]))
                if self._has_room(node):
                    node.set_bounds(together)
                    return node
                node = self._insert_above(node, together)
            if not node.is_split or bounds == (node.low, node.high):
                return node
            half = node.left if bounds[1] <= node.middle else node.right
            if half is None:
                return self._add_below(node, bounds)
            node = half

    def _has_room(self, node: ClusterNode) -> bool:
        return not node.is_split and node.is_open and len(node.leaf.subscriptions) < self._capacity

    def _insert_above(self, node: ClusterNode, bounds: Bounds) -> ClusterNode:
        joint = ClusterNode(self._owner, bounds, self._capacity)
        joint.is_split = True
        self._replace(node, joint)
        self._link(joint, node)
        return joint

    def _add_below(self, above: ClusterNode, bounds: Bounds) -> ClusterNode:
        node = ClusterNode(self._owner, bounds, self._capacity)
        self._link(above, node)
        return node

    def _link(self, above: ClusterNode, node: ClusterNode) -> None:
        node.above = above
        if node.high <= above.middle:
            above.left = node
        else:
            above.right = node

    def _is_linked(self, node: ClusterNode) -> bool:
        """Whether the bucket is still part of the tree."""
        above = node.above
        return self._root is node if above is None else node is above.left or node is above.right

    def _replace(self, node: ClusterNode, successor: ClusterNode | None) -> None:
        """Replaces a bucket by another one, or by nothing, in the bucket above it."""
        above = node.above
        if successor is not None:
            successor.above = above
        if above is None:
            self._root = successor
        elif above.left is node:
            above.left = successor
        else:
            above.right = successor

    def collect_buckets(self, value: Value, key: int, into: list[ClusterNode]) -> None:
        position = self._domain.position(key)
        if position is None:
            return
        node = self._root
        while node is not None and node.low <= position <= node.high:
            into.append(node)
            node = node.left if position <= node.middle else node.right

    def collect_buckets_of_set(self, values: ValueSet | None, into: list[ClusterNode]) -> None:
        overlap = self._domain.overlap(*((None, None) if values is None else key_span(values)))
        if overlap is None:
            return
        first, last = overlap
        pending = [self._root]
        while pending:
            node = pending.pop()
            if node is not None and node.low <= last and first <= node.high:
                into.append(node)
                pending += (node.left, node.right)

    def clusters(self) -> Iterator[ClusterNode]:
        pending = [self._root]
        while pending:
            node = pending.pop()
            if node is not None:
                yield node
                pending += (node.right, node.left)

    def split(self, cluster: ClusterNode) -> list[ClusterNode]:
        cluster.is_split = True
        halves: dict[bool, list[Subscription]] = {True: [], False: []}
        for subscription in cluster.leaf.subscriptions.values():
            bounds = self._bounds_of(subscription)
            if bounds != (cluster.low, cluster.high):
                halves[bounds[1] <= cluster.middle].append(subscription)
        made = []
        for members in halves.values():
            if members:
                half = self._add_below(cluster, self._enclosing(members))
                for subscription in members:
                    cluster.leaf.move_to(half.leaf, subscription)
                made.append(half)
        return made

    def compact(self, cluster: ClusterNode) -> None:
        node: ClusterNode | None = cluster
        while node is not None:
            above = node.above
            if node.is_open and self._is_linked(node):
                self._compact_open(node)
            node = above

    def _compact_open(self, node: ClusterNode) -> None:
        """The merge rule: an open bucket merges with its halves only if they are open leaf buckets."""
        halves = [half for half in (node.left, node.right) if half is not None]
        leaves = [half.leaf for half in halves if half.is_open and not half.is_split]
        total = len(node.leaf.subscriptions) + sum(len(leaf.subscriptions) for leaf in leaves)
        if len(leaves) == len(halves) and (total <= self._capacity or not halves):
            self._merge(node, leaves)
        elif len(halves) == 1 and not node.leaf.subscriptions:
            self._replace(node, halves[0])

    def _merge(self, node: ClusterNode, leaves: list[LeafNode]) -> None:
        for leaf in leaves:
            for subscription in list(leaf.subscriptions.values()):
                leaf.move_to(node.leaf, subscription)
        node.left = node.right = None
        members = list(node.leaf.subscriptions.values())
        if not members:
            self._replace(node, None)
            return
        if len(members) <= self._capacity:
            node.is_split = False
        if not node.is_split:
            node.set_bounds(self._enclosing(members))

    def is_outgrown_by(self, access: Access) -> bool:
        return self._domain.is_outgrown_by(access)

    def widen(self, access: Access) -> None:
        self._domain.widen(access)

    def _bounds_of(self, subscription: Subscription) -> Bounds:
        return self._bounds(subscription.access(self._owner.dimension))

    def _bounds(self, access: Access) -> Bounds:
        return enclosing_bucket(*self._domain.interval(access))

    def _enclosing(self, members: list[Subscription]) -> Bounds:
        bounds = [self._bounds_of(subscription) for subscription in members]
        return enclosing_bucket(min(low for low, _ in bounds), max(high for _, high in bounds))


def generic_directory(owner: PartitionNode, capacity: int) -> Directory:
    return BucketTree(owner, capacity)


def specialised_directory(owner: PartitionNode, capacity: int) -> Directory:
    return PointTable(owner, capacity, SingleBucket(owner, capacity))


def hybrid_directory(owner: PartitionNode, capacity: int) -> Directory:
    return PointTable(owner, capacity, BucketTree(owner, capacity))


DIRECTORIES: dict[str, NewDirectory] = {
    "generic": generic_directory,
    "specialised": specialised_directory,
    "hybrid": hybrid_directory,
}
