"""The newest link state of a broker counts, and a link exists when both of its ends list it."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from routing.link_state import LinkStateTable
from routing.messages import LinkState, Neighbour


def state(broker: str, sequence: int, *neighbours: str, incarnation: int = 1, has_left: bool = False) -> LinkState:
    named = tuple(Neighbour(each, 1) for each in neighbours)
    return LinkState(broker, incarnation, sequence, "", named, has_left=has_left)


def table_of(*states: LinkState) -> LinkStateTable:
    table = LinkStateTable()
    for each in states:
        table.add_if_newer(each)
    return table


def test_the_newest_link_state_wins_and_an_old_one_is_ignored() -> None:
    table = table_of(state("b2", 1, "b1"))
    assert table.add_if_newer(state("b1", 2, "b2"))
    assert not table.add_if_newer(state("b1", 1))
    assert not table.add_if_newer(state("b1", 2, "b2"))
    assert table.topology.neighbours("b1") == ("b2",)
    assert table.add_if_newer(state("b1", 3))
    assert table.topology.neighbours("b1") == ()


def test_a_new_incarnation_is_newer_with_any_sequence() -> None:
    table = table_of(state("b1", 900, "b2"), state("b2", 1, "b1"))
    assert table.add_if_newer(state("b1", 0, incarnation=2))
    assert not table.add_if_newer(state("b1", 901, "b2"))
    assert table.topology.neighbours("b2") == ()


def test_a_link_needs_both_ends() -> None:
    table = table_of(state("b1", 1, "b2"), state("b2", 1))
    assert table.topology.distance("b1", "b2") is None
    table.add_if_newer(state("b2", 2, "b1"))
    assert table.topology.distance("b1", "b2") == 1


def test_a_neighbour_without_a_link_state_is_not_in_the_topology() -> None:
    assert table_of(state("b1", 1, "b2")).topology.brokers == ("b1",)


def test_two_ends_that_disagree_on_the_cost_agree_on_the_larger() -> None:
    expensive = LinkState("b1", 1, 1, "", (Neighbour("b2", 7),))
    table = table_of(expensive, state("b2", 1, "b1"))
    assert table.topology.distance("b1", "b2") == table.topology.distance("b2", "b1") == 7


def test_a_broker_that_left_is_not_in_the_topology_and_an_unreachable_one_is() -> None:
    table = table_of(state("b1", 1, "b2"), state("b2", 1, "b1", "b3"), state("b3", 1, "b2"))
    table.add_if_newer(state("b1", 2, has_left=True))
    table.add_if_newer(state("b2", 2))
    assert table.topology.brokers == ("b2", "b3")
    assert table.topology.distance("b2", "b3") is None
    assert table.get("b1") == state("b1", 2, has_left=True), "its last link state is kept"


def test_a_broker_that_left_may_return_as_a_new_incarnation() -> None:
    table = table_of(state("b1", 5, has_left=True), state("b2", 1, "b1"))
    assert table.add_if_newer(state("b1", 0, "b2", incarnation=2))
    assert table.topology.distance("b1", "b2") == 1


def test_another_broker_lacks_the_link_states_that_are_newer_here() -> None:
    mine = table_of(state("b1", 2), state("b2", 1), state("b3", 4))
    theirs = table_of(state("b1", 1), state("b2", 1), state("b4", 1))
    assert mine.newer_than(theirs.states()) == [state("b1", 2), state("b3", 4)]
    assert theirs.newer_than(mine.states()) == [state("b4", 1)]


STATES = st.lists(
    st.builds(
        lambda broker, sequence, incarnation: state(broker, sequence, "b1", incarnation=incarnation),
        st.sampled_from(("b1", "b2", "b3")),
        st.integers(0, 3),
        st.integers(1, 2),
    ),
    max_size=12,
)


@given(STATES, st.randoms(use_true_random=False))
def test_the_order_of_arrival_does_not_matter(states: list[LinkState], order: random.Random) -> None:
    shuffled = [*states, *states]
    order.shuffle(shuffled)
    one, other = table_of(*states), table_of(*shuffled)
    assert one.digest == other.digest
    assert one.topology is other.topology


@given(STATES, STATES)
def test_digests_are_equal_when_link_states_are(first: list[LinkState], second: list[LinkState]) -> None:
    one, other = table_of(*first), table_of(*second)
    knows_the_same = not one.newer_than(other.states()) and not other.newer_than(one.states())
    assert (one.digest == other.digest) is knows_the_same
