"""MERC beyond a hierarchy: redundant edge brokers, their crash and restart, and clusters in a cycle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest

from broker.core.inputs import FrameReceived
from broker.core.settings import MILLISECOND, SECOND, Settings
from experiments.torture.world import Link, World
from routing.messages import PublicationId
from tests.harness.routing_tables import remote_advertisements, remote_subscriptions, route_of

STRICT = Settings(is_open=False)

TWO_EDGES = [("a", "e1"), ("a", "e2"), ("e1", "z"), ("e2", "z")]
TWO_EDGES_CLUSTERS = {"a": ("x",), "e1": ("x", "y"), "e2": ("x", "y"), "z": ("y",)}

# Four clusters in a cycle, with an edge broker between neighbours and a broker inside each.
CYCLE = [
    ("in-w", "wx"),
    ("wx", "in-x"),
    ("in-x", "xy"),
    ("xy", "in-y"),
    ("in-y", "yz"),
    ("yz", "in-z"),
    ("in-z", "zw"),
    ("zw", "in-w"),
]
CYCLE_CLUSTERS = {
    "in-w": ("w",),
    "wx": ("w", "x"),
    "in-x": ("x",),
    "xy": ("x", "y"),
    "in-y": ("y",),
    "yz": ("y", "z"),
    "in-z": ("z",),
    "zw": ("w", "z"),
}


def two_edges(settings: Settings = STRICT, seed: int = 0) -> World:
    world = World("merc", TWO_EDGES, clusters=TWO_EDGES_CLUSTERS, settings=settings, seed=seed)
    world.settle()
    world.advertise("a", "publisher", "all", "TRUE")
    world.subscribe("z", "subscriber", "all", "TRUE")
    world.settle()
    return world


def publish(world: World, broker: str = "a") -> PublicationId:
    known = len(world.accepted)
    world.publish(broker, "publisher", {"a": 1})
    if world.settings.is_durable:
        world.run(MILLISECOND)
    assert len(world.accepted) == known + 1
    return list(world.accepted)[-1]


def restart(world: World, name: str, links: Iterable[Link] = TWO_EDGES) -> None:
    world.start(name)
    for each in links:
        if name in each:
            world.connect(*each)


def received(world: World, publication: PublicationId) -> Counter[str]:
    return Counter(receiver for _, receiver in route_of(world, publication))


def test_of_two_edge_brokers_the_smaller_passes_on() -> None:
    world = two_edges()
    assert remote_advertisements(world, "z", "y") == [("a", "e1")]
    assert remote_subscriptions(world, "a", "x") == [("z", "e1")]
    id = publish(world)
    world.settle()
    assert route_of(world, id) == [("a", "e1"), ("e1", "z")]
    assert world.delivered == {(id, "subscriber"): 1}


@pytest.mark.parametrize("is_open", [True, False], ids=["open", "strict"])
def test_when_an_edge_broker_crashes_the_next_takes_over(is_open: bool) -> None:
    world = two_edges(Settings(is_open=is_open))
    world.crash("e1")
    world.run(10 * SECOND)
    id = publish(world)
    world.run(SECOND)
    assert route_of(world, id) == [("a", "e2"), ("e2", "z")]
    assert world.delivered == {(id, "subscriber"): 1}


def test_an_edge_broker_that_returns_passes_on_again() -> None:
    world = two_edges()
    world.crash("e1")
    world.run(10 * SECOND)
    restart(world, "e1")
    world.settle()
    assert remote_advertisements(world, "z", "y") == [("a", "e1")]
    assert remote_subscriptions(world, "a", "x") == [("z", "e1")]
    id = publish(world)
    world.run(SECOND)
    assert route_of(world, id) == [("a", "e1"), ("e1", "z")]
    assert world.delivered == {(id, "subscriber"): 1}


def test_publications_in_flight_through_a_crashed_edge_broker_arrive_once_by_the_next() -> None:
    for seed in range(8):
        world = two_edges(seed=seed)
        ids = []
        for _ in range(6):
            ids.append(publish(world))
            world.run(MILLISECOND)
        world.crash("e1")
        ids += [publish(world) for _ in range(2)]
        world.run(60 * SECOND)
        assert world.delivered == {(id, "subscriber"): 1 for id in ids}
        world.run(60 * SECOND)
        assert world.broker("a").unsettled == 0


@pytest.mark.parametrize("is_open", [True, False], ids=["open", "strict"])
def test_nothing_is_lost_when_an_edge_broker_crashes_and_returns_with_empty_tables(is_open: bool) -> None:
    for seed in range(12):
        world = two_edges(Settings(is_open=is_open), seed)
        id = publish(world)
        world.run(world.random.randrange(6) * MILLISECOND)
        world.crash("e1")
        world.run(3 * SECOND)
        restart(world, "e1")
        world.run(70 * SECOND)
        assert world.delivered == {(id, "subscriber"): 1}, f"seed {seed}"


def test_a_durable_edge_broker_that_served_its_own_clients_passes_on_after_its_restart() -> None:
    for seed in range(12):
        world = two_edges(Settings(is_durable=True, is_open=False), seed)
        world.subscribe("e1", "near", "all", "TRUE")
        world.settle()
        id = publish(world)
        world.run(world.random.randrange(6) * MILLISECOND)
        world.crash("e1")
        world.run(SECOND)
        restart(world, "e1")
        world.connect_client("e1", "near")
        world.run(70 * SECOND)
        assert world.delivered[id, "subscriber"] == 1, f"seed {seed}"
        assert world.delivered_in_life[id, "near", "e1", 2] <= 1, f"seed {seed}"


def test_an_edge_broker_that_leaves_hands_over_to_the_next() -> None:
    world = two_edges()
    world.leave("e1")
    world.run(SECOND)
    assert remote_advertisements(world, "z", "y") == [("a", "e2")]
    id = publish(world)
    world.run(SECOND)
    assert route_of(world, id) == [("a", "e2"), ("e2", "z")]
    assert world.delivered == {(id, "subscriber"): 1}


def test_an_edge_brokers_own_clients_are_served_in_one_cluster_only() -> None:
    world = World("merc", TWO_EDGES, clusters=TWO_EDGES_CLUSTERS)
    world.settle()
    for name in ("e1", "e2", "z"):
        world.subscribe(name, f"at {name}", "all", "TRUE")
    world.settle()
    for source in world.seats:
        id = publish(world, source)
        world.run(SECOND)
        assert {client: world.delivered[id, client] for client in ("at e1", "at e2", "at z")} == {
            "at e1": 1,
            "at e2": 1,
            "at z": 1,
        }
        assert max(received(world, id).values()) == 1


def cycle(*subscribers: str) -> World:
    world = World("merc", CYCLE, clusters=CYCLE_CLUSTERS)
    world.settle()
    for name in subscribers:
        world.subscribe(name, f"at {name}", "all", "TRUE")
    world.settle()
    return world


@pytest.mark.parametrize("subscriber", list(CYCLE_CLUSTERS))
def test_in_a_cycle_of_clusters_a_publication_uses_one_path(subscriber: str) -> None:
    world = cycle(subscriber)
    id = publish(world, "in-x")
    world.run(SECOND)
    assert world.delivered == {(id, f"at {subscriber}"): 1}
    assert all(count == 1 for count in received(world, id).values())


@pytest.mark.parametrize("publisher", list(CYCLE_CLUSTERS))
def test_in_a_cycle_of_clusters_every_client_gets_a_publication_once(publisher: str) -> None:
    """A publication with many destinations may enter a cluster from both sides. No broker receives it more often."""
    world = cycle(*CYCLE_CLUSTERS)
    id = publish(world, publisher)
    world.run(SECOND)
    assert world.delivered == {(id, f"at {name}"): 1 for name in CYCLE_CLUSTERS}
    assert max(received(world, id).values()) <= 2


@pytest.mark.parametrize("dead", ["wx", "in-w", "zw"])
def test_in_a_cycle_of_clusters_the_other_path_is_used_when_one_is_cut(dead: str) -> None:
    """The crashed broker is in the publisher's cluster, or one cluster away."""
    world = cycle("in-z")
    first = publish(world, "in-x")
    world.run(SECOND)
    assert received(world, first).keys() == {"wx", "in-w", "zw", "in-z"}
    world.crash(dead)
    world.run(10 * SECOND)
    second = publish(world, "in-x")
    world.run(SECOND)
    assert received(world, second).keys() == {"xy", "in-y", "yz", "in-z"}
    restart(world, dead, CYCLE)
    world.run(10 * SECOND)
    third = publish(world, "in-x")
    world.run(SECOND)
    assert received(world, third).keys() == {"wx", "in-w", "zw", "in-z"}
    assert world.delivered == {(id, "at in-z"): 1 for id in (first, second, third)}


