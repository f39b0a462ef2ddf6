"""Every protocol delivers each owed pair once on random overlays, and then stops sending: with churn, faults, lossy
links and restarts.

A failure prints the command that replays it.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.torture.random_scenario import Scenario
from routing.registry import names

MATCHERS = ("auto", "pst-bloom", "be-tree")
SEEDS = st.integers(0, 2**31)
QUICK = settings(max_examples=5, deadline=None)
LONG = settings(max_examples=25, deadline=None)
FBR_OPTIONS = st.sampled_from(({}, {"readvertise": True}, {"covering": True}, {"readvertise": True, "covering": True}))


def run(scenario: Scenario) -> None:
    """Runs a scenario, which checks its deliveries. Also checks that there were deliveries to check."""
    scenario.run()
    assert scenario.pairs["delivered"] > 0


@pytest.mark.parametrize("is_open", [True, False], ids=["open", "strict"])
@pytest.mark.parametrize("protocol", names())
@QUICK
@given(seed=SEEDS, matcher=st.sampled_from(MATCHERS), is_durable=st.booleans())
def test_clients_that_connect_and_leave_receive_their_publications(
    protocol: str, is_open: bool, seed: int, matcher: str, is_durable: bool
) -> None:
    run(Scenario(seed, protocol, matcher, is_durable, is_open))


@pytest.mark.parametrize("is_durable", [False, True], ids=["memory", "durable"])
@pytest.mark.parametrize("protocol", names())
@QUICK
@given(seed=SEEDS, matcher=st.sampled_from(MATCHERS), is_open=st.booleans())
def test_owed_publications_arrive_through_faults(
    protocol: str, is_durable: bool, seed: int, matcher: str, is_open: bool
) -> None:
    run(Scenario(seed, protocol, matcher, is_durable, is_open, has_faults=True))


@pytest.mark.slow
@pytest.mark.parametrize("loss", [0.0, 0.1], ids=["", "lossy"])
@pytest.mark.parametrize("is_durable", [False, True], ids=["memory", "durable"])
@pytest.mark.parametrize("protocol", names())
@LONG
@given(seed=SEEDS, matcher=st.sampled_from(MATCHERS), is_open=st.booleans())
def test_owed_publications_arrive_through_many_faults(
    protocol: str, is_durable: bool, loss: float, seed: int, matcher: str, is_open: bool
) -> None:
    run(Scenario(seed, protocol, matcher, is_durable, is_open, loss, has_faults=True))


@pytest.mark.parametrize("is_durable", [False, True], ids=["memory", "durable"])
@QUICK
@given(seed=SEEDS, is_open=st.booleans(), options=FBR_OPTIONS)
def test_the_options_of_filter_based_routing_lose_nothing(
    is_durable: bool, seed: int, is_open: bool, options: dict[str, object]
) -> None:
    run(Scenario(seed, "fbr", is_durable=is_durable, is_open=is_open, has_faults=True, options=options))


@pytest.mark.parametrize("protocol", ["d-dbr", "merc"])
@QUICK
@given(seed=SEEDS)
def test_brokers_that_change_their_links_lose_nothing(protocol: str, seed: int) -> None:
    run(Scenario(seed, protocol, has_faults=True, reorganises=True))


@QUICK
@given(seed=SEEDS, is_open=st.booleans())
def test_after_all_faults_the_tables_have_the_entries_of_the_clients(seed: int, is_open: bool) -> None:
    scenario = Scenario(seed, "d-dbr", is_open=is_open, has_faults=True)
    run(scenario)
    scenario.check_tables()


def test_few_schedules_are_weak() -> None:
    """In a weak scenario less than half of the expected pairs are owed. The others are dropped or withdrawn."""
    weak = 0
    for seed in range(40):
        scenario = Scenario(seed, names()[seed % 4], is_durable=seed % 8 < 4, is_open=seed % 3 > 0, has_faults=True)
        run(scenario)
        weak += scenario.is_weak
    assert weak <= 2


def test_a_tree_that_ends_right_after_a_neighbour_returned_drops_publications_that_the_neighbour_may_have_wanted() -> (
    None
):
    """Schedules of the kind that failed once: the subscriptions of the neighbour for the tree arrived too late."""
    for seed in range(490, 500):
        run(Scenario(seed, "fbr", is_open=False, has_faults=True, options={"readvertise": True}))
