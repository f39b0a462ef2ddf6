"""A transit-stub overlay has its domains, and its policy weights keep paths in the allowed domains."""

from __future__ import annotations

import re

import networkx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topologies.errors import ParameterError
from topologies.generators.edge_models import EdgeModel
from topologies.generators.transit_stub import TransitStubShape, transit_stub
from topologies.overlay import Overlay

SHAPES = st.builds(
    TransitStubShape,
    transit_domains=st.integers(1, 3),
    transit_nodes=st.integers(1, 4),
    stubs=st.integers(0, 2),
    stub_nodes=st.integers(1, 4),
)


def domain_of(overlay: Overlay, id: str) -> str:
    """Returns `T:domain` or `S:domain.node/stub`: the label without its node."""
    label = overlay.broker(id).label
    assert label is not None
    assert re.fullmatch(r"T:\d+\.\d+|S:\d+\.\d+/\d+\.\d+", label)
    return label.rpartition(".")[0]


def weighted(overlay: Overlay) -> networkx.Graph:
    graph = networkx.Graph()
    graph.add_nodes_from(overlay.ids)
    graph.add_edges_from((link.a, link.b, {"weight": link.policy_weight}) for link in overlay.links)
    return graph


def assert_policy_applies(overlay: Overlay) -> None:
    """Checks all shortest paths by policy weight, ties included, between all pairs."""
    graph = weighted(overlay)
    domain = {id: domain_of(overlay, id) for id in overlay.ids}
    distances = dict(networkx.all_pairs_dijkstra_path_length(graph))
    for a in overlay.ids:
        for b in overlay.ids:
            on_a_path = [id for id in overlay.ids if distances[a][id] + distances[id][b] == distances[a][b]]
            if domain[a] == domain[b]:
                assert {domain[id] for id in on_a_path} == {domain[a]}, f"a path from {a} to {b} leaves {domain[a]}"
            stubs = {domain[id] for id in on_a_path if domain[id].startswith("S")}
            assert stubs <= {domain[a], domain[b]}, f"a path from {a} to {b} crosses a foreign stub of {stubs}"