@pytest.mark.parametrize("dead", ["wx", "zw"])
def test_in_a_cycle_of_clusters_publications_in_flight_to_a_crashed_broker_use_the_other_path(dead: str) -> None:
    for seed in range(4):
        world = World("merc", CYCLE, clusters=CYCLE_CLUSTERS, seed=seed)
        world.settle()
        world.subscribe("in-z", "at in-z", "all", "TRUE")
        world.settle()
        id = publish(world, "in-x")
        world.run(MILLISECOND)
        world.crash(dead)
        world.run(90 * SECOND)
        assert world.delivered == {(id, "at in-z"): 1}, f"seed {seed}"


def test_entries_never_enter_a_cluster_twice() -> None:
    world = cycle(*CYCLE_CLUSTERS)
    for name in CYCLE_CLUSTERS:
        for cluster in CYCLE_CLUSTERS[name]:
            homes = [home for home, _ in remote_subscriptions(world, name, cluster)]
            assert len(homes) == len(set(homes))
            assert name not in homes


def test_a_withdrawn_entry_does_not_circulate_in_a_cycle() -> None:
    world = cycle(*CYCLE_CLUSTERS)
    for name in CYCLE_CLUSTERS:
        world.unsubscribe(name, f"at {name}", "all")
    world.run(SECOND)
    assert all(world.broker(name).router.counts().remote_subscriptions == 0 for name in world.seats)
    sent = world.sent["Update"]
    world.run(60 * SECOND)
    assert world.sent["Update"] == sent, "no broker has anything left to send"


