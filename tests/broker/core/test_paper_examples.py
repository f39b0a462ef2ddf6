"""The examples of the thesis: tables and routes of its figures 1.2.1, 4.1.1 and 5.0.1, as far as the text gives them.

The figures themselves are not available. Each test says which links it assumes, and which statements they follow from.
"""

from __future__ import annotations

from broker.core.settings import Settings
from experiments.torture.world import World
from routing.multicast import destinations_of
from tests.harness.routing_tables import (
    local_advertisements,
    local_subscriptions,
    matching_brokers,
    remote_advertisements,
    remote_subscriptions,
    route_of,
    topology,
)

STRICT = Settings(is_open=False)

FIGURE_1 = [("B1", "B2"), ("B2", "B3"), ("B3", "B4"), ("B4", "B7"), ("B2", "B5"), ("B3", "B6")]

FIGURE_4 = [
    ("A", "B"),
    ("A", "C"),
    ("B", "E"),
    ("B", "F"),
    ("D", "E"),
    ("D", "G"),
    ("F", "G"),
    ("G", "H"),
]

FIGURE_5 = {
    "A1": ("A",),
    "A2": ("A",),
    "A3": ("A",),
    "A4": ("A",),
    "AB": ("A", "B"),
    "B1": ("B",),
    "B2": ("B",),
    "B3": ("B",),
    "B4": ("B",),
    "B5": ("B",),
    "B6": ("B",),
}
FIGURE_5_LINKS = [
    ("A1", "A2"),
    ("A2", "A3"),
    ("A2", "A4"),
    ("A4", "AB"),
    ("AB", "B1"),
    ("B1", "B2"),
    ("AB", "B3"),
    ("B3", "B4"),
    ("B3", "B5"),
    ("B5", "B6"),
    ("B2", "B4"),
]


def test_figure_1_2_1_fbr_stores_and_matches_at_every_broker_on_the_path() -> None:
    """[THESIS 1.2]: S1 and S2 are stored at B1, B2, B3, B4 and B7. An event of B1's is matched at the first four before
    it reaches B7. So these five are a line, and B5 and B6 are connected to it. The test assumes both subscribers at B7,
    because every broker of the line stores both subscriptions."""
    world = World("fbr", FIGURE_1, settings=STRICT)
    world.settle()
    world.advertise("B1", "publisher", "a1", "TRUE")
    world.settle()
    world.subscribe("B7", "first", "S1", "price > 10")
    world.subscribe("B7", "second", "S2", "price > 20")
    world.settle()
    stored = {name: world.broker(name).router.counts().remote_subscriptions for name in world.seats}
    assert stored == {"B1": 2, "B2": 2, "B3": 2, "B4": 2, "B5": 0, "B6": 0, "B7": 0}
    assert world.broker("B7").router.counts().local_subscriptions == 2
    id = world.publish("B1", "publisher", {"price": 30})
    assert id is not None
    world.settle()
    assert matching_brokers(world, id) == ["B1", "B2", "B3", "B4", "B7"]
    assert world.delivered == {(id, "first"): 1, (id, "second"): 1}


def figure_4() -> World:
    """[THESIS 4.1 to 4.4]: B reaches H through F and G. s3 passes B and F on its route from G to A. Without the link
    between B and F, events from A to G pass E, so the route over E is longer. Here D lengthens it, and C is a neighbour
    of A."""
    world = World("d-dbr", FIGURE_4, settings=STRICT)
    world.settle()
    world.advertise("A", "pub-c1", "a1", "price > 0")
    world.settle()
    for broker, client in (("B", "sub-c1"), ("E", "sub-c2"), ("G", "sub-c3")):
        world.subscribe(broker, client, "s", "price > 10")
    world.settle()
    return world


def test_figure_4_1_1_tables_of_the_matching_layer() -> None:
    world = figure_4()
    assert {name: local_advertisements(world, name) for name in world.seats if local_advertisements(world, name)} == {
        "A": ["pub-c1"]
    }
    assert {name: remote_advertisements(world, name) for name in world.seats} == {
        "A": [],
        **{name: [("A", "A")] for name in "BCDEFGH"},
    }
    assert {name: local_subscriptions(world, name) for name in "BEG"} == {
        "B": ["sub-c1"],
        "E": ["sub-c2"],
        "G": ["sub-c3"],
    }
    assert {name: local_subscriptions(world, name) for name in "ACDFH"} == {name: [] for name in "ACDFH"}
    assert {name: remote_subscriptions(world, name) for name in world.seats} == {
        "A": [("B", "B"), ("E", "E"), ("G", "G")],
        **{name: [] for name in "BCDEFGH"},
    }


