"""Percentiles are values that occurred, by nearest rank."""

from __future__ import annotations

import pytest

from broker.percentile import percentile


@pytest.mark.parametrize(
    ("share", "expected"), [(0.0, 1), (0.25, 1), (0.26, 2), (0.5, 2), (0.75, 3), (0.99, 4), (1.0, 4)]
)
def test_a_percentile_is_the_smallest_value_that_the_share_does_not_exceed(share: float, expected: int) -> None:
    assert percentile([1, 2, 3, 4], share) == expected


def test_without_values_a_percentile_is_zero() -> None:
    assert percentile([], 0.5) == 0.0
