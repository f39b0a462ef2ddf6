"""A hierarchy has a graph in place of each node, and each link above is a link between two such graphs."""

from __future__ import annotations

import math

import networkx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topologies.errors import ParameterError
from topologies.generators.edge_models import EdgeModel
from topologies.generators.hierarchy import hierarchy
from topologies.overlay import Overlay

DENSE = EdgeModel("pure-random", 0.8)


def top_of(overlay: Overlay, id: str) -> str:
    label = overlay.broker(id).label
    assert label is not None
    return label.partition(".")[0]


def links_between_tops(overlay: Overlay) -> dict[tuple[str, str], int]:
    counts: dict[tuple[str, str], int] = {}
    for link in overlay.links:
        a, b = sorted((top_of(overlay, link.a), top_of(overlay, link.b)))
        if a != b:
            counts[a, b] = counts.get((a, b), 0) + 1
    return counts


@given(st.lists(st.integers(1, 5), min_size=1, max_size=3), st.integers(0, 99))
@settings(max_examples=50)
def test_a_hierarchy_has_the_product_of_its_levels_and_whole_graphs(levels: list[int], seed: int) -> None:
    overlay = hierarchy(levels, seed=seed, models=[DENSE] * len(levels))
    assert len(overlay.ids) == math.prod(levels)
    graph = networkx.Graph([link.ends for link in overlay.links])
    graph.add_nodes_from(overlay.ids)
    for top in range(levels[0]):
        inside = [id for id in overlay.ids if top_of(overlay, id) == str(top)]
        assert len(inside) == math.prod(levels[1:])
        assert networkx.is_connected(graph.subgraph(inside))


def test_labels_are_paths_from_the_top() -> None:
    overlay = hierarchy([2, 3, 2], seed=1, models=[DENSE] * 3)
    labels = [broker.label for broker in overlay.brokers]
    assert labels[:4] == ["0.0.0", "0.0.1", "0.1.0", "0.1.1"]
    assert labels[-1] == "1.2.1"


@given(st.integers(1, 4), st.integers(0, 50))
@settings(max_examples=25)
def test_each_link_of_the_top_level_becomes_as_many_links_as_joins(joins: int, seed: int) -> None:
    overlay = hierarchy([5, 6], seed=seed, degree=4, joins=joins)
    counts = links_between_tops(overlay)
    assert set(counts.values()) == {joins}
    assert len(counts) == 8


def test_joins_multiply_on_the_level_below_and_not_again_further_down() -> None:
    overlay = hierarchy([2, 4, 4], seed=1, degree=4, joins=2)
    assert links_between_tops(overlay) == {("0", "1"): 2}


@given(st.sampled_from([(4, 10), (10, 10), (3, 3, 4)]), st.floats(2.5, 3.5), st.integers(0, 50))
@settings(max_examples=25)
def test_a_degree_is_met_exactly(levels: tuple[int, ...], degree: float, seed: int) -> None:
    overlay = hierarchy(levels, seed=seed, degree=degree, upper_degree=2.0)
    assert len(overlay.links) == round(math.prod(levels) * degree / 2)


def test_the_same_seed_gives_the_same_overlay_and_another_seed_another() -> None:
    one, same, other = (hierarchy([4, 6], seed=seed, degree=4) for seed in (1, 1, 2))
    assert one == same
    assert one != other


def test_links_inside_a_graph_are_shorter_than_links_between_graphs() -> None:
    overlay = hierarchy([6, 20], seed=3, degree=5)
    inside = [link.latency_ms for link in overlay.links if top_of(overlay, link.a) == top_of(overlay, link.b)]
    between = [link.latency_ms for link in overlay.links if top_of(overlay, link.a) != top_of(overlay, link.b)]
    assert sum(inside) / len(inside) < sum(between) / len(between)


@pytest.mark.parametrize(
    ("levels", "options", "words"),
    [
        ([], {"degree": 3.0}, "at least one level"),
        ([3, 0], {"degree": 3.0}, "levels' sizes must be at least 1, not 0"),
        ([3, 3], {"degree": 3.0, "joins": 4}, "joins = 4 needs as many brokers in each graph"),
        ([3, 3], {}, "2 levels need as many edge models, not 0; or give degree"),
        ([3, 3], {"models": [DENSE, DENSE], "degree": 3.0}, "not both"),
        ([3, 3], {"models": [DENSE, EdgeModel("waxman-2")]}, "needs alpha or degree"),
        ([3, 3], {"degree": 8.0}, "degree 8 leaves 33 links for the inside of 3 domains, which take from 6 to 9"),
    ],
)
def test_impossible_hierarchies_are_refused(levels: list[int], options: dict[str, object], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        hierarchy(levels, seed=1, **options)  # type: ignore[arg-type]
