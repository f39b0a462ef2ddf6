"""Every protocol delivers what is owed, once, on random overlays: with churn, faults, lossy links and restarts.

A failure prints the command that replays it.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routing.registry import names
from tests.broker.scenario import Scenario

MATCHERS = ("auto", "pst-bloom", "be-tree")
SEEDS = st.integers(0, 2**31)
QUICK = settings(max_examples=5, deadline=None)
LONG = settings(max_examples=12, deadline=None)


def run(scenario: Scenario) -> Scenario:
    scenario.run()
    return scenario


@pytest.mark.parametrize("is_open", [True, False], ids=["open", "strict"])
@pytest.mark.parametrize("protocol", names())
@QUICK
@given(seed=SEEDS, matcher=st.sampled_from(MATCHERS))
def test_clients_that_come_and_go_get_what_they_want(protocol: str, is_open: bool, seed: int, matcher: str) -> None:
    assert run(Scenario(seed, protocol, matcher, is_open=is_open)).world.now > 0


@pytest.mark.parametrize("protocol", ["fbr", "d-dbr", "merc"])
@QUICK
@given(seed=SEEDS, matcher=st.sampled_from(MATCHERS), is_open=st.booleans())
def test_what_is_owed_arrives_through_faults(protocol: str, seed: int, matcher: str, is_open: bool) -> None:
    scenario = run(Scenario(seed, protocol, matcher, is_open=is_open, has_faults=True))
    assert all(scenario.world.broker(name).in_custody == 0 for name in scenario.brokers())


@pytest.mark.slow
@pytest.mark.parametrize("loss", [0.0, 0.1], ids=["", "lossy"])
@pytest.mark.parametrize("is_durable", [False, True], ids=["memory", "durable"])
@pytest.mark.parametrize("protocol", ["fbr", "d-dbr", "merc"])
@LONG
@given(seed=SEEDS, matcher=st.sampled_from(MATCHERS), is_open=st.booleans())
def test_what_is_owed_arrives_through_many_faults(
    protocol: str, is_durable: bool, loss: float, seed: int, matcher: str, is_open: bool
) -> None:
    assert run(Scenario(seed, protocol, matcher, is_durable, is_open, loss, has_faults=True)).world.now > 0


@pytest.mark.parametrize("protocol", ["d-dbr", "merc"])
@QUICK
@given(seed=SEEDS)
def test_brokers_that_change_their_links_lose_nothing(protocol: str, seed: int) -> None:
    assert run(Scenario(seed, protocol, has_faults=True, reorganises=True)).world.now > 0


@QUICK
@given(seed=SEEDS, is_open=st.booleans())
def test_after_all_faults_the_tables_are_what_the_clients_say(seed: int, is_open: bool) -> None:
    scenario = run(Scenario(seed, "d-dbr", is_open=is_open, has_faults=True))
    scenario.check_tables()
