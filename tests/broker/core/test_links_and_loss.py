"""Links that lose frames, become silent, are cut and come up again: owed publications arrive once, and the tables are
right in the end."""

from __future__ import annotations

import pytest

from broker.core.effects import ResetLink, Send
from broker.core.inputs import FrameReceived, PeerUp, TimerFired
from broker.core.settings import MILLISECOND, SECOND, Settings
from experiments.torture.world import World
from routing.messages import EntryId, Heartbeat, PublicationId, Publish, Settled, Subscribe, Turn, Update
from routing.registry import names
from tests.harness.routing_tables import remote_advertisements, remote_subscriptions, route_of, topology

STRICT = Settings(is_open=False)
LINE = [("b1", "b2"), ("b2", "b3"), ("b3", "b4")]
RING = [*LINE, ("b1", "b4")]
CLUSTERS = {"b1": ("x",), "b2": ("x", "y"), "b3": ("y",), "b4": ("y",)}
PROTOCOLS = names()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_on_a_line_every_client_receives_its_publications_and_nothing_stays_pending(protocol: str) -> None:
    world = World(protocol, LINE, clusters=CLUSTERS)
    world.settle()
    world.subscribe("b4", "far", "one", "price > 10")
    world.subscribe("b1", "near", "two", "price > 10")
    world.subscribe("b1", "near", "three", "price > 11")
    world.settle()
    id = world.publish("b1", "publisher", {"price": 12})
    assert id is not None
    world.publish("b1", "publisher", {"price": 2})
    world.settle()
    assert world.delivered == {(id, "far"): 1, (id, "near"): 1}
    assert world.got == {(id, "far"): ("one",), (id, "near"): ("three", "two")}
    assert [world.broker(name).in_custody for name in world.seats] == [0, 0, 0, 0]
    assert [world.broker(name).unsettled for name in world.seats] == [0, 0, 0, 0]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_publications_of_one_publisher_arrive_in_order(protocol: str) -> None:
    world = World(protocol, LINE, clusters=CLUSTERS)
    world.settle()
    world.subscribe("b4", "subscriber", "all", "TRUE")
    world.settle()
    ids = []
    for number in range(60):
        ids.append(world.publish("b1", "publisher", {"number": number}))
        world.run(number % 3 * MILLISECOND)
    world.settle()
    assert list(world.delivered) == [(id, "subscriber") for id in ids]


@pytest.mark.parametrize("protocol", ["fbr", "d-dbr", "merc"])
def test_lost_frames_of_every_kind_are_made_good(protocol: str) -> None:
    for seed in range(4):
        world = World(protocol, LINE, clusters=CLUSTERS, loss=0.15, seed=seed, settings=STRICT)
        world.run(40 * SECOND)
        world.advertise("b1", "publisher", "mine", "TRUE")
        world.subscribe("b4", "subscriber", "all", "TRUE")
        world.run(60 * SECOND)
        ids = [world.publish("b1", "publisher", {"number": number}) for number in range(5)]
        world.run(200 * SECOND)
        expected = {(id, "subscriber"): 1 for id in ids}
        # FBR does not repair its trees. If a link was reset because of silence, it owes nothing.
        assert world.delivered == expected or (protocol == "fbr" and world.flaps), f"seed {seed}"
        assert set(world.delivered.values()) <= {1}


def test_a_link_state_that_was_lost_is_noticed_by_the_next_heartbeat() -> None:
    world = World("d-dbr", RING)
    world.settle()
    world.loss = 1.0
    world.cut("b1", "b2")
    world.run(500 * MILLISECOND)
    assert topology(world, "b3").distance("b1", "b2") == 1, "no broker could inform b3"
    world.loss = 0.0
    world.run(5 * SECOND)
    assert {topology(world, name) for name in world.seats} == {topology(world, "b1")}
    assert topology(world, "b3").distance("b1", "b2") == 3


def test_a_neighbour_that_was_silent_for_too_long_is_given_up_and_its_link_is_reset() -> None:
    world = World("d-dbr", LINE[:1])
    world.settle()
    broker = world.broker("b1")
    silent = [effect for at in range(5) for effect in broker.handle(TimerFired("tick"), world.now + at * SECOND)]
    assert [effect for effect in silent if isinstance(effect, ResetLink)] == [ResetLink("b2")]
    assert not broker.router.is_reachable("", "b2")
    late = broker.handle(FrameReceived("b2", Heartbeat(1, ("",)), None), world.now + 5 * SECOND)
    assert late == [], "frames of a broker without a link are ignored"
    broker.handle(PeerUp("b2", world.broker("b2").router.greeting()), world.now + 6 * SECOND)
    assert broker.router.is_reachable("", "b2")


def test_links_that_were_silent_return_and_carry_waiting_publications() -> None:
    world = World("d-dbr", LINE)
    world.settle()
    world.subscribe("b4", "subscriber", "all", "TRUE")
    world.settle()
    world.loss = 1.0
    id = world.publish("b1", "publisher", {"a": 1})
    world.run(6 * SECOND)
    assert world.flaps
    world.loss = 0.0
    world.run(20 * SECOND)
    assert world.delivered == {(id, "subscriber"): 1}


