"""Matching: the leaves that an event reaches [BET 7.1].

An event is a publication, or an expression (see `expressive`). They differ in how they go through a directory, and in
nothing else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection

from matching.expressions.values import Value
from matching.indexes.be_tree.nodes import ClusterNode, LeafNode, PartitionNode


class Event(ABC):
    dimensions: Collection[int]
    """The dimensions on which the event says something."""

    @abstractmethod
    def collect_buckets(self, partition: PartitionNode, into: list[ClusterNode]) -> None:
        """Adds the buckets of a partition node, on a dimension of the event, that what matches it can be below."""


class PointEvent(Event):
    """A publication: one value on each dimension."""

    def __init__(self, located: dict[int, tuple[Value, int]]) -> None:
        self.dimensions = located.keys()
        self._located = located

    def collect_buckets(self, partition: PartitionNode, into: list[ClusterNode]) -> None:
        value, key = self._located[partition.dimension]
        partition.directory.collect_buckets(value, key, into)


def reached_leaves(root: ClusterNode, event: Event) -> list[LeafNode]:
    """Algorithms 1 and 2, for all paths at once. Leaves without subscriptions are left out."""
    leaves: list[LeafNode] = []
    pending = [root]
    dimensions = event.dimensions
    while pending:
        cluster = pending.pop()
        if cluster.leaf.subscriptions:
            leaves.append(cluster.leaf)
        partitions = cluster.partitions
        if not partitions:
            continue
        # Both are hash tables: the smaller one is gone through.
        if len(partitions) < len(dimensions):
            for dimension, partition in partitions.items():
                if dimension in dimensions:
                    event.collect_buckets(partition, pending)
        else:
            for dimension in dimensions:
                if dimension in partitions:
                    event.collect_buckets(partitions[dimension], pending)
    return leaves
