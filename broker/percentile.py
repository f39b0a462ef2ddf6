"""Percentiles of measured values, by nearest rank."""

from __future__ import annotations

import math
from collections.abc import Sequence


def percentile(ascending: Sequence[float], share: float) -> float:
    """The smallest value such that at least this share of the values does not exceed it. 0 without values.

    Spark's `percentile_approx` and DuckDB's `quantile_disc` have the same definition.
    """
    return ascending[max(0, math.ceil(share * len(ascending)) - 1)] if ascending else 0.0
