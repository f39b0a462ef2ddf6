"""Describes a tree from outside: its counters, and a text that is the same for the same structure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from matching.expressions.values import Dimension, Value
from matching.indexes.be_tree.nodes import ClusterNode, PartitionNode


class Visit(NamedTuple):
    cluster: ClusterNode
    level: int
    """The number of nodes from the root to this one, including partition nodes and buckets."""
    depth: int
    """The number of partition nodes above."""


def visits(root: ClusterNode) -> Iterator[Visit]:
    """Iterates over all cluster nodes, each after those above it."""
    pending = [Visit(root, 1, 0)]
    while pending:
        visit = pending.pop()
        yield visit
        for partition in visit.cluster.partitions.values():
            pending += [
                Visit(cluster, visit.level + 1 + _buckets_down_to(cluster), visit.depth + 1)
                for cluster in partition.directory.clusters()
            ]


def _buckets_down_to(cluster: ClusterNode) -> int:
    count = 0
    bucket: ClusterNode | None = cluster
    while bucket is not None:
        count += 1
        bucket = bucket.above
    return count


def shape_of(root: ClusterNode) -> tuple[int, int, dict[str, int]]:
    """The number of nodes, the number of levels and the counters. The root of an empty tree does not count."""
    clusters = [] if root.is_empty else list(visits(root))
    leaves = [visit for visit in clusters if visit.cluster.leaf.subscriptions]
    partitions = sum(len(visit.cluster.partitions) for visit in clusters)
    details = {
        "partition nodes": partitions,
        "cluster nodes": len(clusters),
        "leaf nodes": len(leaves),
        "split buckets": sum(visit.cluster.is_split for visit in clusters),
        "largest leaf": max((len(visit.cluster.leaf.subscriptions) for visit in leaves), default=0),
        "most attributes on a path": max((visit.depth for visit in leaves), default=0),
        "in the root's leaf": len(root.leaf.subscriptions),
    }
    levels = max((visit.level + 1 for visit in leaves), default=0)
    return partitions + len(clusters) + len(leaves), levels, details


def outline(root: ClusterNode, name_of: Callable[[int], Dimension]) -> str:
    """One line for each cluster node, with its path and the ids in its leaf, sorted.

    Two trees have the same outline exactly if they have the same nodes with the same contents. The numbers of
    dimensions and the order of insertion are not part of it.
    """

    def step(partition: PartitionNode, cluster: ClusterNode) -> str:
        attribute, type_class = name_of(partition.dimension)
        bucket = f"{cluster.low:x}..{cluster.high:x}" if cluster.point is None else _point_text(cluster.point)
        return f"{attribute}:{type_class}[{bucket}{' split' if cluster.is_split else ''}]"

    lines = []
    for visit in visits(root):
        path = []
        cluster = visit.cluster
        while cluster.owner is not None:
            path.append(step(cluster.owner, cluster))
            cluster = cluster.owner.cluster
        lines.append("/".join(("root", *reversed(path))) + f" {sorted(visit.cluster.leaf.subscriptions)}")
    return "\n".join(sorted(lines))


def _point_text(point: Value) -> str:
    """Equal numbers have the same text: which of `0`, `-0.0` and `0.0` came first does not show."""
    return repr(int(point)) if isinstance(point, float) and point.is_integer() else repr(point)
