"""How brokers learn that the overlay changed: by multicast where they agree, by a flood around a failure."""

from __future__ import annotations

import itertools

import pytest

from broker.core.settings import SECOND, Settings
from experiments.torture.world import World, link
from tests.harness.routing_tables import topology

BROKERS = [f"b{number}" for number in range(1, 9)]
RING = [*itertools.pairwise(BROKERS), ("b1", "b8")]
CHORDS = [("b1", "b5"), ("b2", "b6"), ("b3", "b7"), ("b4", "b8")]


def agreed(links: list[tuple[str, str]]) -> World:
    """An overlay whose brokers agree on the topology, without heartbeats in flight. The message counts start at 0."""
    world = World("d-dbr", links)
    world.run(10 * SECOND + SECOND // 4)
    world.sent.clear()
    return world


def all_know(world: World) -> bool:
    return len({topology(world, name) for name in world.seats}) == 1


def test_a_new_link_is_announced_with_one_message_for_each_broker() -> None:
    world = agreed([*RING, *CHORDS])
    world.connect("b1", "b3")
    world.run(SECOND // 2)
    assert all_know(world)
    assert topology(world, "b6").distance("b1", "b3") == 1
    assert world.sent["Announce"] == 2 * (len(BROKERS) - 1), "both ends inform all others"
    assert world.sent["LinkStates"] == 0


def test_a_failure_is_flooded_and_costs_more_messages_than_brokers() -> None:
    world = agreed([*RING, *CHORDS])
    world.cut("b1", "b2")
    world.run(SECOND // 2)
    assert all_know(world)
    assert world.sent["Announce"] == 0
    assert world.sent["LinkStates"] > 2 * len(BROKERS)


def test_a_farewell_is_multicast() -> None:
    world = agreed([*RING, *CHORDS])
    world.leave("b5")
    world.run(SECOND // 2)
    assert world.sent["Announce"] == len(BROKERS) - 1
    assert "b5" not in topology(world, "b1").brokers


@pytest.mark.parametrize("lost", range(7))
def test_an_announcement_that_is_lost_is_repaired_by_heartbeats(lost: int) -> None:
    """Loses each frame of the update in turn."""
    world = agreed([*RING, *CHORDS])
    left = itertools.count(-lost)
    world.is_lost = lambda message: type(message).__name__ == "Announce" and next(left) == 0
    world.connect("b1", "b3")
    world.run(5 * SECOND)
    assert all_know(world)
    assert topology(world, "b6").distance("b1", "b3") == 1


def test_a_link_that_is_given_up_is_out_of_everybodys_table_before_it_closes() -> None:
    settings = Settings(reorganise_every=10 * SECOND, most_links=2, is_open=False)
    world = World("d-dbr", [*itertools.pairwise(BROKERS[:6]), ("b1", "b6")], settings=settings)
    world.settle()
    world.advertise("b1", "p", "all", "TRUE")
    world.subscribe("b4", "s", "all", "TRUE")
    before = set(world.links)
    while before <= set(world.links):
        assert world.now < 120 * SECOND, "no link was given up"
        world.publish("b1", "p", {"a": 1})
        world.run(SECOND // 10)
        known = {link(a, b) for a in world.seats for b in topology(world, "b2").neighbours(a)}
    (closed,) = before - set(world.links)
    assert closed not in known
    world.run(5 * SECOND)
    assert all_know(world)
    assert set(world.delivered.values()) == {1}