@given(SHAPES, st.integers(0, 12), st.integers(0, 12), st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_paths_by_policy_weight_stay_in_domains_and_out_of_foreign_stubs(
    shape: TransitStubShape, extra_transit_stub: int, extra_stub_stub: int, seed: int
) -> None:
    stub_nodes = shape.brokers - shape.transits
    own = shape.stub_nodes * (shape.transits * shape.stubs - 1) * stub_nodes // 2
    shape = TransitStubShape(
        shape.transit_domains,
        shape.transit_nodes,
        shape.stubs,
        shape.stub_nodes,
        min(extra_transit_stub, stub_nodes * (shape.transits - 1)),
        max(0, min(extra_stub_stub, own)),
    )
    overlay = transit_stub(shape, seed=seed)
    assert len(overlay.ids) == shape.brokers
    assert_policy_applies(overlay)


def test_the_policy_applies_where_single_node_stubs_are_linked_to_each_other() -> None:
    """The tightest case for stub-stub weights: transit domains in a row, and stub domains of one node."""
    for seed in range(20):
        shape = TransitStubShape(transit_domains=2, transit_nodes=3, stubs=2, stub_nodes=1, extra_stub_stub=20)
        assert_policy_applies(transit_stub(shape, seed=seed))


def test_without_weights_paths_would_cross_stubs() -> None:
    """Without weights the policy does not hold: by hops, some path crosses a foreign stub."""
    overlay = transit_stub(TransitStubShape(extra_transit_stub=30, extra_stub_stub=60), seed=1)
    graph = weighted(overlay)
    domain = {id: domain_of(overlay, id) for id in overlay.ids}
    crossings = 0
    for a, paths in networkx.all_pairs_shortest_path(graph):
        for b, path in paths.items():
            crossings += any(domain[id].startswith("S") and domain[id] not in (domain[a], domain[b]) for id in path)
    assert crossings > 0


def test_weights_grow_from_inside_to_between_stubs() -> None:
    overlay = transit_stub(TransitStubShape(3, 4, 2, 4, extra_transit_stub=5, extra_stub_stub=5), seed=2)
    weights: dict[str, set[int | None]] = {}
    for link in overlay.links:
        ends = domain_of(overlay, link.a), domain_of(overlay, link.b)
        kind = "inside" if ends[0] == ends[1] else ends[0][0] + ends[1][0]
        weights.setdefault(kind, set()).add(link.policy_weight)
    assert all(len(values) == 1 for values in weights.values())
    inside, transit, mixed, stub = (weights[kind].pop() for kind in ("inside", "TT", "TS", "SS"))
    assert inside is not None
    assert transit is not None
    assert mixed is not None
    assert stub is not None
    assert 1 == inside <= transit < mixed < stub


def test_the_overlay_of_the_thesis_is_generated() -> None:
    overlay = transit_stub(TransitStubShape(), degree=6, seed=1)
    assert len(overlay.ids) == 100
    assert len(overlay.links) == 300
    labels = [broker.label or "" for broker in overlay.brokers]
    assert sum(label.startswith("T:") for label in labels) == 10
    assert [label for label in labels if label.startswith("T:")] == labels[:10]
    assert labels[10] == "S:0.0/0.0"
    assert labels[-1] == "S:0.9/0.8"


@given(SHAPES, st.integers(0, 99))
@settings(max_examples=40)
def test_domains_are_connected_and_stubs_hang_at_their_transit_node(shape: TransitStubShape, seed: int) -> None:
    overlay = transit_stub(shape, seed=seed)
    graph = weighted(overlay)
    domains: dict[str, list[str]] = {}
    for id in overlay.ids:
        domains.setdefault(domain_of(overlay, id), []).append(id)
    assert len(domains) == shape.transit_domains + shape.transits * shape.stubs
    id_of = {broker.label: broker.id for broker in overlay.brokers}
    for name, ids in domains.items():
        assert networkx.is_connected(graph.subgraph(ids))
        if name.startswith("S"):
            transit = id_of["T:" + name[2:].partition("/")[0]]
            assert sum(transit in overlay.neighbours(id) for id in ids) == 1


def test_extra_links_are_added_on_top() -> None:
    def count(**extras: int) -> dict[str, int]:
        overlay = transit_stub(TransitStubShape(2, 3, 2, 4, **extras), seed=4)
        kinds: dict[str, int] = {"TS": 0, "SS": 0}
        for link in overlay.links:
            ends = domain_of(overlay, link.a), domain_of(overlay, link.b)
            kind = ends[0][0] + ends[1][0]
            if ends[0] != ends[1] and kind in kinds:
                kinds[kind] += 1
        return kinds

    assert count() == {"TS": 12, "SS": 0}
    assert count(extra_transit_stub=7) == {"TS": 19, "SS": 0}
    assert count(extra_stub_stub=9) == {"TS": 12, "SS": 9}


def test_stub_links_are_shorter_than_transit_links() -> None:
    overlay = transit_stub(TransitStubShape(), seed=3)
    transit = [link.latency_ms for link in overlay.links if domain_of(overlay, link.b).startswith("T")]
    stub = [link.latency_ms for link in overlay.links if domain_of(overlay, link.a).startswith("S")]
    assert sum(stub) / len(stub) < 0.5 * sum(transit) / len(transit)


def test_the_same_seed_gives_the_same_overlay_and_another_seed_another() -> None:
    one, same, other = (transit_stub(TransitStubShape(), seed=seed) for seed in (1, 1, 2))
    assert one == same
    assert one != other


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ({"transit_nodes": 0}, "transit_nodes must be at least 1, not 0"),
        ({"extra_stub_stub": -1}, "extra_stub_stub must be at least 0, not -1"),
        ({"transit_nodes": 1, "extra_transit_stub": 1}, "extra_transit_stub = 1 is too many: .* room for 0"),
        ({"transit_nodes": 2, "stub_nodes": 2, "extra_stub_stub": 5}, "extra_stub_stub = 5 is too many: .* room for 4"),
    ],
)
def test_impossible_shapes_are_refused(shape: dict[str, int], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        transit_stub(TransitStubShape(**shape), seed=1)


def test_a_degree_that_the_domains_cannot_have_is_refused() -> None:
    with pytest.raises(ParameterError, match="degree 6 with 30 links between domains leaves 270 links"):
        transit_stub(TransitStubShape(stubs=3, stub_nodes=3), degree=6, seed=1)
    with pytest.raises(ParameterError, match="not both"):
        transit_stub(TransitStubShape(), degree=6, stub_edges=EdgeModel("pure-random", 0.5), seed=1)
