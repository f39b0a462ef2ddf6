"""Every protocol delivers what is owed, once, on random overlays with churn and with faults."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routing.registry import names
from tests.broker.scenario import Scenario

MATCHERS = ("auto", "pst-bloom", "be-tree")
SEEDS = st.integers(0, 2**31)


@pytest.mark.parametrize("is_open", [True, False], ids=["open", "strict"])
@pytest.mark.parametrize("protocol", names())
@settings(max_examples=15, deadline=None)
@given(seed=SEEDS, matcher=st.sampled_from(MATCHERS))
def test_churn(protocol: str, is_open: bool, seed: int, matcher: str) -> None:
    scenario = Scenario(seed, protocol, matcher, is_open=is_open)
    scenario.churn(25)
    scenario.world.run(200 * 10**9)
    scenario.check()
