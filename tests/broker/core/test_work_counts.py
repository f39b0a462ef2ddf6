"""How often brokers match, store and send under each protocol: the differences that the thesis studies."""

from __future__ import annotations

from itertools import pairwise

import pytest

import topologies
from broker.core.effects import DroppedRow, MatchedRow
from broker.core.inputs import FrameReceived
from broker.core.settings import SECOND, Settings
from experiments.torture.world import Link, World
from routing.d_dbr import DDBR
from routing.messages import PublicationId, Publish
from routing.multicast import destinations_of
from routing.router import Router, RoutingDecision
from tests.harness.routing_tables import holders, local_subscriptions, matching_brokers, remote_subscriptions, route_of

STRICT = Settings(is_open=False)
TEN = [f"b{number}" for number in range(10)]
LINE = list(pairwise(TEN))
HALVES = dict.fromkeys(TEN[:5], ("west",)) | {"b5": ("west", "east")} | dict.fromkeys(TEN[6:], ("east",))


def from_end_to_end(world: World, *others: str) -> PublicationId:
    """Publishes from one end of the line to a subscriber at the other end, and to subscribers at `others`."""
    world.settle()
    world.advertise("b0", "publisher", "all", "TRUE")
    world.run(SECOND)
    world.subscribe("b9", "subscriber", "some", "price > 10")
    world.run(SECOND)
    id = world.publish("b0", "publisher", {"price": 20})
    assert id is not None
    world.run(SECOND)
    assert world.delivered == {(id, client): 1 for client in ("subscriber", *others)}
    return id


@pytest.mark.parametrize(
    ("protocol", "expected"),
    [("fbr", TEN), ("flooding", TEN), ("d-dbr", ["b0", "b9"]), ("merc", ["b0", "b5", "b9"])],
)
def test_on_a_line_of_ten_a_publication_is_matched_at(protocol: str, expected: list[str]) -> None:
    world = World(protocol, LINE, clusters=HALVES, settings=STRICT)
    id = from_end_to_end(world)
    assert matching_brokers(world, id) == expected
    assert route_of(world, id) == LINE, "it takes the same route under each protocol"


class CountingDDBR(DDBR):
    """Counts how often the matching layer matches a publication."""

    matches = 0

    def match_own(self, client: str, attributes: bytes) -> RoutingDecision | None:
        self.matches += 1
        return super().match_own(client, attributes)

    def match_arrived(self, publication: Publish, peer: str) -> RoutingDecision:
        self.matches += 1
        return super().match_arrived(publication, peer)


class CountingWorld(World):
    def router(self, name: str) -> Router:
        return CountingDDBR(name, self.seats[name].incarnation, self.matcher)

    def matches(self) -> dict[str, int]:
        routers = {name: self.broker(name).router for name in self.seats}
        return {name: router.matches for name, router in routers.items() if isinstance(router, CountingDDBR)}


def test_brokers_between_source_and_destination_never_match() -> None:
    world = CountingWorld("d-dbr", LINE, settings=STRICT)
    from_end_to_end(world)
    assert world.matches() == {name: int(name in ("b0", "b9")) for name in TEN}
    rows = [(name, record.row) for name, record in world.records]
    assert [name for name, row in rows if isinstance(row, MatchedRow)] == ["b0", "b0", "b9"], "two tables at b0"


def test_a_body_that_nobody_can_read_passes_brokers_that_need_not_read_it() -> None:
    world = CountingWorld("d-dbr", LINE, settings=STRICT)
    world.settle()
    body = b"\xc1 this is not MessagePack"
    id = PublicationId("b0", 1, 0)
    message = Publish(id, "b0", "", ("b9",), (), body, b"payload")
    world.input("b1", FrameReceived("b0", message, 1))
    world.run(SECOND)
    assert route_of(world, id) == LINE[1:]
    assert all(each.attributes == body and each.payload == b"payload" for _, _, each in world.hops)
    assert world.matches() == {name: int(name == "b9") for name in TEN}
    (name, record), *others = world.records
    assert (name, others) == ("b9", [])
    assert isinstance(record.row, DroppedRow)
    assert (record.row.reason, record.row.publication) == ("unreadable", id)


def test_a_broker_on_the_path_that_also_wants_a_publication_matches_it_once() -> None:
    world = CountingWorld("d-dbr", LINE, settings=STRICT)
    world.subscribe("b4", "between", "some", "price > 15")
    id = from_end_to_end(world, "between")
    assert world.matches() == {name: int(name in ("b0", "b4", "b9")) for name in TEN}
    assert route_of(world, id) == LINE