def test_figure_4_1_1_tables_of_the_multicasting_layer() -> None:
    world = figure_4()
    tables = [topology(world, name) for name in world.seats]
    assert all(table is tables[0] for table in tables), "all brokers share one TRT"
    linked = {frozenset((name, other)) for name in world.seats for other in tables[0].neighbours(name)}
    assert linked == {frozenset(link) for link in FIGURE_4}
    next_hops = {destination: route.next_hop for destination, route in tables[0].routes_from("B").items()}
    assert next_hops == {"A": "A", "C": "A", "D": "E", "E": "E", "F": "F", "G": "F", "H": "F"}


def test_figure_4_1_1_an_event_carries_its_destinations_and_loses_them_on_its_path() -> None:
    world = figure_4()
    id = world.publish("A", "pub-c1", {"price": 20})
    assert id is not None
    world.settle()
    assert sorted((sender, receiver, destinations_of(message)) for sender, receiver, message in world.hops) == [
        ("A", "B", ("B", "E", "G")),
        ("B", "E", ("E",)),
        ("B", "F", ("G",)),
        ("F", "G", ("G",)),
    ]
    assert world.delivered == {(id, client): 1 for client in ("sub-c1", "sub-c2", "sub-c3")}


def test_figure_4_1_1_without_the_link_from_b_to_f_events_to_g_pass_e() -> None:
    """[THESIS 4.3]: the tables of the matching layer do not change."""
    world = figure_4()
    before = {name: remote_subscriptions(world, name) for name in world.seats}
    world.cut("B", "F")
    world.settle()
    id = world.publish("A", "pub-c1", {"price": 20})
    assert id is not None
    world.settle()
    assert route_of(world, id) == [("A", "B"), ("B", "E"), ("E", "D"), ("D", "G")]
    assert world.delivered == {(id, client): 1 for client in ("sub-c1", "sub-c2", "sub-c3")}
    assert {name: remote_subscriptions(world, name) for name in world.seats} == before


def figure_5() -> World:
    """[THESIS 5]: A1 publishes; A3, B2 and B6 subscribe; AB is in both clusters. The test assumes the second
    advertisement at B4, in the other cluster. The links inside the clusters are arbitrary, as long as each cluster is
    connected."""
    world = World("merc", FIGURE_5_LINKS, clusters=FIGURE_5, settings=STRICT)
    world.settle()
    world.advertise("A1", "pub-a", "a1", "TRUE")
    world.advertise("B4", "pub-b", "a2", "TRUE")
    world.settle()
    for broker, client in (("A3", "sub-1"), ("B2", "sub-2"), ("B6", "sub-3")):
        world.subscribe(broker, client, "s", "price > 10")
    world.settle()
    return world


def test_figure_5_0_1_the_edge_broker_has_tables_for_each_cluster() -> None:
    world = figure_5()
    assert remote_advertisements(world, "AB", "A") == [("A1", "A1")]
    assert remote_advertisements(world, "AB", "B") == [("B4", "B4")]
    assert remote_subscriptions(world, "AB", "A") == [("A3", "A3")]
    assert remote_subscriptions(world, "AB", "B") == [("B2", "B2"), ("B6", "B6")]
    assert topology(world, "AB", "A").brokers == ("A1", "A2", "A3", "A4", "AB")
    assert topology(world, "AB", "B").brokers == ("AB", "B1", "B2", "B3", "B4", "B5", "B6")


def test_figure_5_0_1_the_edge_broker_puts_itself_in_the_place_of_the_source() -> None:
    world = figure_5()
    for name in ("A2", "A3", "A4"):
        assert remote_advertisements(world, name, "A") == [("A1", "A1"), ("B4", "AB")]
    assert remote_advertisements(world, "A1", "A") == [("B4", "AB")]
    for name in ("B1", "B2", "B3", "B5", "B6"):
        assert remote_advertisements(world, name, "B") == [("A1", "AB"), ("B4", "B4")]
    assert remote_subscriptions(world, "A1", "A") == [("A3", "A3"), ("B2", "AB"), ("B6", "AB")]
    assert remote_subscriptions(world, "B4", "B") == [("A3", "AB"), ("B2", "B2"), ("B6", "B6")]


def test_figure_5_0_1_brokers_inside_a_cluster_know_their_own_cluster_only() -> None:
    world = figure_5()
    assert topology(world, "A1", "A").brokers == ("A1", "A2", "A3", "A4", "AB")
    assert topology(world, "B6", "B").brokers == ("AB", "B1", "B2", "B3", "B4", "B5", "B6")


def test_figure_5_0_1_an_event_is_matched_again_at_the_edge() -> None:
    world = figure_5()
    id = world.publish("A1", "pub-a", {"price": 20})
    assert id is not None
    world.settle()
    destinations: dict[str, set[str]] = {}
    for _, _, message in world.hops:
        destinations.setdefault(message.source, set()).update(destinations_of(message))
    assert destinations == {"A1": {"A3", "AB"}, "AB": {"B2", "B6"}}
    assert world.delivered == {(id, client): 1 for client in ("sub-1", "sub-2", "sub-3")}
    assert sorted(matching_brokers(world, id)) == ["A1", "A3", "AB", "B2", "B6"]