def test_a_copy_that_arrived_by_another_path_is_not_delivered_again() -> None:
    world = two_edges()
    id = publish(world)
    world.run(SECOND)
    ((_, _, message),) = [hop for hop in world.hops if hop[1] == "z"]
    world.input("z", FrameReceived("e2", message, 1))
    world.run(SECOND)
    assert world.delivered == {(id, "subscriber"): 1}


def test_publications_for_a_partitioned_cluster_arrive_when_it_is_whole_again() -> None:
    links = [("a", "e"), ("e", "m"), ("m", "z")]
    world = World("merc", links, clusters={"a": ("x",), "e": ("x", "y"), "m": ("y",), "z": ("y",)})
    world.settle()
    world.subscribe("z", "subscriber", "all", "TRUE")
    world.settle()
    world.cut("m", "z")
    world.run(5 * SECOND)
    assert remote_subscriptions(world, "a", "x") == [("z", "e")], "unreachable is not gone"
    id = world.publish("a", "publisher", {"n": 1})
    world.run(5 * SECOND)
    assert not world.delivered
    world.connect("m", "z")
    world.run(10 * SECOND)
    assert world.delivered == {(id, "subscriber"): 1}


def test_a_fresh_offer_replaces_a_stale_one_which_is_used_again_when_it_is_the_only_one() -> None:
    """Two clusters lead from x to the subscriber's; the shorter is cut, then the longer too."""
    links = [("a", "xy"), ("xy", "m"), ("m", "yz"), ("a", "xw"), ("xw", "wv"), ("wv", "vz"), ("vz", "z"), ("yz", "z")]
    clusters = {
        "a": ("x",),
        "xy": ("x", "y"),
        "m": ("y",),
        "yz": ("y", "z"),
        "xw": ("x", "w"),
        "wv": ("w", "v"),
        "vz": ("v", "z"),
        "z": ("z",),
    }
    world = World("merc", links, clusters=clusters)
    world.settle()
    world.subscribe("z", "subscriber", "all", "TRUE")
    world.run(10 * SECOND)
    assert remote_subscriptions(world, "a", "x") == [("z", "xy")]
    world.cut("m", "yz")
    world.run(10 * SECOND)
    assert remote_subscriptions(world, "a", "x") == [("z", "xw")]
    world.cut("xw", "wv")
    world.run(10 * SECOND)
    assert remote_subscriptions(world, "a", "x") == [("z", "xy")], "both are stale now, so the shorter one is used"
    world.connect("xw", "wv")
    world.run(10 * SECOND)
    assert remote_subscriptions(world, "a", "x") == [("z", "xw")]