def test_d_dbr_stores_a_subscription_at_its_home_and_where_an_advertisement_calls_for_it() -> None:
    world = World("d-dbr", LINE, settings=STRICT)
    world.settle()
    for broker, text in (("b2", "a < 5"), ("b4", "a > 10"), ("b6", "a > 2 AND b = 1"), ("b8", "b < 1")):
        world.advertise(broker, "publisher", "mine", text)
    world.run(SECOND)
    world.subscribe("b0", "subscriber", "some", "a = 3 AND b = 1")
    world.run(SECOND)
    assert holders(world, "b0") == ["b2", "b6"]
    assert [name for name in TEN if local_subscriptions(world, name)] == ["b0"]
    world.unadvertise("b6", "publisher", "mine")
    world.advertise("b9", "publisher", "mine", "a IN (3, 4)")
    world.run(SECOND)
    assert holders(world, "b0") == ["b2", "b9"]
    world.unsubscribe("b0", "subscriber", "some")
    world.run(SECOND)
    assert holders(world, "b0") == []


def test_merc_stores_a_subscription_also_at_the_edge_brokers_on_the_path() -> None:
    clusters = dict.fromkeys(TEN[:3], ("x",)) | {"b3": ("x", "y"), "b4": ("y",), "b5": ("y",), "b6": ("y", "z")}
    clusters |= dict.fromkeys(TEN[7:], ("z",))
    world = World("merc", LINE, clusters=clusters, settings=STRICT)
    world.settle()
    world.advertise("b8", "publisher", "mine", "a < 5")
    world.advertise("b1", "publisher", "mine", "a > 10")
    world.run(SECOND)
    world.subscribe("b0", "subscriber", "some", "a = 3")
    world.run(SECOND)
    assert holders(world, "b0") == ["b3", "b6", "b8"]
    assert remote_subscriptions(world, "b3", "x") == [("b0", "b0")]
    assert remote_subscriptions(world, "b3", "y") == []
    assert remote_subscriptions(world, "b6", "y") == [("b0", "b3")]
    assert remote_subscriptions(world, "b8", "z") == [("b0", "b6")]


def random_links() -> list[Link]:
    overlay = topologies.generate("random", {"brokers": 12, "degree": 3.0}, seed=5)
    return [(each.a, each.b) for each in overlay.links]


def test_fbr_floods_an_advertisement_and_counts_the_copies_that_arrived_over_a_cycle() -> None:
    """A broker sends an advertisement to all neighbours except the one that sent it. That makes the sum of degrees
    minus n - 1 messages, and for n - 1 of them the advertisement is new."""
    links = random_links()
    world = World("fbr", links, settings=STRICT)
    world.settle()
    assert world.sent["Update"] == 0
    world.advertise(next(iter(world.seats)), "publisher", "mine", "TRUE")
    world.run(SECOND)
    others = len(world.seats) - 1
    duplicates = sum(world.broker(name).router.counts().duplicate_advertisements for name in world.seats)
    assert world.sent["Update"] == 2 * len(links) - others
    assert duplicates == world.sent["Update"] - others
    assert all(world.broker(name).router.counts().advertisements == 1 for name in world.seats)


def test_d_dbr_announces_an_advertisement_to_all_brokers_with_one_message_for_each() -> None:
    world = World("d-dbr", random_links(), settings=STRICT)
    world.settle()
    world.advertise(next(iter(world.seats)), "publisher", "mine", "TRUE")
    world.run(SECOND)
    assert world.sent["Update"] == len(world.seats) - 1
    assert all(world.broker(name).router.counts().advertisements == 1 for name in world.seats)


def test_no_broker_gets_a_publication_twice_in_an_overlay_with_cycles() -> None:
    for protocol in ("fbr", "d-dbr"):
        world = World(protocol, random_links(), settings=STRICT)
        world.settle()
        source, *others = world.seats
        world.advertise(source, "publisher", "mine", "TRUE")
        world.run(SECOND)
        for name in others:
            world.subscribe(name, f"at {name}", "all", "TRUE")
        world.run(SECOND)
        id = world.publish(source, "publisher", {"a": 1})
        assert id is not None
        world.run(SECOND)
        assert sorted(receiver for _, receiver in route_of(world, id)) == sorted(others)
        assert world.delivered == {(id, f"at {name}"): 1 for name in others}


def test_flooding_sends_a_publication_over_every_link() -> None:
    links = random_links()
    world = World("flooding", links)
    world.settle()
    source, *others = world.seats
    id = world.publish(source, "publisher", {"a": 1})
    assert id is not None
    world.run(SECOND)
    assert len(route_of(world, id)) == 2 * len(links) - len(others)


def test_a_destination_list_names_the_brokers_that_are_left() -> None:
    """Nine destinations on a line: one fewer at each hop [THESIS 4.4]."""
    world = World("d-dbr", LINE, settings=STRICT)
    world.settle()
    world.advertise("b0", "publisher", "all", "TRUE")
    world.run(SECOND)
    for name in TEN[1:]:
        world.subscribe(name, f"at {name}", "all", "TRUE")
    world.run(SECOND)
    world.publish("b0", "publisher", {"a": 1})
    world.run(SECOND)
    assert [len(destinations_of(message)) for _, _, message in world.hops] == [9, 8, 7, 6, 5, 4, 3, 2, 1]
