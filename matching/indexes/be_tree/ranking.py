"""The cost-based ranking, which decides by which attribute to partition and where to insert [BET 5.1].

The rank of a node is its gain minus its loss. The gain is the number of conditions on the path that need no evaluation.
The loss is the number of discarded evaluations below the node. Both are sums over the subscriptions below. So every
partition node stores the sums, and equation 10 becomes equation 14 at each of them.

Departs from [BET 5.1]: a condition on the path counts as subsumed if it is an equality, otherwise as covered. Any other
condition is equivalent to its bucket only by accident, and buckets change their bounds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence

from matching.expressions.values import Value
from matching.indexes.be_tree.nodes import ClusterNode, LeafNode, PartitionNode, Subscription

WINDOW_SHARE = 10
"""A window has a tenth as many operations as there are subscriptions below [BET 8.1]."""
PUBLICATIONS_SHARE = 4
"""At least a quarter of the shortest window must be publications, because insertions measure no loss."""


class Weight(ABC):
    """Beta: the weight of a covered condition. The weight of a subsumed condition is one minus beta."""

    beta: float

    @abstractmethod
    def observe(self, leaves: Sequence[LeafNode], values: dict[int, Value]) -> None:
        """Updates beta from the leaves that a publication reached."""


class FixedWeight(Weight):
    def __init__(self, beta: float) -> None:
        self.beta = beta

    def observe(self, leaves: Sequence[LeafNode], values: dict[int, Value]) -> None:
        """Does nothing."""


class TunedWeight(Weight):
    """Beta decreases with the rate at which covered conditions lead to false candidates [BET eq. 15].

    One candidate of each publication is sampled. The weight of older samples halves with each further window.
    """

    SAMPLES = 256

    def __init__(self) -> None:
        self.beta = 0.5
        self._samples = 0.0
        self._false = 0.0
        self._turn = 0

    def observe(self, leaves: Sequence[LeafNode], values: dict[int, Value]) -> None:
        if not leaves:
            return
        self._turn += 1
        leaf = leaves[self._turn % len(leaves)]
        candidate = next(iter(leaf.subscriptions.values()))
        if not candidate.covered:
            return
        self._samples += 1
        self._false += not _satisfies_path(candidate, leaf, values)
        if self._samples >= self.SAMPLES:
            self.beta = 0.5 - self._false / self._samples / 2
            self._samples /= 2
            self._false /= 2


def _satisfies_path(candidate: Subscription, leaf: LeafNode, values: dict[int, Value]) -> bool:
    for partition in leaf.cluster.path():
        condition = candidate.requirements[partition.dimension].condition
        value = values[partition.dimension]
        if not all(predicate.is_true_for(value) for predicate in condition.predicates):
            return False
    return True


class LossEstimate(ABC):
    """Estimates the loss of a partition that does not exist yet."""

    @abstractmethod
    def of(self, dimension: int, members: Collection[Subscription]) -> float: ...


class OptimisticLoss(LossEstimate):
    """Estimates no loss. Popular attributes are chosen, and measured losses correct the choice later."""

    def of(self, dimension: int, members: Collection[Subscription]) -> float:
        return 0.0


class HistogramLoss(LossEstimate):
    """Estimates the number of false candidates by the average number of members with the same interval of keys."""

    def of(self, dimension: int, members: Collection[Subscription]) -> float:
        accesses = [subscription.access(dimension) for subscription in members]
        return len(accesses) / len({(access.low, access.high) for access in accesses})


class Ranking:
    def __init__(self, alpha: float, weight: Weight, estimate: LossEstimate, shortest_window: int) -> None:
        self.weight = weight
        self._alpha = alpha
        self._estimate = estimate
        self._shortest_window = shortest_window
        self._fewest_publications = max(1, shortest_window // PUBLICATIONS_SHARE)

    def is_window_over(self, partition: PartitionNode) -> bool:
        operations = max(self._shortest_window, partition.size // WINDOW_SHARE)
        return partition.loss.is_over(operations, self._fewest_publications)

    def of_partition(self, partition: PartitionNode) -> float:
        # A partition that no publication reaches any more is not reviewed, so its stored loss may be outdated.
        loss = partition.loss.running() if self.is_window_over(partition) else partition.loss.per_publication
        return self.rank(partition.subsumed, partition.covered, loss)

    def of_candidate(self, cluster: ClusterNode, dimension: int, members: Collection[Subscription]) -> float:
        """The rank of partitioning the leaf of a cluster node by the dimension."""
        subsumed = sum(subscription.is_point(dimension) for subscription in members)
        loss = self._estimate.of(dimension, members)
        if cluster.recycled is not None and dimension in cluster.recycled:
            loss = cluster.recycled[dimension].loss_per_subscription * len(members)
        return self.rank(subsumed, len(members) - subsumed, loss)

    def rank(self, subsumed: int, covered: int, loss: float) -> float:
        gain = (1 - self.weight.beta) * subsumed + self.weight.beta * covered
        return (1 - self._alpha) * gain - self._alpha * loss


class Preference(ABC):
    """The order in which the dimensions of a subscription may be used for partitioning."""

    @abstractmethod
    def eligible(self, subscription: Subscription, used: Collection[int]) -> list[int]:
        """The dimensions that are not used on the path yet and may be used now."""


class AnyCondition(Preference):
    def eligible(self, subscription: Subscription, used: Collection[int]) -> list[int]:
        return [dimension for dimension in subscription.requirements if dimension not in used]


class EqualityFirst(Preference):
    """All equalities are used before other conditions [BET 8.5]."""

    def eligible(self, subscription: Subscription, used: Collection[int]) -> list[int]:
        points = [dimension for dimension in subscription.points if dimension not in used]
        return points or [dimension for dimension in subscription.requirements if dimension not in used]
