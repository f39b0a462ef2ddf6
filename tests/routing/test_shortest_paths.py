"""Distances and next hops of TRT and SPRT equal those of an exhaustive search. Ties go to the smallest id."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routing.shortest_paths import Route, TopologyTable

Graph = dict[str, dict[str, int]]

SQUARE = [("b1", "b2"), ("b1", "b3"), ("b2", "b4"), ("b3", "b4")]


@st.composite
def graphs(draw: st.DrawFn, costs: st.SearchStrategy[int]) -> Graph:
    brokers = [f"b{number}" for number in range(draw(st.integers(1, 6)))]
    graph: Graph = {broker: {} for broker in brokers}
    for place, first in enumerate(brokers):
        for second in brokers[place + 1 :]:
            if draw(st.booleans()):
                graph[first][second] = graph[second][first] = draw(costs)
    return graph


def simple_paths(graph: Graph, path: list[str]) -> Iterator[list[str]]:
    yield path
    for neighbour in graph[path[-1]]:
        if neighbour not in path:
            yield from simple_paths(graph, [*path, neighbour])


def brute_force(graph: Graph, source: str) -> dict[str, Route]:
    """Returns the shortest of all paths without a loop; of equal ones, the one with the smallest first hop."""
    best: dict[str, tuple[int, str]] = {}
    for path in simple_paths(graph, [source]):
        if len(path) > 1:
            length = sum(graph[one][other] for one, other in pairwise(path))
            best[path[-1]] = min(best.get(path[-1], (length, path[1])), (length, path[1]))
    return {broker: Route(first_hop, length) for broker, (length, first_hop) in best.items()}


@given(st.one_of(graphs(st.just(1)), graphs(st.integers(1, 4))))
def test_next_hops_and_distances_are_those_of_an_exhaustive_search(graph: Graph) -> None:
    table = TopologyTable.of(graph)
    for source in graph:
        assert table.routes_from(source) == brute_force(graph, source)


@given(graphs(st.integers(1, 4)))
def test_every_next_hop_is_nearer_by_the_cost_of_the_link(graph: Graph) -> None:
    table = TopologyTable.of(graph)
    for source in graph:
        for destination, route in table.routes_from(source).items():
            beyond = table.distance(route.next_hop, destination)
            assert beyond is not None
            assert route.distance == graph[source][route.next_hop] + beyond


def test_the_smallest_id_wins_ties_for_any_order_of_links() -> None:
    for links in (SQUARE, SQUARE[::-1], [(second, first) for first, second in SQUARE]):
        assert TopologyTable.of_links(links).routes_from("b1")["b4"] == Route("b2", 2)
        assert TopologyTable.of_links(links).routes_from("b4")["b1"] == Route("b2", 2)


def test_a_cheaper_detour_is_preferred_to_an_expensive_link() -> None:
    table = TopologyTable.of({"b1": {"b2": 5, "b3": 1}, "b2": {"b1": 5, "b3": 1}, "b3": {"b1": 1, "b2": 1}})
    assert table.routes_from("b1")["b2"] == Route("b3", 2)


def test_there_is_no_path_to_another_partition() -> None:
    table = TopologyTable.of_links([("b1", "b2"), ("c1", "c2")])
    assert table.distance("b1", "c1") is None
    assert "c1" not in table.routes_from("b1")
    assert table.distance("b1", "b1") == 0


def test_a_broker_that_is_not_in_the_table_reaches_no_broker() -> None:
    table = TopologyTable.of_links([("b1", "b2")])
    assert table.routes_from("b9") == {}
    assert table.neighbours("b9") == ()


def test_equal_tables_are_one_object_and_share_their_next_hops() -> None:
    one, other = TopologyTable.of_links(SQUARE), TopologyTable.of_links(SQUARE[::-1])
    assert one is other
    assert one.routes_from("b3") is other.routes_from("b3")
    assert TopologyTable.of_links(SQUARE[1:]) is not one


def test_an_unreferenced_table_is_not_kept() -> None:
    links = [("only-here", "b1")]
    known = len(TopologyTable._shared)
    table = TopologyTable.of_links(links)
    assert len(TopologyTable._shared) == known + 1
    del table
    gc.collect()
    assert len(TopologyTable._shared) <= known


def test_a_table_without_a_link_leaves_the_first_as_it_was() -> None:
    table = TopologyTable.of_links(SQUARE)
    without = table.without_link("b1", "b2")
    assert without.distance("b1", "b2") == 3
    assert table.distance("b1", "b2") == 1
    assert without.brokers == table.brokers


@pytest.mark.parametrize(("brokers", "size"), [(70, 5_460), (100, 10_800)])
def test_the_size_is_that_of_figure_10_1_20(brokers: int, size: int) -> None:
    """[THESIS Fig. 10.1.20]: about 5 kB for 70 brokers and 11 kB for 100."""
    line = [(f"b{number:03}", f"b{number + 1:03}") for number in range(brokers - 1)]
    assert TopologyTable.of_links(line).size_bytes == size
