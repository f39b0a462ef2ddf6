"""Proves that counts equal the destination lists that brokers send, message by message, on small overlays."""

from __future__ import annotations

from collections import Counter
from random import Random

import msgpack
import numpy as np
import pytest

from broker.core.inputs import ClientConnected, Published, Subscribed
from broker.core.settings import SECOND, Settings
from broker.simulation.costs import PADRES_2015
from broker.simulation.simulated_overlay import SimulatedOverlay
from broker.trace.schema import HopRow, Row
from experiments.errors import CountingError
from experiments.studies.destination_lists import Publications, count_lists, draw_publications
from topologies.clustering.clusters import cluster_by_domain, cluster_by_size
from topologies.overlay import Overlay
from topologies.registry import generate


class _Lists:
    """A trace that records the sizes of publications' destination lists."""

    def __init__(self) -> None:
        self.all: Counter[int] = Counter()
        self.at_source: Counter[int] = Counter()

    def record(self, row: Row) -> None:
        if isinstance(row, HopRow) and row.kind == "publish":
            self.all[row.destinations] += 1
            if row.hop == 1:
                self.at_source[row.destinations] += 1


def simulated_lists(overlay: Overlay, protocol: str, publications: Publications) -> _Lists:
    """Every broker has a subscriber for publications that name the broker, so the test chooses interested brokers."""
    lists = _Lists()
    world = SimulatedOverlay(
        overlay,
        protocol,
        matcher="auto",
        settings=Settings(tick=5 * SECOND, dead_after=20 * SECOND, patience=60 * SECOND),
        profile=PADRES_2015,
        trace=lists,
        random=Random(1),
        cores=dict.fromkeys(overlay.ids, 1),
        queue_frames=100_000,
    )
    for id in overlay.ids:
        world.submit(id, ClientConnected(f"at {id}"))
        world.submit(id, Subscribed(f"at {id}", "wanted", f"{id} = TRUE"))
    world.run_until(20 * SECOND)
    for number, (source, interested) in enumerate(
        zip(publications.sources, publications.interested, strict=True), start=1
    ):
        attributes = msgpack.packb({overlay.ids[each]: True for each in np.flatnonzero(interested)})
        broker = overlay.ids[source]
        request = Published(f"at {broker}", number, attributes, b"")
        world.schedule((20 + number) * SECOND, lambda at=broker, what=request: world.submit(at, what))  # type: ignore[misc]
    world.run_until((40 + len(publications.sources)) * SECOND)
    return lists


def counted(histogram: tuple[int, ...]) -> Counter[int]:
    return +Counter(dict(enumerate(histogram, start=1)))


FLAT = [("random", {"brokers": 24, "degree": 4}), ("waxman-2", {"brokers": 18, "degree": 3}), ("ring", {"brokers": 8})]
CLUSTERED = [
    {"transit_nodes": 3, "stub_nodes": 6, "degree": 3},
    {"transit_nodes": 4, "stub_nodes": 3, "stubs": 2, "degree": 2.5},
    {"transit_nodes": 1, "stub_nodes": 8, "degree": 3},
]


@pytest.mark.parametrize("interested", [1, 4, 8])
@pytest.mark.parametrize(("model", "parameters"), FLAT)
def test_counted_lists_of_d_dbr_are_those_of_the_simulation(
    model: str, parameters: dict[str, object], interested: int
) -> None:
    overlay = generate(model, parameters, seed=interested)
    (publications,) = draw_publications(len(overlay.ids), 12, interested, seed=3)
    counts = count_lists(overlay, "d-dbr", iter([publications]))
    lists = simulated_lists(overlay, "d-dbr", publications)
    assert counted(counts.histogram) == lists.all
    assert counted(counts.histogram_at_source) == lists.at_source


@pytest.mark.parametrize("interested", [1, 4, 9])
@pytest.mark.parametrize("parameters", CLUSTERED, ids=str)
def test_counted_lists_of_merc_are_those_of_the_simulation(parameters: dict[str, object], interested: int) -> None:
    overlay = cluster_by_domain(generate("transit-stub", parameters, seed=interested))
    (publications,) = draw_publications(len(overlay.ids), 12, interested, seed=3)
    counts = count_lists(overlay, "merc", iter([publications]))
    lists = simulated_lists(overlay, "merc", publications)
    assert counted(counts.histogram) == lists.all
    assert counted(counts.histogram_at_source) == lists.at_source


def test_a_line_of_clusters_is_counted_as_simulated() -> None:
    overlay = cluster_by_size(generate("line", {"brokers": 9}), 3)
    (publications,) = draw_publications(9, 15, 3, seed=1)
    counts = count_lists(overlay, "merc", iter([publications]))
    assert counted(counts.histogram) == simulated_lists(overlay, "merc", publications).all


def test_several_paths_between_clusters_are_refused() -> None:
    overlay = cluster_by_size(generate("random", {"brokers": 30, "degree": 4}), 10)
    with pytest.raises(CountingError, match="several ways between some of its 3 clusters"):
        count_lists(overlay, "merc", draw_publications(30, 1, 5, seed=1))


def test_when_all_are_interested_the_mean_list_is_the_mean_distance() -> None:
    overlay = generate("random", {"brokers": 60, "degree": 4}, seed=5)
    counts = count_lists(overlay, "d-dbr", draw_publications(60, 3_000, 60, seed=1))
    from topologies.graph import pairs_by_hops

    by_hops = pairs_by_hops({id: overlay.neighbours(id) for id in overlay.ids})
    distance = sum(hops * pairs for hops, pairs in enumerate(by_hops, start=1)) / sum(by_hops)
    assert counts.mean == pytest.approx(distance, rel=0.02)


def test_the_same_seed_draws_the_same_publications_for_any_portion() -> None:
    first = list(draw_publications(50, 2_500, 5, seed=9))
    again = list(draw_publications(50, 2_500, 5, seed=9))
    assert [len(portion.sources) for portion in first] == [1_000, 1_000, 500]
    for one, other in zip(first, again, strict=True):
        assert (one.sources == other.sources).all()
        assert (one.interested == other.interested).all()
        assert (one.interested.sum(axis=1) == 5).all()
    other = next(draw_publications(50, 1_000, 5, seed=10))
    assert (first[0].interested != other.interested).any()


@pytest.mark.parametrize("interested", [0, 51])
def test_as_many_must_be_interested_as_there_can_be(interested: int) -> None:
    with pytest.raises(CountingError, match=f"{interested} interested brokers of 50"):
        next(draw_publications(50, 1, interested, seed=1))