def test_publications_on_a_link_that_is_cut_use_another_path() -> None:
    for seed in range(6):
        world = World("d-dbr", RING, seed=seed)
        world.settle()
        world.subscribe("b3", "subscriber", "all", "TRUE")
        world.settle()
        id = world.publish("b1", "publisher", {"a": 1})
        assert id is not None
        world.run(world.random.randrange(4) * MILLISECOND)
        world.cut("b1", "b2")
        world.cut("b2", "b3")
        world.run(3 * SECOND)
        assert world.delivered == {(id, "subscriber"): 1}, f"seed {seed}"
        assert world.broker("b1").unsettled == 0


@pytest.mark.parametrize("protocol", ["d-dbr", "merc"])
def test_both_sides_of_a_healed_partition_learn_the_changes_of_the_other(protocol: str) -> None:
    clusters = dict.fromkeys(CLUSTERS, ("x",))
    world = World(protocol, LINE, clusters=clusters, settings=STRICT)
    domain = "x" if protocol == "merc" else ""
    world.settle()
    world.advertise("b1", "publisher", "old", "TRUE")
    world.subscribe("b4", "subscriber", "old", "TRUE")
    world.settle()
    world.cut("b2", "b3")
    world.run(SECOND)
    assert remote_subscriptions(world, "b1", domain) == [("b4", "b4")], "unreachable is not gone"
    world.unsubscribe("b4", "subscriber", "old")
    world.subscribe("b3", "subscriber", "new", "a > 1")
    world.advertise("b2", "publisher", "new", "TRUE")
    world.run(60 * SECOND)
    world.connect("b2", "b3")
    world.run(3 * SECOND)
    assert remote_subscriptions(world, "b1", domain) == [("b3", "b3")]
    assert remote_subscriptions(world, "b2", domain) == [("b3", "b3")]
    assert remote_advertisements(world, "b4", domain) == [("b1", "b1"), ("b2", "b2")]


def test_a_broker_that_restarts_unnoticed_receives_all_entries_again() -> None:
    world = World("d-dbr", LINE, settings=STRICT)
    world.settle()
    world.advertise("b1", "publisher", "mine", "TRUE")
    world.subscribe("b4", "subscriber", "all", "TRUE")
    world.settle()
    world.crash("b4")
    world.start("b4")
    world.connect("b3", "b4")
    world.run(3 * SECOND)
    assert remote_advertisements(world, "b4") == [("b1", "b1")]
    assert remote_subscriptions(world, "b1") == [], "its subscriber is gone with its memory"
    world.subscribe("b4", "subscriber", "all", "TRUE")
    world.run(3 * SECOND)
    id = world.publish("b1", "publisher", {"a": 1})
    world.run(SECOND)
    assert world.delivered == {(id, "subscriber"): 1}


def published(hop_limit: int = 64, destinations: tuple[str, ...] = ("b2",)) -> Publish:
    return Publish(PublicationId("b1", 1, 0), "b1", "", destinations, (), b"\x80", b"", hop_limit=hop_limit)


def test_a_publication_that_arrives_twice_is_delivered_once_and_settled_each_time() -> None:
    world = World("d-dbr", LINE)
    world.settle()
    world.subscribe("b2", "subscriber", "all", "TRUE")
    world.settle()
    for sequence in (1, 2):
        world.input("b2", FrameReceived("b1", published(), sequence))
        world.run(SECOND)
    assert world.delivered == {(PublicationId("b1", 1, 0), "subscriber"): 1}
    assert world.sent["Settled"] == 2


def test_a_publication_without_hops_left_is_not_forwarded() -> None:
    world = World("d-dbr", LINE)
    world.settle()
    world.input("b2", FrameReceived("b1", published(hop_limit=1, destinations=("b2", "b4")), 1))
    world.run(SECOND)
    assert route_of(world, PublicationId("b1", 1, 0)) == []
    assert world.broker("b2").router.counts().out_of_hops == 1


def test_settlements_of_one_moment_travel_together() -> None:
    world = World("d-dbr", LINE)
    world.settle()
    world.subscribe("b4", "subscriber", "all", "TRUE")
    world.settle()
    broker = world.broker("b4")
    for counter in range(10):
        message = Publish(PublicationId("b1", 1, counter), "b1", "", ("b4",), (), b"\x80", b"")
        broker.handle(FrameReceived("b3", message, counter + 1), world.now)
    effects = broker.handle(TimerFired("acknowledge"), world.now)
    settled = [each.message for each in effects if isinstance(each, Send) and isinstance(each.message, Settled)]
    assert [len(message.publications) for message in settled] == [10]


@pytest.mark.parametrize("protocol", ["d-dbr", "fbr"])
def test_a_text_of_a_neighbour_that_is_no_expression_does_no_harm(protocol: str) -> None:
    world = World(protocol, LINE[:1])
    world.settle()
    entry = EntryId("b1", 1, 77)
    bad = Update("b1", 1, "", (Turn("b2", 9, 0),), (Subscribe(entry, "price >", tree=EntryId("b2", 1, 1)),))
    world.input("b2", FrameReceived("b1", bad))
    world.run(SECOND)
    assert world.broker("b2").router.counts().remote_subscriptions == 0
    world.subscribe("b1", "subscriber", "all", "TRUE")
    world.run(10 * SECOND)
    assert world.publish("b2", "publisher", {"price": 1}) is not None
