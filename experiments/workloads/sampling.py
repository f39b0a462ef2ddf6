"""Sampling of ranks by the exact inverse of their cumulative distribution, in integers.

Weights are integers, so that a rank's probability is exactly its weight over the total. Weights have 40 bits, so that
rounding removes the last bit of `pow`, which differs between platforms.
"""

from __future__ import annotations

import random
from bisect import bisect_right, insort
from collections.abc import Sequence
from itertools import accumulate

from experiments.errors import WorkloadError

_SCALE = 2**40


class RankSampler:
    """Draws ranks 0 to n - 1, each with a probability proportional to its weight."""

    __slots__ = ("_cumulative", "_total", "_weights")

    def __init__(self, weights: Sequence[int]) -> None:
        self._weights = list(weights)
        self._cumulative = list(accumulate(weights))
        self._total = self._cumulative[-1]

    def draw(self, rng: random.Random) -> int:
        return bisect_right(self._cumulative, rng.randrange(self._total))

    def draw_distinct(self, rng: random.Random, count: int) -> list[int]:
        """Draws distinct ranks, one after the other, without replacement. All weights must be positive.

        It skips the weights of ranks already drawn. Drawing again until a new rank appears would never end with a steep
        Zipf distribution. Time: O(count²).
        """
        if count > len(self._weights):
            raise WorkloadError(f"cannot draw {count} different ranks of {len(self._weights)}")
        drawn: list[int] = []
        excluded: list[int] = []
        remaining = self._total
        for _ in range(count):
            point = rng.randrange(remaining)
            for rank in excluded:
                if point < self._cumulative[rank] - self._weights[rank]:
                    break
                point += self._weights[rank]
            rank = bisect_right(self._cumulative, point)
            insort(excluded, rank)
            drawn.append(rank)
            remaining -= self._weights[rank]
        return drawn


def zipf(count: int, exponent: float) -> RankSampler:
    """Draws rank r (from 0) in proportion to `1 / (r + 1)**exponent`. Exponent 0 is uniform. Every rank is possible."""
    return RankSampler([max(1, round(_SCALE * float(rank) ** -exponent)) for rank in range(1, count + 1)])


def sizes(mean: float, largest: int) -> RankSampler:
    """Draws sizes 1 to `largest`, as ranks from 0, from a geometric distribution with the mean size `mean`."""
    if not 1 <= mean <= (1 + largest) / 2:
        raise WorkloadError(f"sizes of 1 to {largest} cannot fall towards a mean of {mean}")
    low, high = 0.0, 1.0
    for _ in range(60):
        ratio = (low + high) / 2
        if _mean_size(_geometric(ratio, largest)) < mean:
            low = ratio
        else:
            high = ratio
    return RankSampler([round(_SCALE * weight) for weight in _geometric(high, largest)])


def _geometric(ratio: float, count: int) -> list[float]:
    return list(accumulate([1.0] + [ratio] * (count - 1), lambda weight, factor: weight * factor))


def _mean_size(weights: Sequence[float]) -> float:
    return sum(size * weight for size, weight in enumerate(weights, start=1)) / sum(weights)
