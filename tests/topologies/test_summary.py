"""A summary's numbers are those that networkx finds."""

from __future__ import annotations

import networkx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topologies.clustering.clusters import cluster_by_domain, cluster_by_size
from topologies.generators.flat import line, random_degree, star
from topologies.generators.transit_stub import TransitStubShape, transit_stub
from topologies.summary import SinglePair, summarise


@given(st.integers(4, 30), st.integers(0, 99))
@settings(max_examples=40)
def test_degrees_and_distances_agree_with_networkx(brokers: int, seed: int) -> None:
    overlay = random_degree(brokers, degree=3, seed=seed)
    graph = networkx.Graph([link.ends for link in overlay.links])
    summary = summarise(overlay)
    degrees = [degree for _, degree in graph.degree]
    assert (summary.brokers, summary.links) == (brokers, graph.number_of_edges())
    assert (summary.degree_min, summary.degree_max) == (min(degrees), max(degrees))
    assert summary.degree_mean == pytest.approx(sum(degrees) / brokers, abs=1e-4)
    assert summary.diameter_hops == networkx.diameter(graph)
    assert summary.path_hops_mean == pytest.approx(networkx.average_shortest_path_length(graph), abs=1e-4)


def test_clusters_are_measured_inside() -> None:
    summary = summarise(cluster_by_size(line(10), 5))
    assert [(found.name, found.brokers, found.edge_brokers, found.diameter_hops) for found in summary.clusters] == [
        ("c01", 5, 1, 4),
        ("c02", 6, 1, 5),
    ]
    assert summary.edge_brokers == ("b005",)
    assert summary.single_edge_pairs == (SinglePair(("c01", "c02"), "b005"),)


def test_pairs_with_two_edge_brokers_are_not_single() -> None:
    summary = summarise(cluster_by_size(random_degree(40, degree=6, seed=1), 10))
    assert len(summary.clusters) == 4
    assert summary.single_edge_pairs == ()


def test_each_stub_cluster_hangs_at_one_edge_broker() -> None:
    summary = summarise(cluster_by_domain(transit_stub(TransitStubShape(), degree=6, seed=1)))
    assert len(summary.single_edge_pairs) == 10


def test_one_broker_alone_has_no_distances() -> None:
    summary = summarise(star(1))
    assert (summary.diameter_hops, summary.path_hops_mean, summary.latency_ms_mean) == (0, 0.0, 0.0)
