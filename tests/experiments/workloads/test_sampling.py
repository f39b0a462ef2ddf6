"""Proves that seed and name determine random streams, and that ranks are drawn with exactly the given probabilities."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.errors import WorkloadError
from experiments.workloads.sampling import RankSampler, sizes, zipf
from topologies.random_streams import stream


class ScriptedRandom(random.Random):
    """Returns the given numbers, and records the range of each draw."""

    def __init__(self, numbers: Sequence[int]) -> None:
        super().__init__()
        self._numbers = list(numbers)
        self.ranges: list[int] = []

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        assert stop is None
        self.ranges.append(start)
        return self._numbers.pop(0)


def test_a_stream_is_fixed_by_seed_and_name() -> None:
    assert [stream(7, "links").getrandbits(32) for _ in range(2)] == [stream(7, "links").getrandbits(32)] * 2
    drawn = {stream(seed, name).getrandbits(64) for seed in (0, 1, 11) for name in ("a", "1/a", "b")}
    assert len(drawn) == 9


def test_each_rank_owns_as_many_points_as_its_weight() -> None:
    sampler = RankSampler([1, 2, 3])
    assert [sampler.draw(ScriptedRandom([point])) for point in range(6)] == [0, 1, 1, 2, 2, 2]


def test_drawing_without_replacement_is_exactly_successive_sampling() -> None:
    weights = [1, 2, 3]
    probability: Counter[tuple[int, ...]] = Counter()
    for first in range(6):
        remaining = 6 - weights[RankSampler(weights).draw(ScriptedRandom([first]))]
        for second in range(remaining):
            script = ScriptedRandom([first, second])
            pair = tuple(RankSampler(weights).draw_distinct(script, 2))
            assert script.ranges == [6, remaining]
            probability[pair] += Fraction(1, 6 * remaining)  # type: ignore[assignment]
    assert probability == {
        (one, other): Fraction(weights[one], 6) * Fraction(weights[other], 6 - weights[one])
        for one in range(3)
        for other in range(3)
        if one != other
    }


@given(st.integers(1, 60), st.floats(0, 20), st.data())
def test_distinct_ranks_are_distinct_however_steep_the_distribution(
    count: int, exponent: float, data: st.DataObject
) -> None:
    wanted = data.draw(st.integers(0, count))
    ranks = zipf(count, exponent).draw_distinct(stream(1, "test"), wanted)
    assert len(set(ranks)) == wanted
    assert all(0 <= rank < count for rank in ranks)


def test_more_distinct_ranks_than_there_are_cannot_be_drawn() -> None:
    with pytest.raises(WorkloadError, match="4 different ranks of 3"):
        zipf(3, 0).draw_distinct(stream(1, "test"), 4)


def test_zipf_weights_fall_with_the_power_of_the_rank() -> None:
    rng = stream(1, "test")
    sampler = zipf(100, 1.0)
    drawn = Counter(sampler.draw(rng) for _ in range(50_000))
    assert drawn[0] / drawn[1] == pytest.approx(2, rel=0.1)
    assert drawn[0] / drawn[9] == pytest.approx(10, rel=0.2)


def test_zipf_of_exponent_0_is_uniform() -> None:
    sampler = zipf(4, 0)
    point = 2**40
    assert [sampler.draw(ScriptedRandom([number * point])) for number in range(4)] == [0, 1, 2, 3]


@pytest.mark.parametrize(("mean", "largest"), [(1, 1), (1, 9), (2.78, 12), (8, 56), (5, 9)])
def test_sizes_have_the_requested_mean(mean: float, largest: int) -> None:
    rng = stream(1, "test")
    sampler = sizes(mean, largest)
    drawn = [sampler.draw(rng) + 1 for _ in range(20_000)]
    assert sum(drawn) / len(drawn) == pytest.approx(mean, rel=0.03)
    assert min(drawn) >= 1
    assert max(drawn) <= largest


def test_a_mean_size_above_the_middle_is_refused() -> None:
    with pytest.raises(WorkloadError, match="mean of 6"):
        sizes(6, 10)
