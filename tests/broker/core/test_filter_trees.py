"""Advertisement trees of filter-based routing are removed at all brokers, also at one that was down meanwhile."""

from __future__ import annotations

import pytest

from broker.core.inputs import FrameReceived
from broker.core.settings import SECOND, Settings
from experiments.torture.random_scenario import Scenario
from experiments.torture.world import World
from routing.messages import EntryId, PublicationId, Publish

STRICT = Settings(is_open=False)
LINE = [("b1", "b2"), ("b2", "b3"), ("b3", "b4")]
RING = [*LINE, ("b1", "b4")]


def trees(world: World) -> dict[str, int]:
    """The number of advertisement trees of each running broker."""
    living = [name for name, seat in world.seats.items() if seat.broker is not None]
    return {name: world.broker(name).router.counts().advertisements for name in living}


def test_a_tree_that_was_withdrawn_while_a_broker_of_it_was_down_ends_behind_that_broker_too() -> None:
    world = World("fbr", LINE, settings=STRICT)
    world.settle()
    world.advertise("b1", "publisher", "mine", "TRUE")
    world.subscribe("b4", "subscriber", "all", "TRUE")
    world.settle()
    world.crash("b2")
    world.run(5 * SECOND)
    world.unadvertise("b1", "publisher", "mine")
    world.run(5 * SECOND)
    world.start("b2")
    world.connect("b1", "b2")
    world.connect("b2", "b3")
    world.run(10 * SECOND)
    assert trees(world) == {"b1": 0, "b2": 0, "b3": 0, "b4": 0}
    assert world.broker("b4").router.counts().remote_subscriptions == 0


def test_without_the_broker_towards_home_others_may_end_a_tree() -> None:
    world = World("fbr", RING, settings=STRICT)
    world.settle()
    world.advertise("b1", "publisher", "mine", "TRUE")
    world.settle()
    world.crash("b2")
    world.crash("b4")
    world.run(5 * SECOND)
    world.unadvertise("b1", "publisher", "mine")
    world.start("b4")
    world.connect("b1", "b4")
    world.connect("b3", "b4")
    world.run(10 * SECOND)
    assert trees(world) == {"b1": 0, "b3": 0, "b4": 0}


def test_a_publication_without_its_tree_at_a_broker_is_dropped_by_name() -> None:
    world = World("fbr", LINE, settings=STRICT)
    world.settle()
    id, tree = PublicationId("b1", 1, 7), EntryId("b1", 1, 99)
    world.input("b2", FrameReceived("b1", Publish(id, "b1", "", (), ("b2",), b"\x80", b"", tree=tree), 1))
    world.settle()
    assert world.broker("b2").drops == {"tree is gone": 1}


def test_with_readvertise_a_tree_uses_the_other_path_when_a_link_is_cut() -> None:
    world = World("fbr", RING, settings=STRICT, options={"readvertise": True})
    world.settle()
    world.advertise("b1", "publisher", "mine", "TRUE")
    world.subscribe("b2", "near", "all", "TRUE")
    world.subscribe("b3", "far", "all", "TRUE")
    world.settle()
    world.cut("b1", "b2")
    world.run(5 * SECOND)
    id = world.publish("b1", "publisher", {"a": 1})
    world.run(5 * SECOND)
    assert world.delivered == {(id, "near"): 1, (id, "far"): 1}


def test_without_readvertise_it_does_not() -> None:
    world = World("fbr", RING, settings=STRICT)
    world.settle()
    world.advertise("b1", "publisher", "mine", "TRUE")
    world.subscribe("b2", "near", "all", "TRUE")
    world.settle()
    world.cut("b1", "b2")
    world.run(5 * SECOND)
    world.publish("b1", "publisher", {"a": 1})
    world.run(5 * SECOND)
    assert not world.delivered


def test_with_readvertise_no_copy_circulates_when_every_path_is_lost() -> None:
    world = World("fbr", [*RING, ("b4", "b5")], settings=STRICT, options={"readvertise": True})
    world.settle()
    world.advertise("b5", "publisher", "mine", "TRUE")
    for name in ("b1", "b2", "b3"):
        world.subscribe(name, f"client-{name}", "all", "TRUE")
    world.settle()
    world.cut("b4", "b5")
    world.run(5 * SECOND)
    world.sent.clear()
    world.run(20 * SECOND)
    assert world.sent["Update"] == 0, "no broker forwards anything for ever"
    world.connect("b4", "b5")
    world.run(5 * SECOND)
    id = world.publish("b5", "publisher", {"a": 1})
    world.run(5 * SECOND)
    assert world.delivered == {(id, f"client-{name}"): 1 for name in ("b1", "b2", "b3")}


@pytest.mark.parametrize("seed", range(6))
def test_with_readvertise_publications_owed_over_the_present_trees_arrive(seed: int) -> None:
    scenario = Scenario(seed, "fbr", is_open=seed % 2 == 0, has_faults=True, options={"readvertise": True})
    scenario.run()
