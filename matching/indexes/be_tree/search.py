"""Matching: finds the leaves that an event reaches [BET 7.1].

An event is a publication or an expression (see `expressive`). The two differ only in how they search a directory.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection

from matching.expressions.values import Value
from matching.indexes.be_tree.nodes import ClusterNode, LeafNode, PartitionNode


class Event(ABC):
    """A publication, or an expression in the role of one."""

    dimensions: Collection[int]
    """The dimensions of the event."""

    @abstractmethod
    def collect_buckets(self, partition: PartitionNode, into: list[ClusterNode]) -> None:
        """Adds the buckets of a partition node that may contain matching subscriptions.

        The dimension of the partition node must be one of the event's.
        """


class PointEvent(Event):
    """A publication: one value for each dimension."""

    def __init__(self, located: dict[int, tuple[Value, int]]) -> None:
        self.dimensions = located.keys()
        self._located = located

    def collect_buckets(self, partition: PartitionNode, into: list[ClusterNode]) -> None:
        value, key = self._located[partition.dimension]
        partition.directory.collect_buckets(value, key, into)


def reached_leaves(root: ClusterNode, event: Event) -> list[LeafNode]:
    """Algorithms 1 and 2, for all paths at once. Leaves without subscriptions are omitted."""
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
        # Both are hash tables, so the loop runs over the smaller one.
        if len(partitions) < len(dimensions):
            for dimension, partition in partitions.items():
                if dimension in dimensions:
                    event.collect_buckets(partition, pending)
        else:
            for dimension in dimensions:
                if dimension in partitions:
                    event.collect_buckets(partitions[dimension], pending)
    return leaves
