"""Brokers that exchange many publications get a link, within their limit, and the overlay stays connected."""

from __future__ import annotations

import pytest

from broker.core.settings import MILLISECOND, SECOND, Settings
from experiments.torture.world import World

LINE = [("b1", "b2"), ("b2", "b3"), ("b3", "b4"), ("b4", "b5"), ("b5", "b6")]
RING = [*LINE, ("b1", "b6")]


def busy(links: list[tuple[str, str]], most_links: int, seed: int = 0) -> World:
    """An overlay in which b1 publishes much for b4, and no other broker publishes."""
    settings = Settings(reorganise_every=10 * SECOND, most_links=most_links, is_open=False)
    world = World("d-dbr", links, settings=settings, seed=seed)
    world.settle()
    world.advertise("b1", "p", "all", "TRUE")
    world.subscribe("b4", "s", "all", "TRUE")
    world.run(100 * MILLISECOND)
    for number in range(600):
        world.publish("b1", "p", {"a": number})
        world.run(SECOND // 10)
    return world


def is_connected(world: World) -> bool:
    topology = world.broker("b1").router._domains[""].multicast.topology  # type: ignore[attr-defined]
    return len(topology.routes_from("b1")) == len(world.seats) - 1


@pytest.mark.parametrize("seed", range(4))
def test_a_busy_pair_gets_a_link_while_there_is_room(seed: int) -> None:
    world = busy(LINE, most_links=4, seed=seed)
    assert ("b1", "b4") in world.links
    assert set(LINE) <= set(world.links)
    assert len(world.delivered) == 600
    assert set(world.delivered.values()) == {1}


@pytest.mark.parametrize("seed", range(4))
def test_a_new_link_replaces_the_least_useful(seed: int) -> None:
    world = busy(RING, most_links=2, seed=seed)
    assert ("b1", "b4") in world.links
    assert set(RING) - set(world.links)
    assert all(sum(name in each for each in world.links) <= 3 for name in world.seats)
    assert is_connected(world)
    assert len(world.delivered) == 600


@pytest.mark.parametrize("seed", range(4))
def test_the_overlay_never_falls_apart(seed: int) -> None:
    """On a line every link except the new ones is needed."""
    world = busy(LINE, most_links=2, seed=seed)
    assert is_connected(world)
    assert len(world.delivered) == 600


def test_a_closed_link_is_opened_again_when_brokers_are_cut_off() -> None:
    world = busy(RING, most_links=2)
    given_up = sorted(set(RING) - set(world.links))
    assert given_up
    for each in sorted(world.links):
        if given_up[0][0] in each:
            world.cut(*each)
    world.settle()
    assert is_connected(world)
    assert given_up[0] in world.links


def test_without_a_cycle_links_stay_as_they_are() -> None:
    world = World("d-dbr", LINE)
    world.settle()
    world.subscribe("b4", "s", "all", "TRUE")
    for number in range(60):
        world.publish("b1", "p", {"a": number})
        world.run(SECOND)
    assert set(world.links) == set(LINE)


def test_a_broker_continues_to_reorganise_after_a_neighbour_has_left() -> None:
    """A neighbour is not part of the topology between the announcement of its leave and the end of its link."""
    settings = Settings(reorganise_every=10 * SECOND, most_links=2, is_open=False)
    world = World("d-dbr", RING, settings=settings)
    world.run(5 * SECOND)
    world.leave("b2")
    world.run(10 * SECOND)
    assert ("b1", "b2") in world.links
    for name in ("b1", "b3"):
        assert not world.broker(name).failures
        assert "reorganise" in world.seats[name].timers
