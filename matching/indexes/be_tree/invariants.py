"""The invariants of a tree between any two operations. Tests check them after each operation."""

from __future__ import annotations

from matching.indexes.be_tree.inspection import visits
from matching.indexes.be_tree.keys import Access
from matching.indexes.be_tree.nodes import ClusterNode, PartitionNode, Subscription
from matching.indexes.be_tree.tree import Tree


def check_invariants(tree: Tree, stored: dict[int, Subscription]) -> None:
    """Raises AssertionError with the violated invariant and its place."""
    found: dict[int, Subscription] = {}
    for visit in visits(tree.root):
        cluster = visit.cluster
        where = f"cluster node {cluster.low:x}..{cluster.high:x} at level {visit.level}"
        _check_leaf(tree, cluster, where)
        _check_bucket(tree, cluster, where)
        for dimension, partition in cluster.partitions.items():
            _check_partition(tree, cluster, dimension, partition, where)
        for id, subscription in cluster.leaf.subscriptions.items():
            _require(id not in found, f"{where}: subscription {id} is in two leaves")
            found[id] = subscription
            _check_place(tree, cluster, subscription, where)
    _require(found == stored, "the leaves hold what was inserted and not removed")


def _require(is_true: bool, statement: str) -> None:
    if not is_true:
        raise AssertionError(f"does not hold: {statement}")


def _check_leaf(tree: Tree, cluster: ClusterNode, where: str) -> None:
    leaf = cluster.leaf
    _require(leaf.cluster is cluster, f"{where}: the leaf knows its cluster node")
    _require(not leaf.is_overflowing, f"{where}: {len(leaf.subscriptions)} fit into {leaf.capacity}")
    _require(
        leaf.capacity % tree.policies.max_capacity == 0, f"{where}: the capacity {leaf.capacity} is in units of a leaf"
    )
    if cluster.owner is not None:
        _require(not cluster.is_empty, f"{where}: it is not empty")


def _check_bucket(tree: Tree, cluster: ClusterNode, where: str) -> None:
    if cluster.owner is None:
        return
    if not cluster.is_split:
        _require(cluster.left is None and cluster.right is None, f"{where}: a leaf bucket has no halves")
        if not cluster.is_atomic:
            _require(cluster.is_open, f"{where}: a leaf bucket that could be split is not partitioned")
            _require(len(cluster.leaf.subscriptions) <= tree.policies.max_capacity, f"{where}: it is not extended")
    for half, first, last in (
        (cluster.left, cluster.low, cluster.middle),
        (cluster.right, cluster.middle + 1, cluster.high),
    ):
        if half is not None:
            _require(half.above is cluster, f"{where}: a half knows the bucket above")
            _require(first <= half.low and half.high <= last, f"{where}: halves are within their side")
    if cluster.is_split and cluster.is_open and not cluster.leaf.subscriptions:
        _require(cluster.left is not None and cluster.right is not None, f"{where}: no level that only passes through")


def _check_partition(tree: Tree, cluster: ClusterNode, dimension: int, partition: PartitionNode, where: str) -> None:
    _require(partition.cluster is cluster and partition.dimension == dimension, f"{where}: partitions know their place")
    used = [above.dimension for above in cluster.path()]
    _require(dimension not in used, f"{where}: dimension {dimension} is used once on a path")
    _require(partition.size >= tree.policies.min_partition, f"{where}: partition of {partition.size} is large enough")
    below = partition.subscriptions()
    sums = (len(below), sum(each.subsumed for each in below), sum(each.covered for each in below))
    kept = (partition.size, partition.subsumed, partition.covered)
    _require(kept == sums, f"{where}: partition {dimension} counts {kept}, has {sums}")


def _check_place(tree: Tree, cluster: ClusterNode, subscription: Subscription, where: str) -> None:
    _require(subscription.leaf is cluster.leaf, f"{where}: subscription {subscription.id} knows its leaf")
    bucket = cluster
    for partition in cluster.path():
        requirement = subscription.requirements.get(partition.dimension)
        if requirement is None:
            raise AssertionError(f"{where}: subscription {subscription.id} has no condition on {partition.dimension}")
        _check_bucket_of(partition, bucket, requirement.access, where)
        bucket = partition.cluster
    eligible = tree.policies.preference.eligible(subscription, [each.dimension for each in cluster.path()])
    _require(
        not any(dimension in cluster.partitions for dimension in eligible),
        f"{where}: subscription {subscription.id} is in no leaf beside a partition for it",
    )


def _check_bucket_of(partition: PartitionNode, bucket: ClusterNode, access: Access, where: str) -> None:
    """Checks that the subscription is in the right bucket. The lookup must not create one."""
    before = list(partition.directory.clusters())
    _require(not partition.directory.is_outgrown_by(access), f"{where}: the domain encloses all ends")
    _require(
        partition.directory.find_or_create_bucket(access) is bucket,
        f"{where}: it is in the smallest bucket that encloses it",
    )
    _require(list(partition.directory.clusters()) == before, f"{where}: its home was there")
