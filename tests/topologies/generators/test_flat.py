"""Flat generators make connected overlays of the requested size and degree, determined by the seed."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topologies.errors import ParameterError
from topologies.generators.flat import line, random_degree, random_regular, ring, star, tree
from topologies.generators.random_links import connected_links, links_for_degree
from topologies.overlay import Overlay
from topologies.random_streams import stream


def degrees(overlay: Overlay) -> list[int]:
    return [len(overlay.neighbours(id)) for id in overlay.ids]


@given(st.integers(3, 40), st.integers(1, 5))
def test_fixed_shapes_have_their_degrees(brokers: int, branching: int) -> None:
    assert sorted(degrees(line(brokers))) == [1, 1] + [2] * (brokers - 2)
    assert degrees(ring(brokers)) == [2] * brokers
    assert degrees(star(brokers)) == [brokers - 1] + [1] * (brokers - 1)
    grown = tree(brokers, branching=branching)
    assert len(grown.links) == brokers - 1
    assert max(degrees(grown)) <= branching + 1
    assert degrees(grown)[0] == min(branching, brokers - 1)


def test_small_shapes_have_the_links_of_their_names() -> None:
    assert [link.ends for link in line(3).links] == [("b001", "b002"), ("b002", "b003")]
    assert [link.ends for link in ring(3).links] == [("b001", "b002"), ("b001", "b003"), ("b002", "b003")]
    assert [link.ends for link in tree(4, branching=3).links] == [("b001", f"b00{n}") for n in (2, 3, 4)]
    assert line(1).ids == star(1).ids == tree(1).ids == ("b001",)


def test_ids_are_padded_so_that_their_order_is_their_numbers_order() -> None:
    ids = line(1200).ids
    assert (ids[0], ids[999], ids[-1]) == ("b0001", "b1000", "b1200")
    assert list(ids) == sorted(ids)


def test_shapes_without_positions_have_one_latency_for_all_links() -> None:
    assert {link.latency_ms for link in ring(5).links} == {1.0}
    assert {link.latency_ms for link in random_degree(10, degree=3, seed=1, latency_ms=4.5).links} == {4.5}


@given(st.integers(2, 30), st.floats(0, 1), st.integers(0, 1000))
def test_a_random_overlay_has_exactly_the_links_of_its_degree(brokers: int, where: float, seed: int) -> None:
    least, most = 2 - 2 / brokers, brokers - 1
    degree = least + where * (most - least)
    assert len(random_degree(brokers, degree=degree, seed=seed).links) == round(brokers * degree / 2)


@given(st.integers(2, 16), st.data())
def test_a_regular_overlay_has_one_degree_everywhere(brokers: int, data: st.DataObject) -> None:
    possible = [degree for degree in range(1, brokers) if brokers * degree % 2 == 0 and (degree > 1 or brokers == 2)]
    degree = data.draw(st.sampled_from(possible))
    assert set(degrees(random_regular(brokers, degree=degree, seed=data.draw(st.integers(0, 99))))) == {degree}


@pytest.mark.parametrize(("brokers", "degree"), [(500, 3), (400, 6), (60, 50)])
def test_regular_overlays_of_use_are_found(brokers: int, degree: int) -> None:
    assert set(degrees(random_regular(brokers, degree=degree, seed=5))) == {degree}


def test_the_same_seed_gives_the_same_overlay_and_another_seed_another() -> None:
    assert random_degree(40, degree=4, seed=9) == random_degree(40, degree=4, seed=9)
    assert random_degree(40, degree=4, seed=9) != random_degree(40, degree=4, seed=10)
    assert random_regular(40, degree=4, seed=9) == random_regular(40, degree=4, seed=9)
    assert random_regular(40, degree=4, seed=9) != random_regular(40, degree=4, seed=10)


def test_random_links_are_close_to_uniform() -> None:
    """Four nodes and three links have 16 connected graphs, all trees. Each should be drawn about one time in 16."""
    rng = stream(1, "uniform")
    draws = 8000
    counts = Counter(tuple(connected_links(4, 3, rng)) for _ in range(draws))
    assert len(counts) == 16
    assert all(0.7 * draws / 16 < count < 1.3 * draws / 16 for count in counts.values())


def test_dense_random_links_are_uniform() -> None:
    """Four nodes and five links have six graphs, all connected, so no draw is repaired."""
    rng = stream(2, "uniform")
    counts = Counter(tuple(connected_links(4, 5, rng)) for _ in range(6000))
    assert len(counts) == 6
    assert all(850 < count < 1150 for count in counts.values())


@pytest.mark.parametrize(
    ("brokers", "degree", "words"),
    [
        (10, 10, "degree 10 is impossible with brokers = 10: a broker has at most 9 neighbours"),
        (10, float("nan"), "degree nan is impossible"),
        (10, 1.5, "degree 1.5 leaves 10 brokers disconnected: .* at least 2 - 2/10 = 1.8"),
        (0, 1, "brokers must be at least 1, not 0"),
    ],
)
def test_an_impossible_mean_degree_is_refused(brokers: int, degree: float, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        random_degree(brokers, degree=degree, seed=1)


def test_the_least_and_the_greatest_degree_are_possible() -> None:
    assert links_for_degree(10, 1.8) == 9
    assert links_for_degree(100, 1.98) == 99
    assert links_for_degree(10, 9) == 45
    assert links_for_degree(1, 0) == 0


@pytest.mark.parametrize(
    ("brokers", "degree", "words"),
    [
        (5, 3, "their product, twice the number of links, must be even"),
        (6, 6, "at most 5 neighbours"),
        (6, 1, "leaves 6 brokers disconnected"),
    ],
)
def test_an_impossible_regular_degree_is_refused(brokers: int, degree: int, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        random_regular(brokers, degree=degree, seed=1)


def test_a_ring_of_two_a_tree_without_branches_and_a_negative_latency_are_refused() -> None:
    with pytest.raises(ParameterError, match="brokers of a ring must be at least 3, not 2"):
        ring(2)
    with pytest.raises(ParameterError, match="branching must be at least 1, not 0"):
        tree(5, branching=0)
    with pytest.raises(ParameterError, match="latency_ms must be zero or more, not -1"):
        line(5, latency_ms=-1)
