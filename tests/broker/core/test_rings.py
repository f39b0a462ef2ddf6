"""Brokers never wait for each other in a circle: on overlays with cycles every publication is settled, and no
publication stays unsettled, pending or queued."""

from __future__ import annotations

import pytest

from broker.core.settings import MILLISECOND, SECOND, Settings
from experiments.torture.world import World
from routing.registry import names

SMALL = Settings(window=16)
SHAPES: dict[str, dict[str, tuple[str, ...]]] = {
    "three edge brokers": {"b1": ("x", "y"), "b2": ("y", "z"), "b3": ("z", "x")},
    "inner brokers": {
        "b1": ("x", "y"),
        "b2": ("y", "z"),
        "b3": ("z", "x"),
        "i1": ("y",),
        "i2": ("z",),
        "i3": ("x",),
    },
    "a hub": {
        "b1": ("x", "y"),
        "b2": ("y", "z"),
        "b3": ("z", "x"),
        "h": ("w",),
        "p1": ("w", "x"),
        "p2": ("w", "y"),
        "p3": ("w", "z"),
    },
}
LINKS = {
    "three edge brokers": [("b1", "b2"), ("b2", "b3"), ("b1", "b3")],
    "inner brokers": [("b1", "i1"), ("i1", "b2"), ("b2", "i2"), ("i2", "b3"), ("b3", "i3"), ("i3", "b1"), ("b1", "b2")],
    "a hub": [
        ("h", "p1"),
        ("h", "p2"),
        ("h", "p3"),
        ("p1", "b1"),
        ("p1", "b3"),
        ("p2", "b1"),
        ("p2", "b2"),
        ("p3", "b2"),
        ("p3", "b3"),
    ],
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("protocol", names())
def test_more_than_a_window_is_accepted_delivered_once_and_settled(protocol: str, shape: str, seed: int) -> None:
    world = World(protocol, LINKS[shape], clusters=SHAPES[shape], settings=SMALL, seed=seed)
    for name in world.seats:
        world.subscribe(name, f"at {name}", "all", "TRUE")
    world.settle()
    ids = []
    for number in range(5 * SMALL.window):
        for name in world.seats:
            ids.append(world.publish(name, "publisher", {"a": number}))
        world.run(10 * MILLISECOND)
    world.run(SECOND)
    assert None not in ids
    assert not world.refused
    assert world.delivered == {(id, f"at {name}"): 1 for id in ids for name in world.seats}
    for name in world.seats:
        broker = world.broker(name)
        assert (broker.in_custody, broker.unsettled, broker.postponed) == (0, 0, 0)
        assert not any(sum(queue) for queue in broker.links.queues().values())


def test_a_publication_that_arrives_again_in_a_reversed_tree_is_settled() -> None:
    """Filter-based routing: the publisher's broker restarts, and its new tree has the opposite direction."""
    links = [("home", "d"), ("d", "b"), ("a", "b"), ("a", "c"), ("a", "home")]
    world = World("fbr", links, settings=Settings(is_durable=True))
    world.cut("a", "home")
    world.settle()
    for name in world.seats:
        world.subscribe(name, f"at {name}", "all", "TRUE")
    world.settle()
    world.crash("c")
    world.run(3 * SECOND)
    world.publish("home", "publisher", {"a": 1})
    world.run(200 * MILLISECOND)
    world.crash("home")
    world.run(100 * MILLISECOND)
    world.start("home")
    world.connect_client("home", "at home")
    world.connect("a", "home")
    world.run(14 * SECOND)
    world.start("c")
    world.connect("a", "c")
    world.connect_client("c", "at c")
    world.run(20 * SECOND)
    world.connect("home", "d")
    world.run(100 * SECOND)
    (id,) = world.accepted
    assert {client for each, client in world.delivered if each == id} == {f"at {name}" for name in world.seats}
    assert [world.broker(name).in_custody for name in world.seats] == [0] * 5
    assert max(world.delivered_in_life.values()) == 1


@pytest.mark.parametrize("protocol", names())
def test_a_neighbour_that_is_away_stops_no_publisher(protocol: str) -> None:
    links = [("b1", "b2"), ("b2", "b3")]
    world = World(protocol, links, clusters={"b1": ("x",), "b2": ("x", "y"), "b3": ("y",)}, settings=SMALL)
    world.settle()
    world.crash("b3")
    world.run(10 * SECOND)
    for number in range(10 * SMALL.window):
        world.publish("b1", "publisher", {"a": number})
        world.run(10 * MILLISECOND)
    assert len(world.accepted) == 10 * SMALL.window
    assert not world.refused
