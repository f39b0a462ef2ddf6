"""An overlay knows neighbours, clusters and edge brokers, in one order that does not depend on the input's order."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import random

import pytest

from topologies.broker_and_link import Broker, Link
from topologies.errors import OverlayError
from topologies.overlay import Overlay

BROKERS = (
    Broker("a1", ("west",)),
    Broker("a2", ("west",)),
    Broker("e1", ("west", "east")),
    Broker("e2", ("east", "west")),
    Broker("b1", ("east",)),
    Broker("z1", ("north", "east")),
    Broker("n1", ("north",)),
)
LINKS = (
    Link("a1", "a2"),
    Link("e1", "a2", latency_ms=2.5),
    Link("a2", "e2"),
    Link("e1", "b1"),
    Link("e2", "b1"),
    Link("b1", "z1"),
    Link("z1", "n1"),
)


@pytest.fixture(scope="module")
def overlay() -> Overlay:
    return Overlay("three", BROKERS, LINKS)


def test_brokers_links_and_neighbours_are_ascending(overlay: Overlay) -> None:
    assert overlay.ids == ("a1", "a2", "b1", "e1", "e2", "n1", "z1")
    assert [link.ends for link in overlay.links] == sorted(link.ends for link in overlay.links)
    assert overlay.neighbours("a2") == ("a1", "e1", "e2")


def test_a_link_is_found_from_both_ends(overlay: Overlay) -> None:
    assert overlay.link("a2", "e1") == overlay.link("e1", "a2") == Link("a2", "e1", latency_ms=2.5)
    assert overlay.has_link("e1", "a2")
    assert not overlay.has_link("a1", "e1")


def test_clusters_have_members_and_edge_brokers_join_them(overlay: Overlay) -> None:
    assert overlay.clusters == ("east", "north", "west")
    assert overlay.members("west") == ("a1", "a2", "e1", "e2")
    assert overlay.members("north") == ("n1", "z1")
    assert overlay.edge_brokers == ("e1", "e2", "z1")
    assert overlay.edges_between("west", "east") == overlay.edges_between("east", "west") == ("e1", "e2")
    assert overlay.edges_between("west", "north") == ()
    assert overlay.neighbouring_clusters == (("east", "north"), ("east", "west"))
    assert [id for id in overlay.ids if overlay.is_edge(id)] == list(overlay.edge_brokers)


def test_the_order_of_the_parts_makes_no_difference(overlay: Overlay) -> None:
    rng = random.Random(3)
    for _ in range(20):
        shuffled = Overlay("three", tuple(rng.sample(BROKERS, len(BROKERS))), tuple(rng.sample(LINKS, len(LINKS))))
        assert shuffled == overlay
        assert hash(shuffled) == hash(overlay)
        assert shuffled.neighbours("b1") == overlay.neighbours("b1")


def test_overlays_with_other_content_differ(overlay: Overlay) -> None:
    slower = tuple(dataclasses.replace(link, latency_ms=9.0) for link in LINKS)
    assert Overlay("three", BROKERS, slower) != overlay
    assert dataclasses.replace(overlay, name="other") != overlay


def test_an_overlay_survives_copying_and_pickling(overlay: Overlay) -> None:
    for twin in (copy.deepcopy(overlay), pickle.loads(pickle.dumps(overlay))):
        assert twin == overlay
        assert twin.edges_between("west", "east") == ("e1", "e2")


def test_one_broker_alone_is_an_overlay() -> None:
    alone = Overlay("alone", (Broker("b1"),), ())
    assert alone.neighbours("b1") == ()
    assert alone.clusters == alone.edge_brokers == ()
    assert not alone.is_edge("b1")


def test_clusters_can_be_replaced_and_all_else_stays(overlay: Overlay) -> None:
    replaced = overlay.with_clusters({id: ["all"] for id in overlay.ids})
    assert replaced.clusters == ("all",)
    assert replaced.links == overlay.links


@pytest.mark.parametrize(
    ("question", "words"),
    [
        (lambda overlay: overlay.broker("a22"), "no broker 'a22'; did you mean 'a2'"),
        (lambda overlay: overlay.neighbours("q"), "no broker 'q'; known: a1"),
        (lambda overlay: overlay.members("wets"), "no cluster 'wets'; did you mean 'west'"),
        (lambda overlay: overlay.edges_between("west", "eats"), "no cluster 'eats'"),
        (lambda overlay: overlay.edges_between("west", "west"), "not 'west' with itself"),
        (lambda overlay: overlay.link("a1", "n1"), "no link between 'a1' and 'n1'"),
    ],
)
def test_a_query_about_an_unknown_name_is_refused(overlay: Overlay, question: object, words: str) -> None:
    assert callable(question)
    with pytest.raises(OverlayError, match=words):
        question(overlay)
