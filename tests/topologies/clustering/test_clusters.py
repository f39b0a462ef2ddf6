"""Clusters are balanced and connected, the ends of a link share one, and pairs have two edge brokers if possible."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topologies.broker_and_link import Broker, Link
from topologies.clustering.clusters import cluster_by_domain, cluster_by_size
from topologies.clustering.partition import balanced_parts
from topologies.errors import ParameterError
from topologies.generators.flat import line, random_degree, random_regular, ring, star, tree
from topologies.generators.hierarchy import hierarchy
from topologies.generators.transit_stub import TransitStubShape, transit_stub
from topologies.graph import adjacency, components
from topologies.overlay import Overlay
from topologies.registry import generate


@st.composite
def overlays(draw: st.DrawFn) -> Overlay:
    brokers = draw(st.integers(2, 30))
    least, most = 2 - 2 / brokers, min(6, brokers - 1)
    return random_degree(brokers, degree=least + draw(st.floats(0, 1)) * (most - least), seed=draw(st.integers(0, 999)))


def parts_of(overlay: Overlay, count: int) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    parts = balanced_parts({id: overlay.neighbours(id) for id in overlay.ids}, count)
    return [(part.brokers, part.guests) for part in parts]


def touching_without(overlay: Overlay, one: str, other: str, lost: str) -> bool:
    """Whether a link still leads from the one cluster into the other when this broker is lost."""
    here = set(overlay.members(one)) - {lost}
    there = set(overlay.members(other)) - {lost}
    return any((link.a in here and link.b in there) or (link.a in there and link.b in here) for link in overlay.links)


@given(overlays(), st.integers(1, 12))
def test_parts_contain_every_broker_once_and_are_connected(overlay: Overlay, size: int) -> None:
    count = math.ceil(len(overlay.ids) / size)
    parts = parts_of(overlay, count)
    assert len(parts) == count
    assert sorted(id for brokers, _ in parts for id in brokers) == list(overlay.ids)
    neighbours = adjacency(overlay.ids, [link.ends for link in overlay.links])
    for brokers, guests in parts:
        members = {*brokers, *guests}
        assert len(members) == len(brokers) + len(guests)
        assert len(components(sorted(members), neighbours, inside=members)) == 1


@given(overlays(), st.integers(2, 12))
def test_any_overlay_can_be_clustered_and_keeps_its_links(overlay: Overlay, size: int) -> None:
    clustered = cluster_by_size(overlay, size)
    assert clustered.links == overlay.links
    assert len(clustered.clusters) == math.ceil(len(overlay.ids) / size)


@given(overlays(), st.integers(2, 12))
def test_a_pair_has_one_edge_broker_only_where_a_second_could_not_replace_it(overlay: Overlay, size: int) -> None:
    clustered = cluster_by_size(overlay, size)
    for one, other in clustered.neighbouring_clusters:
        edges = clustered.edges_between(one, other)
        assert len(edges) > 1 or not touching_without(clustered, one, other, edges[0])


@given(st.integers(10, 60), st.integers(3, 12), st.integers(0, 99))
@settings(max_examples=50)
def test_parts_of_a_meshed_overlay_differ_by_a_broker_or_a_tenth(brokers: int, size: int, seed: int) -> None:
    parts = parts_of(random_regular(brokers, degree=4, seed=seed), math.ceil(brokers / size))
    mean = brokers / len(parts)
    slack = max(1.0, mean / 10)
    assert all(math.floor(mean - slack) <= len(own) <= math.ceil(mean + slack) for own, _ in parts)


def test_a_line_of_ten_has_its_middle_broker_as_edge_broker() -> None:
    """As in [THESIS 10.1]: two halves, and one broker in both."""
    clustered = cluster_by_size(line(10), 5)
    assert clustered.edge_brokers == ("b005",)
    assert clustered.members("c01") == ("b001", "b002", "b003", "b004", "b005")
    assert clustered.members("c02") == ("b005", "b006", "b007", "b008", "b009", "b010")


def test_a_star_shares_its_middle() -> None:
    clustered = cluster_by_size(star(13), 4)
    assert clustered.edge_brokers == ("b001",)
    assert [len(clustered.members(cluster)) for cluster in clustered.clusters] == [4, 4, 4, 4]


def test_a_ring_falls_into_arcs() -> None:
    clustered = cluster_by_size(ring(12), 4)
    assert clustered.clusters == ("c01", "c02", "c03")
    assert len(clustered.edge_brokers) == 3


def test_a_tree_falls_into_balanced_subtrees() -> None:
    parts = parts_of(tree(31), 4)
    assert all(7 <= len(own) <= 9 for own, _ in parts)


def test_one_cluster_contains_all_and_needs_no_edge_broker() -> None:
    clustered = cluster_by_size(ring(6), 6)
    assert clustered.clusters == ("c01",)
    assert clustered.edge_brokers == ()


def test_clusters_of_one_broker_each_are_possible() -> None:
    clustered = cluster_by_size(line(3), 1)
    assert clustered.clusters == ("c01", "c02", "c03")


def test_new_clusters_replace_old_ones() -> None:
    overlay = random_degree(30, degree=4, seed=1)
    assert cluster_by_size(cluster_by_size(overlay, 5), 10) == cluster_by_size(overlay, 10)


@pytest.mark.parametrize("size", [0, -3])
def test_a_cluster_size_below_one_is_refused(size: int) -> None:
    with pytest.raises(ParameterError, match="cluster size must be at least 1"):
        cluster_by_size(line(4), size)


def test_a_thousand_brokers_in_clusters_of_a_hundred() -> None:
    clustered = cluster_by_size(random_degree(1000, degree=6, seed=1), 100)
    assert len(clustered.clusters) == 10
    sizes = [len(clustered.members(cluster)) for cluster in clustered.clusters]
    assert max(sizes) < 1.2 * min(sizes)
    assert all(len(clustered.edges_between(*pair)) > 1 for pair in clustered.neighbouring_clusters)


def test_transit_nodes_join_their_stubs_with_the_backbone() -> None:
    clustered = cluster_by_domain(transit_stub(TransitStubShape(), degree=6, seed=1))
    assert clustered.clusters == ("backbone", *(f"c{number:02d}" for number in range(1, 11)))
    assert clustered.edge_brokers == clustered.members("backbone")
    assert len(clustered.edge_brokers) == 10
    for cluster in clustered.clusters[1:]:
        labels = [clustered.broker(id).label or "" for id in clustered.members(cluster)]
        assert len(labels) == 10
        assert len({label[2:].partition("/")[0] for label in labels}) == 1
        assert clustered.edges_between("backbone", cluster) == clustered.members(cluster)[:1]


@given(st.integers(0, 8), st.integers(0, 8), st.integers(0, 50))
@settings(max_examples=30)
def test_extra_links_between_domains_get_edge_brokers(transit_extra: int, stub_extra: int, seed: int) -> None:
    shape = TransitStubShape(2, 3, 2, 3, transit_extra, stub_extra)
    clustered = cluster_by_domain(transit_stub(shape, seed=seed))
    assert len(clustered.clusters) == 7
    assert set(clustered.members("backbone")) >= set(clustered.ids[:6])
    for link in clustered.links:
        assert set(clustered.broker(link.a).clusters) & set(clustered.broker(link.b).clusters)


def test_extra_transit_links_need_no_further_edge_broker() -> None:
    shape = TransitStubShape(extra_transit_stub=12)
    assert len(cluster_by_domain(transit_stub(shape, seed=1)).edge_brokers) == 10


def test_graphs_of_a_hierarchy_are_clusters() -> None:
    clustered = cluster_by_domain(hierarchy([5, 8], seed=2, degree=4, joins=2))
    assert len(clustered.clusters) == 5
    assert sum(len(broker.clusters) == 1 for broker in clustered.brokers) > 20
    assert all(len(clustered.edges_between(*pair)) > 1 for pair in clustered.neighbouring_clusters)


@given(st.integers(1, 3), st.integers(0, 99))
@settings(max_examples=40)
def test_graphs_of_a_hierarchy_have_second_edge_brokers_where_that_helps(joins: int, seed: int) -> None:
    clustered = cluster_by_domain(hierarchy([6, 5], seed=seed, degree=3.6, joins=joins))
    for one, other in clustered.neighbouring_clusters:
        edges = clustered.edges_between(one, other)
        assert len(edges) > 1 or not touching_without(clustered, one, other, edges[0])


def test_an_overlay_without_domains_is_refused_with_the_option_to_type() -> None:
    with pytest.raises(ParameterError, match=r"'ring-5' has no domains .*--clusters N"):
        cluster_by_domain(ring(5))
    stub = Overlay("odd", (Broker("a", label="T:0.0"), Broker("b", label="S:0.1/0.0")), (Link("a", "b"),))
    with pytest.raises(ParameterError, match=r"broker 'b' is labelled 'S:0.1/0.0', but no broker is labelled 'T:0.1'"):
        cluster_by_domain(stub)


@pytest.mark.parametrize("model", ["random", "waxman-2", "transit-stub"])
def test_the_same_overlay_gives_the_same_clusters(model: str) -> None:
    parameters: dict[str, object] = {"degree": 5} if model == "transit-stub" else {"degree": 5, "brokers": 80}
    assert cluster_by_size(generate(model, parameters), 20) == cluster_by_size(generate(model, parameters), 20)
