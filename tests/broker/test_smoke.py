from __future__ import annotations

import pytest

from tests.broker.fake_wire import World

LINE = [("b1", "b2"), ("b2", "b3"), ("b3", "b4")]
CLUSTERS = {"b1": ("x",), "b2": ("x", "y"), "b3": ("y",), "b4": ("y",)}


@pytest.mark.parametrize("protocol", ["flooding", "d-dbr", "merc", "fbr"])
def test_line(protocol: str) -> None:
    world = World(protocol, LINE, clusters=CLUSTERS)
    world.settle()
    world.subscribe("b4", "s", "one", "price > 10")
    world.subscribe("b1", "t", "two", "price > 10")
    world.settle()
    id = world.publish("b1", "p", {"price": 12})
    assert id is not None
    world.publish("b1", "p", {"price": 2})
    world.settle()
    assert world.delivered == {(id, "s"): 1, (id, "t"): 1}
    assert [world.broker(b).in_custody for b in world.seats] == [0, 0, 0, 0]
    assert [world.broker(b).unsettled for b in world.seats] == [0, 0, 0, 0]
