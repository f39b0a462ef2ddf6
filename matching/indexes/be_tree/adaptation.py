"""Adapts the tree to a changing workload: recycling, reinsertion, exploration [BET 5.2]. Each can be switched off.

Departs from [BET 5.2]: only partition nodes are monitored, not every node. The attribute of its partition node
determines the place of a leaf or a cluster node. Reinserting it alone would lead to the same place again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from random import Random

from matching.indexes.be_tree.nodes import LeafNode, PartitionNode, Subscription
from matching.indexes.be_tree.ranking import Ranking


class Recycling(ABC):
    """Selects the partitions to remove after a match."""

    @abstractmethod
    def review(self, leaves: Sequence[LeafNode], discarded: Sequence[int]) -> list[PartitionNode]:
        """Adds the discarded evaluations to the loss of the partition nodes above the reached leaves.

        Returns the partition nodes that do not pay, outer ones before inner ones.
        """


class NoRecycling(Recycling):
    def review(self, leaves: Sequence[LeafNode], discarded: Sequence[int]) -> list[PartitionNode]:
        return []


class RankRecycling(Recycling):
    """Selects a partition if its rank is below a threshold at the end of a window."""

    def __init__(self, ranking: Ranking, threshold: float) -> None:
        self._ranking = ranking
        self._threshold = threshold

    def review(self, leaves: Sequence[LeafNode], discarded: Sequence[int]) -> list[PartitionNode]:
        charged: dict[PartitionNode, int] = {}
        for leaf, count in zip(leaves, discarded, strict=True):
            if count:
                for partition in leaf.cluster.path():
                    charged[partition] = charged.get(partition, 0) + count
        unprofitable: list[PartitionNode] = []
        for partition, count in charged.items():
            partition.loss.discarded += count
            if self._ranking.is_window_over(partition) and self._close_window(partition):
                unprofitable.append(partition)
        return sorted(unprofitable, key=_depth)

    def _close_window(self, partition: PartitionNode) -> bool:
        """Closes the window of the partition's losses. Returns whether the partition does not pay."""
        partition.loss.close()
        if self._ranking.of_partition(partition) < self._threshold:
            return True
        if partition.cluster.recycled is not None:
            partition.cluster.recycled.pop(partition.dimension, None)
        return False


def _depth(partition: PartitionNode) -> int:
    return sum(1 for _ in partition.cluster.path())


class Reinsertion(ABC):
    """Selects the subscriptions of an overflowing leaf that are reinserted before the leaf is split."""

    @abstractmethod
    def select(self, leaf: LeafNode) -> list[Subscription]: ...


class NoReinsertion(Reinsertion):
    def select(self, leaf: LeafNode) -> list[Subscription]:
        return []


class RandomReinsertion(Reinsertion):
    def __init__(self, ratio: float, random: Random) -> None:
        self._ratio = ratio
        self._random = random

    def select(self, leaf: LeafNode) -> list[Subscription]:
        count = max(1, round(self._ratio * len(leaf.subscriptions)))
        return self._random.sample(list(leaf.subscriptions.values()), count)


class Choice(ABC):
    """Selects the partition node for a subscription."""

    @abstractmethod
    def choose(self, partitions: Sequence[PartitionNode]) -> PartitionNode: ...


class Exploitation(Choice):
    """Selects the partition node that ranks highest."""

    def __init__(self, ranking: Ranking) -> None:
        self._ranking = ranking

    def choose(self, partitions: Sequence[PartitionNode]) -> PartitionNode:
        return partitions[0] if len(partitions) == 1 else max(partitions, key=self._ranking.of_partition)


class Exploration(Choice):
    """Selects the partition node that ranks highest, or with some probability a random one."""

    def __init__(self, ranking: Ranking, ratio: float, random: Random) -> None:
        self._best = Exploitation(ranking)
        self._ratio = ratio
        self._random = random

    def choose(self, partitions: Sequence[PartitionNode]) -> PartitionNode:
        if self._random.random() < self._ratio:
            return self._random.choice(partitions)
        return self._best.choose(partitions)
