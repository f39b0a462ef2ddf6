"""Insertion, space partitioning, space clustering and deletion in the tree [BET 4, 7].

Overflowing leaves are split one after the other from a list of cluster nodes, without recursion. A hundred equal
subscriptions with a thousand conditions make a path that is a thousand partition nodes deep.

Departs from [BET eq. 9]: a leaf that cannot be partitioned may exceed the capacity. It then gets a quarter of its size
as additional capacity. With a constant amount, every few insertions would scan the whole leaf again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from matching.expressions.values import Dimension
from matching.indexes.be_tree.adaptation import Choice, Reinsertion
from matching.indexes.be_tree.directories import NewDirectory
from matching.indexes.be_tree.evaluation import Evaluation
from matching.indexes.be_tree.keys import PRESENT_KEY
from matching.indexes.be_tree.nodes import (
    Clock,
    ClusterNode,
    LeafNode,
    LossWindow,
    PartitionNode,
    RecycledPartition,
    Subscription,
)
from matching.indexes.be_tree.ranking import Preference, Ranking

MAX_WINDOW_FACTOR = 1 << 16


@dataclass(frozen=True, slots=True)
class Policies:
    """The parameters and strategies that are chosen when an index is created."""

    max_capacity: int
    min_partition: int
    new_directory: NewDirectory
    ranking: Ranking
    preference: Preference
    choice: Choice
    reinsertion: Reinsertion
    evaluation: Evaluation


class Tree:
    def __init__(self, policies: Policies, clock: Clock, name_of: Callable[[int], Dimension]) -> None:
        self.policies = policies
        self._clock = clock
        self._name_of = name_of
        # The root has no bucket to halve. It is partitioned when it overflows, like an atomic bucket.
        self.root = ClusterNode(None, (PRESENT_KEY, PRESENT_KEY), policies.max_capacity)
        self._is_reinserting = False

    def insert(self, subscription: Subscription) -> None:
        pending: list[ClusterNode] = []
        self._place(subscription, self.root, pending)
        self._split_overflowing(pending)

    def delete(self, subscription: Subscription) -> None:
        self._contract(self._remove_from_leaf(subscription))

    def recycle(self, partition: PartitionNode) -> None:
        """Removes a partition and reinserts its subscriptions, unless it is empty."""
        cluster = partition.cluster
        if not partition.size:
            return
        if cluster.recycled is None:
            cluster.recycled = {}
        window_factor = min(2 * partition.loss.window_factor, MAX_WINDOW_FACTOR)
        loss_per_subscription = partition.loss.per_publication / partition.size
        cluster.recycled[partition.dimension] = RecycledPartition(loss_per_subscription, window_factor)
        self._dissolve(partition)
        self._contract(cluster)

    def capacity_for(self, size: int) -> int:
        """The capacity of a leaf of this size that cannot be partitioned."""
        one = self.policies.max_capacity
        if size <= one:
            return one
        return -(-(size + size // 4) // one) * one

    def _place(self, subscription: Subscription, cluster: ClusterNode, pending: list[ClusterNode]) -> None:
        """Adds the subscription to a leaf below the partition nodes that rank highest (algorithm 3).

        The leaf may overflow, so its cluster node is added to `pending`.
        """
        used = {partition.dimension for partition in cluster.path()}
        while cluster.partitions:
            eligible = self.policies.preference.eligible(subscription, used)
            partitions = [cluster.partitions[dimension] for dimension in eligible if dimension in cluster.partitions]
            if not partitions:
                break
            partition = self.policies.choice.choose(partitions)
            used.add(partition.dimension)
            cluster = self._bucket_for(subscription, partition, pending)
        self._add_to_leaf(subscription, cluster.leaf)
        pending.append(cluster)

    def _bucket_for(
        self, subscription: Subscription, partition: PartitionNode, pending: list[ClusterNode]
    ) -> ClusterNode:
        access = subscription.access(partition.dimension)
        if partition.directory.is_outgrown_by(access):
            members = partition.subscriptions()
            if any(not member.access(partition.dimension).is_bounded for member in members):
                self._rebuild(partition, members, subscription, pending)
        partition.directory.widen(access)
        return partition.directory.find_or_create_bucket(access)

    def _rebuild(
        self, partition: PartitionNode, members: list[Subscription], added: Subscription, pending: list[ClusterNode]
    ) -> None:
        """Rebuilds the directory for a larger domain.

        A condition without an end extends to the end of the domain, so it may belong to another bucket then.
        """
        for member in members:
            self._remove_from_leaf(member)
        partition.directory = self.policies.new_directory(partition, self.policies.max_capacity)
        for member in (*members, added):
            partition.directory.widen(member.access(partition.dimension))
        for member in members:
            cluster = partition.directory.find_or_create_bucket(member.access(partition.dimension))
            self._add_to_leaf(member, cluster.leaf)
            pending.append(cluster)

    def _add_to_leaf(self, subscription: Subscription, leaf: LeafNode) -> None:
        leaf.put(subscription)
        path = list(leaf.cluster.path())
        unverified = dict(subscription.requirements)
        covered = []
        for partition in path:
            requirement = unverified.pop(partition.dimension)
            if not partition.directory.proves(requirement.access):
                covered.append(requirement)
        left = [requirement.prepared for requirement in (*unverified.values(), *covered)]
        subscription.checks = self.policies.evaluation.arrange(left)
        subscription.subsumed = sum(subscription.is_point(partition.dimension) for partition in path)
        subscription.covered = len(path) - subscription.subsumed
        for partition in path:
            partition.size += 1
            partition.subsumed += subscription.subsumed
            partition.covered += subscription.covered

    def _remove_from_leaf(self, subscription: Subscription) -> ClusterNode:
        """Removes the subscription from its leaf and from the sums of the partition nodes above."""
        leaf = subscription.leaf
        assert leaf is not None
        del leaf.subscriptions[subscription.id]
        for partition in leaf.cluster.path():
            partition.size -= 1
            partition.subsumed -= subscription.subsumed
            partition.covered -= subscription.covered
        return leaf.cluster

    def _split_overflowing(self, pending: list[ClusterNode]) -> None:
        """Splits leaves until none overflows. A cluster node that was removed meanwhile is empty, so it is skipped."""
        while pending:
            cluster = pending.pop()
            if cluster.leaf.is_overflowing:
                self._reinsert_some(cluster.leaf)
            if cluster.leaf.is_overflowing:
                self._cut(cluster, pending)

    def _cut(self, cluster: ClusterNode, pending: list[ClusterNode]) -> None:
        """Halves a bucket if possible. Otherwise partitions its leaf (algorithm 6)."""
        if cluster.owner is None or cluster.is_atomic or cluster.is_split:
            self._partition(cluster, pending)
        else:
            pending.append(cluster)
            pending.extend(cluster.owner.directory.split(cluster))

    def _partition(self, cluster: ClusterNode, pending: list[ClusterNode]) -> None:
        """Partitions by the attribute that ranks highest, until the rest fits in one leaf (algorithm 5)."""
        leaf = cluster.leaf
        used = {partition.dimension for partition in cluster.path()}
        groups = self._groups(leaf, used)
        while groups and len(leaf.subscriptions) > self.policies.max_capacity:
            dimension = self._best_dimension(cluster, groups)
            members = list(groups.pop(dimension).values())
            partition = self._new_partition(cluster, dimension, members)
            for member in members:
                for other in self.policies.preference.eligible(member, used):
                    self._remove_from_group(groups, other, member)
                self._remove_from_leaf(member)
                self._place(member, self._bucket_for(member, partition, pending), pending)
        leaf.capacity = self.capacity_for(len(leaf.subscriptions))

    def _groups(self, leaf: LeafNode, used: set[int]) -> dict[int, dict[int, Subscription]]:
        """The subscriptions of the leaf by dimension, for each dimension that has enough for a partition."""
        groups: dict[int, dict[int, Subscription]] = {}
        for id, subscription in leaf.subscriptions.items():
            for dimension in self.policies.preference.eligible(subscription, used):
                groups.setdefault(dimension, {})[id] = subscription
        return {number: group for number, group in groups.items() if len(group) >= self.policies.min_partition}

    def _remove_from_group(
        self, groups: dict[int, dict[int, Subscription]], dimension: int, member: Subscription
    ) -> None:
        group = groups.get(dimension)
        if group is not None:
            del group[member.id]
            if len(group) < self.policies.min_partition:
                del groups[dimension]

    def _best_dimension(self, cluster: ClusterNode, groups: dict[int, dict[int, Subscription]]) -> int:
        rank = self.policies.ranking.of_candidate
        ranks = {number: rank(cluster, number, group.values()) for number, group in groups.items()}
        return min(ranks, key=lambda number: (-ranks[number], self._name_of(number)))

    def _new_partition(self, cluster: ClusterNode, dimension: int, members: list[Subscription]) -> PartitionNode:
        recycled = None if cluster.recycled is None else cluster.recycled.get(dimension)
        window = LossWindow(self._clock, window_factor=1 if recycled is None else recycled.window_factor)
        partition = PartitionNode(cluster, dimension, window)
        partition.directory = self.policies.new_directory(partition, self.policies.max_capacity)
        for member in members:
            partition.directory.widen(member.access(dimension))
        cluster.partitions[dimension] = partition
        return partition

    def _reinsert_some(self, leaf: LeafNode) -> None:
        if self._is_reinserting:
            return
        self._is_reinserting = True
        for subscription in self.policies.reinsertion.select(leaf):
            self._contract(self._remove_from_leaf(subscription))
            self.insert(subscription)
        self._is_reinserting = False

    def _contract(self, cluster: ClusterNode) -> None:
        """Removes small partitions, merges buckets and removes empty nodes after a subscription left a cluster node."""
        while True:
            weak = [each for each in cluster.path() if each.size < self.policies.min_partition and _is_attached(each)]
            if not weak:
                self._compact(cluster)
                return
            self._dissolve(weak[-1])
            cluster = weak[-1].cluster

    def _dissolve(self, partition: PartitionNode) -> None:
        """Removes a partition node. Reinserts all subscriptions below it before any leaf is split."""
        members = partition.subscriptions()
        for member in members:
            self._remove_from_leaf(member)
        del partition.cluster.partitions[partition.dimension]
        self._compact(partition.cluster)
        pending: list[ClusterNode] = []
        for member in members:
            self._place(member, self.root, pending)
        self._split_overflowing(pending)

    def _compact(self, cluster: ClusterNode) -> None:
        leaf = cluster.leaf
        leaf.capacity = min(leaf.capacity, self.capacity_for(len(leaf.subscriptions)))
        if cluster.owner is not None:
            cluster.owner.directory.compact(cluster)


def _is_attached(partition: PartitionNode) -> bool:
    return partition.cluster.partitions.get(partition.dimension) is partition
