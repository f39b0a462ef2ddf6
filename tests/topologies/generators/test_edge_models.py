"""GT-ITM's flat models follow their formulas, on distinct grid points, and a degree sets their alpha."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topologies.build import LATENCY_MS_MIN, Position, distance
from topologies.errors import ParameterError
from topologies.generators.edge_models import EDGE_MODELS, EdgeModel, draw_connected
from topologies.generators.flat import gtitm_flat
from topologies.random_streams import stream

DIAGONAL = math.sqrt(2) * 100


def expected_links(positions: list[Position], probability: Callable[[float], float]) -> float:
    return sum(probability(distance(a, b)) for number, b in enumerate(positions) for a in positions[:number])


@pytest.mark.parametrize("name", EDGE_MODELS)
@given(brokers=st.integers(1, 25), seed=st.integers(0, 500))
@settings(max_examples=25)
def test_a_drawing_is_connected_on_distinct_grid_points(name: str, brokers: int, seed: int) -> None:
    gamma = {"doar-leslie": 60.0, "locality": 0.6}.get(name)
    beta = None if name in ("pure-random", "exponential") else 0.9
    overlay = gtitm_flat(brokers, EdgeModel(name, 1.0, beta, gamma), seed=seed, scale=30)
    positions = [broker.position for broker in overlay.brokers]
    assert len(overlay.ids) == brokers
    assert len(set(positions)) == brokers
    assert all(p is not None and 0 <= min(p) <= max(p) < 30 and p[0] % 1 == p[1] % 1 == 0 for p in positions)


@pytest.mark.parametrize(
    ("model", "probability"),
    [
        (EdgeModel("pure-random", 0.1), lambda _: 0.1),
        (EdgeModel("waxman-1", 0.5, 0.3), lambda _: 0.5 * 0.3 * (1 - math.exp(-1 / 0.3))),
        (EdgeModel("waxman-2", 0.5, 0.3), lambda d: 0.5 * math.exp(-d / (0.3 * DIAGONAL))),
        (EdgeModel("exponential", 0.2), lambda d: 0.2 * math.exp(-d / (DIAGONAL - d))),
        (EdgeModel("doar-leslie", 0.9, 0.3, 50), lambda d: 0.9 * 50 / 150 * math.exp(-d / (0.3 * DIAGONAL))),
        (EdgeModel("locality", 0.5, 0.02, 0.2), lambda d: 0.5 if d <= 0.2 * DIAGONAL else 0.02),
    ],
    ids=lambda value: value.name if isinstance(value, EdgeModel) else "",
)
def test_the_number_of_links_is_as_the_formula_expects(model: EdgeModel, probability: Callable[[float], float]) -> None:
    links, expected = 0, 0.0
    for seed in range(5):
        drawing = draw_connected(model, 150, stream(seed, "formula"), scale=100)
        links += len(drawing.links)
        expected += expected_links(drawing.positions, probability)
    assert 0.9 * expected < links < 1.1 * expected


def test_pure_random_has_a_mean_degree_of_alpha_for_each_other_broker() -> None:
    total = sum(2 * len(gtitm_flat(200, EdgeModel("pure-random", 0.05), seed=seed).links) / 200 for seed in range(8))
    assert 0.93 * 0.05 * 199 < total / 8 < 1.07 * 0.05 * 199


def test_waxman_2_prefers_near_pairs_and_waxman_1_does_not() -> None:
    lengths = {}
    for name in ("waxman-1", "waxman-2"):
        drawing = draw_connected(EdgeModel(name, None, 0.1), 150, stream(3, "lengths"), degree=12)
        lengths[name] = sum(distance(drawing.positions[a], drawing.positions[b]) for a, b in drawing.links) / len(
            drawing.links
        )
    assert lengths["waxman-2"] < 0.6 * lengths["waxman-1"]


def test_locality_links_pairs_within_its_reach() -> None:
    drawing = draw_connected(EdgeModel("locality", 0.9, 0.001, 0.25), 80, stream(4, "near"))
    near = sum(distance(drawing.positions[a], drawing.positions[b]) <= 0.25 * DIAGONAL for a, b in drawing.links)
    assert near > 0.95 * len(drawing.links)


@pytest.mark.parametrize("name", EDGE_MODELS)
def test_a_degree_sets_alpha_so_that_the_mean_degree_is_near(name: str) -> None:
    found = [2 * len(gtitm_flat(120, EdgeModel(name), seed=seed, degree=7).links) / 120 for seed in range(6)]
    assert 6.3 < sum(found) / len(found) < 7.7


def test_latency_follows_length_and_never_falls_to_nothing() -> None:
    overlay = gtitm_flat(60, EdgeModel("waxman-2"), seed=2, degree=6, ms_per_unit=0.2)
    for link in overlay.links:
        a, b = overlay.broker(link.a).position, overlay.broker(link.b).position
        assert a is not None
        assert b is not None
        assert link.latency_ms == max(LATENCY_MS_MIN, round(0.2 * math.dist(a, b), 3))
    tiny = gtitm_flat(20, EdgeModel("pure-random", 0.9), seed=2, ms_per_unit=0.00001)
    assert {link.latency_ms for link in tiny.links} == {LATENCY_MS_MIN}


@pytest.mark.parametrize("name", EDGE_MODELS)
def test_the_same_seed_gives_the_same_overlay_and_another_seed_another(name: str) -> None:
    one, same, other = (gtitm_flat(40, EdgeModel(name), seed=seed, degree=6) for seed in (1, 1, 2))
    assert one == same
    assert one != other


def test_a_graph_that_cannot_connect_is_refused_at_once_with_its_parameters() -> None:
    with pytest.raises(
        ParameterError,
        match=r"no connected overlay in 1 draw of waxman-2, alpha = 0.01, beta = 0.2, brokers = 50, scale = 100: "
        r"with a mean degree of 0\.\d+, about 4\d\.\d brokers have no link at all; raise alpha or beta",
    ):
        gtitm_flat(50, EdgeModel("waxman-2", 0.01), seed=1)


def test_a_graph_that_hardly_ever_connects_is_refused_after_a_hundred_draws() -> None:
    with pytest.raises(
        ParameterError, match=r"no connected overlay in 100 draws of pure-random, degree = 2, .*raise degree"
    ):
        gtitm_flat(30, EdgeModel("pure-random"), seed=1, degree=2)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: EdgeModel("waxman"), "unknown edge model 'waxman'; did you mean 'waxman-"),
        (lambda: EdgeModel("pure-random", 0.0), "alpha must be above 0 and at most 1, not 0"),
        (lambda: EdgeModel("pure-random", 1.1), "alpha must be above 0 and at most 1, not 1.1"),
        (lambda: EdgeModel("pure-random", 0.5, beta=0.1), "pure-random has no parameter 'beta'"),
        (lambda: EdgeModel("waxman-2", 0.5, beta=-1), "beta must be above 0, not -1"),
        (lambda: EdgeModel("locality", 0.5, gamma=2), "gamma of locality must be at most 1, not 2"),
        (
            lambda: gtitm_flat(10, EdgeModel("waxman-2"), seed=1),
            "waxman-2 needs alpha or degree, for example degree = 6",
        ),
        (lambda: gtitm_flat(10, EdgeModel("waxman-2", 0.5), seed=1, degree=3), "give alpha or degree, not both"),
        (lambda: gtitm_flat(10, EdgeModel("waxman-2"), seed=1, degree=10), "at most 9 neighbours"),
        (
            lambda: gtitm_flat(50, EdgeModel("waxman-2", beta=0.05), seed=1, degree=20),
            "it would take alpha = .*above 1",
        ),
        (
            lambda: gtitm_flat(10, EdgeModel("waxman-2", 0.5), seed=1, scale=3),
            "too few for brokers = 10; .* at least 4",
        ),
        (lambda: gtitm_flat(10, EdgeModel("waxman-2", 0.9), seed=1, ms_per_unit=0), "ms_per_unit must be above zero"),
    ],
)
def test_impossible_parameters_are_refused(make: Callable[[], object], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        make()
