"""Proves that reorganisation by load shortens paths, keeps overlays connected and is repeatable; and table sizes."""

from __future__ import annotations

import pytest

from experiments.studies.reorganisation import ReorganisationResult, reorganise_by_load
from experiments.studies.routing_memory import measure
from topologies.clustering.clusters import cluster_by_domain
from topologies.registry import generate


def reorganised(most_links: int, cycles: int = 8, seed: int = 1) -> ReorganisationResult:
    return reorganise_by_load(brokers=25, degree=3, most_links=most_links, most_messages=20, cycles=cycles, seed=seed)


def test_hops_become_fewer_with_room_for_links() -> None:
    result = reorganised(most_links=6)
    assert len(result.hops) == 9
    assert result.hops[-1] < 0.9 * result.hops[0]
    assert result.links[-1] > result.links[0]
    assert result.changes >= result.links[-1] - result.links[0]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_overlay_stays_whole_while_links_are_given_up(seed: int) -> None:
    """The messages of a disconnected pair would be missing from the shares."""
    result = reorganised(most_links=3, cycles=15, seed=seed)
    assert sum(result.by_hops_before) == pytest.approx(1)
    assert sum(result.by_hops_after) == pytest.approx(1)
    mean = sum(hops * share for hops, share in enumerate(result.by_hops_after, start=1))
    assert mean == pytest.approx(result.hops[-1])
    assert result.changes > 0


def test_without_cycles_nothing_changes() -> None:
    result = reorganised(most_links=6, cycles=0)
    assert result.changes == 0
    assert result.by_hops_before == result.by_hops_after


def test_the_same_seed_gives_the_same_reorganisation() -> None:
    assert reorganised(4) == reorganised(4)
    assert reorganised(4) != reorganised(4, seed=2)


def test_tables_of_d_dbr_grow_with_the_square_and_those_of_merc_with_the_cluster() -> None:
    flat = measure(generate("random", {"brokers": 40, "degree": 4}), "d-dbr")
    assert flat.bytes_inside == 40 * 40 + 8 * 40
    assert flat.bytes_at_edges == 0
    assert flat.messages_multicast == 39
    assert flat.messages_flooded == 2 * 80 - 39
    shape = {"transit_nodes": 4, "stub_nodes": 9, "degree": 4}
    clustered = measure(cluster_by_domain(generate("transit-stub", shape)), "merc")
    assert clustered.bytes_inside == 10 * 10 + 8 * 10
    assert clustered.bytes_at_edges == clustered.bytes_inside + 4 * 4 + 8 * 4
    assert clustered.messages_multicast == 9
