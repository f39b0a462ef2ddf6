"""Brokers that talk much get a link, within their limit, and the overlay never falls apart for it."""

from __future__ import annotations

from broker.settings import SECOND, Settings
from tests.broker.fake_wire import World

LINE = [("b1", "b2"), ("b2", "b3"), ("b3", "b4"), ("b4", "b5"), ("b5", "b6")]
RING = [*LINE, ("b1", "b6")]


def busy(links: list[tuple[str, str]], most_links: int) -> World:
    """b1 publishes much that b4 wants."""
    settings = Settings(reorganise_every=10 * SECOND, most_links=most_links)
    world = World("d-dbr", links, settings=settings)
    world.settle()
    world.subscribe("b4", "s", "all", "TRUE")
    world.settle()
    for number in range(60):
        world.publish("b1", "p", {"a": number})
        world.run(SECOND)
    return world


def test_a_busy_pair_gets_a_link_while_there_is_room() -> None:
    world = busy(LINE, most_links=4)
    assert ("b1", "b4") in world.links
    assert set(LINE) <= set(world.links)
    assert len(world.delivered) == 60
    assert set(world.delivered.values()) == {1}


def test_a_new_link_takes_the_place_of_the_least_useful() -> None:
    world = busy(RING, most_links=2)
    assert ("b1", "b4") in world.links
    assert all(sum(name in each for each in world.links) <= 3 for name in world.seats)
    assert len(world.delivered) == 60


def test_a_link_without_which_the_overlay_falls_apart_is_kept() -> None:
    world = busy(LINE, most_links=2)
    assert set(LINE) <= set(world.links)
    assert len(world.delivered) == 60


def test_a_link_that_was_given_up_comes_back_when_brokers_are_cut_off() -> None:
    world = busy(RING, most_links=2)
    given_up = sorted(set(RING) - set(world.links))
    assert given_up
    for each in sorted(world.links):
        if given_up[0][0] in each:
            world.cut(*each)
    world.settle()
    assert given_up[0] in world.links


def test_without_a_cycle_links_stay_as_they_are() -> None:
    world = World("d-dbr", LINE)
    world.settle()
    world.subscribe("b4", "s", "all", "TRUE")
    for number in range(60):
        world.publish("b1", "p", {"a": number})
        world.run(SECOND)
    assert set(world.links) == set(LINE)
