"""The graph functions agree with networkx on random graphs, connected or not."""

from __future__ import annotations

import networkx
from hypothesis import given
from hypothesis import strategies as st

from topologies.graph import adjacency, components, hops_from, is_connected, pairs_by_hops

Links = list[tuple[int, int]]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, Links]:
    count = draw(st.integers(1, 12))
    pairs = [(a, b) for b in range(count) for a in range(b)]
    return count, [pair for pair in pairs if draw(st.booleans())]


def as_networkx(count: int, links: Links) -> networkx.Graph:
    graph = networkx.Graph()
    graph.add_nodes_from(range(count))
    graph.add_edges_from(links)
    return graph


@given(graphs())
def test_components_are_the_connected_pieces(drawn: tuple[int, Links]) -> None:
    count, links = drawn
    pieces = components(range(count), adjacency(range(count), links))
    expected = [set(piece) for piece in networkx.connected_components(as_networkx(count, links))]
    assert sorted(map(sorted, pieces)) == sorted(map(sorted, expected))
    assert is_connected(count, links) == (len(expected) == 1)


@given(graphs(), st.data())
def test_components_inside_a_part_never_walk_outside(drawn: tuple[int, Links], data: st.DataObject) -> None:
    count, links = drawn
    inside = [node for node in range(count) if data.draw(st.booleans())]
    pieces = components(inside, adjacency(range(count), links), inside=set(inside))
    expected = networkx.connected_components(as_networkx(count, links).subgraph(inside))
    assert sorted(map(sorted, pieces)) == sorted(map(sorted, expected))


@given(graphs())
def test_hops_are_shortest_paths(drawn: tuple[int, Links]) -> None:
    count, links = drawn
    assert hops_from(0, adjacency(range(count), links)) == networkx.single_source_shortest_path_length(
        as_networkx(count, links), 0
    )


@given(graphs())
def test_pairs_by_hops_counts_each_pair_once_at_its_distance(drawn: tuple[int, Links]) -> None:
    count, links = drawn
    expected: dict[int, int] = {}
    for _, lengths in networkx.all_pairs_shortest_path_length(as_networkx(count, links)):
        for length in lengths.values():
            expected[length] = expected.get(length, 0) + 1
    assert pairs_by_hops(adjacency(range(count), links)) == [expected[hops] for hops in sorted(expected) if hops]
