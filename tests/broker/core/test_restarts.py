"""No accepted publication is lost when brokers restart or learn of subscriptions late: it is delivered once, or is a
counted drop with its id."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from broker.core.effects import DroppedRow
from broker.core.inputs import FrameReceived
from broker.core.settings import MILLISECOND, SECOND, Settings
from experiments.torture.world import Link, World
from routing.messages import PublicationId, Publish, Update
from routing.registry import names

LINE = [("b1", "b2"), ("b2", "b3"), ("b3", "b4")]
CLUSTERS = {"b1": ("x",), "b2": ("x", "y"), "b3": ("y",), "b4": ("y",)}
DURABLE = Settings(is_durable=True)
MEMORY = Settings()


def line(protocol: str, settings: Settings) -> World:
    """A line of brokers with a subscriber at the far end."""
    world = World(protocol, LINE, clusters=CLUSTERS, settings=settings)
    world.settle()
    world.subscribe("b4", "subscriber", "all", "TRUE")
    world.settle()
    return world


def restart(world: World, name: str, links: Iterable[Link] = LINE) -> None:
    world.start(name)
    for each in links:
        if name in each:
            world.connect(*each)
    if name == "b4":
        world.connect_client("b4", "subscriber")


def publish_for(world: World, duration: int, broker: str = "b1") -> None:
    """Publishes every 20 ms."""
    for number in range(duration // (20 * MILLISECOND)):
        if world.seats[broker].broker is not None:
            world.publish(broker, "publisher", {"a": number})
        world.run(20 * MILLISECOND)


def drops(world: World, id: PublicationId | None = None) -> list[str]:
    rows = [record.row for _, record in world.records if isinstance(record.row, DroppedRow)]
    return [row.reason for row in rows if id is None or row.publication == id]


def check_all_delivered(world: World) -> None:
    missing = [id for id in world.accepted if not world.delivered[id, "subscriber"]]
    assert not missing, f"{len(missing)} of {len(world.accepted)} are lost; drops: {drops(world)}"
    assert max(world.delivered_in_life.values()) == 1
    assert not drops(world)
    assert [world.broker(name).in_custody for name in world.seats] == [0] * len(world.seats)


@pytest.mark.parametrize("victim", ["b4", "b3", "b2", "b1"])
@pytest.mark.parametrize("protocol", names())
def test_a_durable_broker_is_killed_three_times_while_clients_publish(protocol: str, victim: str) -> None:
    world = line(protocol, DURABLE)
    for _ in range(3):
        publish_for(world, 2 * SECOND)
        world.crash(victim)
        publish_for(world, 3 * SECOND)
        restart(world, victim)
        publish_for(world, 4 * SECOND)
    world.run(100 * SECOND)
    assert len(world.accepted) >= 900
    check_all_delivered(world)


@pytest.mark.parametrize("victim", ["b3", "b2"])
@pytest.mark.parametrize("protocol", names())
def test_a_broker_on_the_route_that_keeps_nothing_is_killed_three_times(protocol: str, victim: str) -> None:
    world = line(protocol, MEMORY)
    for _ in range(3):
        publish_for(world, 2 * SECOND)
        world.crash(victim)
        publish_for(world, 3 * SECOND)
        restart(world, victim)
        publish_for(world, 4 * SECOND)
    world.run(100 * SECOND)
    check_all_delivered(world)


@pytest.mark.parametrize("protocol", names())
def test_a_broker_restarts_again_while_it_recovers(protocol: str) -> None:
    for pause in (MILLISECOND, 10 * MILLISECOND, 300 * MILLISECOND, 1200 * MILLISECOND):
        world = line(protocol, DURABLE)
        for _ in range(3):
            world.crash("b2")
            publish_for(world, 200 * MILLISECOND)
            restart(world, "b2")
            publish_for(world, pause)
        publish_for(world, 3 * SECOND)
        world.run(100 * SECOND)
        check_all_delivered(world)


def all_others_restarted(protocol: str) -> World:
    """The subscriber's broker is down, all others were restarted meanwhile, and then a client published."""
    world = line(protocol, DURABLE)
    world.crash("b4")
    for name in ("b1", "b2", "b3"):
        world.crash(name)
        world.run(SECOND)
        restart(world, name)
        world.run(4 * SECOND)
    publish_for(world, 2 * SECOND)
    return world


@pytest.mark.parametrize("protocol", names())
def test_a_broker_that_restarts_does_not_forget_a_subscriber_whose_broker_is_down(protocol: str) -> None:
    world = all_others_restarted(protocol)
    world.run(15 * SECOND)
    assert not world.delivered
    restart(world, "b4")
    world.run(100 * SECOND)
    check_all_delivered(world)


@pytest.mark.parametrize("protocol", names())
def test_publications_missed_while_a_broker_was_down_for_long_are_drops_by_name(protocol: str) -> None:
    world = all_others_restarted(protocol)
    world.run(100 * SECOND)
    restart(world, "b4")
    world.run(100 * SECOND)
    assert not world.delivered
    for id in world.accepted:
        assert drops(world, id), f"{id} is gone without a word"


@pytest.mark.parametrize("is_open", [True, False], ids=["open", "strict"])
@pytest.mark.parametrize("protocol", names())
def test_a_subscription_counts_from_the_moment_at_which_it_is_confirmed(protocol: str, is_open: bool) -> None:
    world = World(protocol, LINE, clusters=CLUSTERS, settings=Settings(is_open=is_open))
    world.settle()
    if not is_open:
        world.advertise("b1", "publisher", "all", "TRUE")
        world.advertise("b2", "publisher", "all", "TRUE")
    before = world.publish("b1", "publisher", {"a": 0})
    world.run(SECOND)
    world.subscribe("b4", "subscriber", "all", "TRUE")
    after = [world.publish(broker, "publisher", {"a": 1}) for broker in ("b1", "b2")]
    world.settle()
    assert before is not None
    assert world.delivered == {(id, "subscriber"): 1 for id in after}


@pytest.mark.parametrize("protocol", names())
def test_an_advertisement_that_is_withdrawn_at_once_loses_no_publication(protocol: str) -> None:
    world = World(protocol, LINE, clusters=CLUSTERS, settings=Settings(is_open=False))
    world.subscribe("b4", "subscriber", "all", "TRUE")
    world.settle()
    world.advertise("b1", "publisher", "all", "TRUE")
    id = world.publish("b1", "publisher", {"a": 0})
    world.unadvertise("b1", "publisher", "all")
    assert world.publish("b1", "publisher", {"a": 0}) is None
    world.run(100 * SECOND)
    assert world.delivered == {(id, "subscriber"): 1}
    assert [world.broker(name).router.counts().remote_subscriptions for name in world.seats] == [0] * 4


@pytest.mark.parametrize("protocol", names())
def test_a_subscription_that_was_made_beyond_a_cut_link_counts_when_the_link_is_back(protocol: str) -> None:
    world = World(protocol, LINE, clusters=CLUSTERS, settings=MEMORY)
    world.settle()
    world.cut("b3", "b4")
    world.run(SECOND)
    world.subscribe("b4", "subscriber", "all", "TRUE")
    world.run(SECOND)
    publish_for(world, SECOND)
    world.run(20 * SECOND)
    world.connect("b3", "b4")
    world.run(100 * SECOND)
    check_all_delivered(world)


@pytest.mark.parametrize("protocol", names())
def test_a_subscription_beyond_a_link_that_stays_cut_is_unknown_and_publications_are_dropped_by_name(
    protocol: str,
) -> None:
    world = World(protocol, LINE, clusters=CLUSTERS, settings=MEMORY)
    world.settle()
    world.cut("b3", "b4")
    world.run(SECOND)
    world.subscribe("b4", "subscriber", "all", "TRUE")
    publish_for(world, SECOND)
    world.run(60 * SECOND)
    world.connect("b3", "b4")
    world.run(100 * SECOND)
    assert not world.delivered
    for id in world.accepted:
        assert drops(world, id) == ["unknown interest"]


@pytest.mark.parametrize("protocol", names())
def test_after_a_restart_of_its_broker_a_subscription_receives_no_older_publications(protocol: str) -> None:
    world = World(protocol, LINE, clusters=CLUSTERS, settings=DURABLE)
    world.settle()
    publish_for(world, SECOND)
    world.run(2 * SECOND)
    world.subscribe("b4", "subscriber", "all", "TRUE")
    world.run(SECOND)
    world.crash("b4")
    world.run(SECOND)
    restart(world, "b4")
    world.run(100 * SECOND)
    assert not world.delivered
    assert not drops(world)


@pytest.mark.parametrize("protocol", ["fbr", "d-dbr", "merc"])
def test_a_publication_that_was_evicted_too_early_is_dropped_by_name_if_it_is_wanted(protocol: str) -> None:
    """Updates are lost for a while. Meanwhile more is published than is retained."""
    world = World(protocol, LINE, clusters=CLUSTERS, settings=Settings(window=64))
    world.settle()
    world.is_lost = lambda message: isinstance(message, Update)
    world.subscribe("b4", "subscriber", "all", "TRUE")
    for number in range(300):
        world.publish("b1", "publisher", {"a": number})
        world.run(MILLISECOND)
    world.is_lost = lambda _: False
    world.run(20 * SECOND)
    assert len(world.accepted) == 300
    for id in world.accepted:
        assert world.delivered[id, "subscriber"] == 1 or set(drops(world, id)) <= {
            "wanted too late",
            "beyond the window",
        }
        assert world.delivered[id, "subscriber"] or drops(world, id), f"{id} is gone without a word"


def test_publications_that_nobody_is_out_of_reach_for_are_no_drops() -> None:
    for protocol in names():
        world = line(protocol, MEMORY)
        publish_for(world, SECOND, broker="b4")
        world.run(100 * SECOND)
        assert not drops(world)
        assert [world.broker(name).retained for name in world.seats] == [0] * 4


TWO_EDGES = [("a", "e1"), ("a", "e2"), ("e1", "z"), ("e2", "z")]


@pytest.mark.parametrize("settings", [MEMORY, DURABLE], ids=["memory", "durable"])
def test_an_edge_broker_that_takes_over_leaves_no_gap(settings: Settings) -> None:
    clusters = {"a": ("x",), "e1": ("x", "y"), "e2": ("x", "y"), "z": ("y",)}
    world = World("merc", TWO_EDGES, clusters=clusters, settings=settings)
    world.settle()
    world.subscribe("z", "subscriber", "all", "TRUE")
    world.subscribe("e2", "near", "all", "TRUE")
    world.settle()
    for _ in range(3):
        publish_for(world, SECOND, broker="a")
        world.crash("e1")
        publish_for(world, 3 * SECOND, broker="a")
        restart(world, "e1", TWO_EDGES)
        publish_for(world, 14 * SECOND, broker="a")
    world.run(100 * SECOND)
    missing = [id for id in world.accepted for client in ("subscriber", "near") if world.delivered[id, client] != 1]
    assert not missing
    assert not drops(world)


def test_an_answer_for_one_duty_does_not_settle_the_other() -> None:
    """An edge broker serves its own client. The frame with the later duty to pass it on is lost."""
    clusters = {"b1": ("x",), "b2": ("x", "y"), "b3": ("y",), "b9": ("x",)}
    world = World("merc", [("b1", "b2"), ("b2", "b3"), ("b1", "b9")], clusters=clusters)
    world.settle()
    world.subscribe("b2", "near", "all", "TRUE")
    world.settle()
    world.is_lost = lambda message: isinstance(message, Update)
    world.subscribe("b3", "late", "all", "TRUE")
    world.run(MILLISECOND)
    world.is_lost = lambda message: isinstance(message, Update | Publish)
    id = world.publish("b1", "publisher", {"a": 1})
    world.run(50 * MILLISECOND)
    world.is_lost = lambda message: isinstance(message, Publish)
    world.run(3500 * MILLISECOND)
    world.is_lost = lambda message: isinstance(message, Publish) and bool(message.transit)
    for _ in range(2):
        # A link that goes down and up makes brokers retransmit unsettled publications.
        world.cut("b1", "b9")
        world.connect("b1", "b9")
    world.run(50 * MILLISECOND)
    world.is_lost = lambda _: False
    world.run(100 * SECOND)
    assert world.delivered == {(id, "near"): 1, (id, "late"): 1}
    assert world.broker("b1").in_custody == 0


@pytest.mark.parametrize("protocol", names())
def test_a_publication_that_cannot_be_read_keeps_no_other_from_late_subscribers(protocol: str) -> None:
    world = World(protocol, [("b0", "b1"), ("b1", "b2")], clusters={"b0": ("x",), "b1": ("x", "y"), "b2": ("y",)})
    world.settle()
    world.is_lost = lambda message: isinstance(message, Update)
    world.subscribe("b2", "late", "all", "a = 1")
    world.run(MILLISECOND)
    domain = "x" if protocol == "merc" else ""
    unreadable = Publish(PublicationId("b0", 1, 900), "b0", domain, (), ("b1",), b"\xc1", b"")
    world.input("b1", FrameReceived("b0", unreadable))
    id = world.publish("b1", "publisher", {"a": 1})
    world.run(50 * MILLISECOND)
    world.is_lost = lambda _: False
    world.run(100 * SECOND)
    assert world.delivered == {(id, "late"): 1}


@pytest.mark.parametrize("protocol", names())
def test_brokers_that_restart_together_and_have_no_entries_are_known_to_have_none(protocol: str) -> None:
    clusters = {"b1": ("x", "y"), "b2": ("x", "y"), "b3": ("y",), "b4": ("y",)}
    world = World(protocol, LINE, clusters=clusters, settings=Settings(is_open=False))
    world.settle()
    world.crash("b1")
    world.crash("b2")
    world.run(5 * SECOND)
    for name in ("b1", "b2"):
        world.start(name)
    for each in LINE:
        world.connect(*each)
    world.run(60 * SECOND)
    world.advertise("b3", "publisher", "all", "TRUE")
    publish_for(world, SECOND, broker="b3")
    world.run(100 * SECOND)
    assert world.accepted
    assert not drops(world)


TRIANGLE = [("home", "b1"), ("home", "b2"), ("b1", "b2"), ("b0", "b1"), ("b0", "b2")]


def test_a_tree_does_not_lead_back_over_itself_after_restarts_while_its_home_is_cut_off() -> None:
    """Filter-based routing: restarted brokers learn of a tree from the brokers that were behind them in it."""
    world = World("fbr", TRIANGLE[:-1], settings=MEMORY)
    world.settle()
    world.connect("b0", "b2")
    world.run(SECOND)
    world.cut("home", "b1")
    world.cut("home", "b2")
    for name in ("b1", "b2"):
        world.crash(name)
        world.run(3 * SECOND)
        restart(world, name, [each for each in TRIANGLE if "home" not in each])
        world.run(10 * SECOND)
    world.connect("home", "b1")
    world.connect("home", "b2")
    world.run(10 * SECOND)
    for name in world.seats:
        world.subscribe(name, f"at {name}", "all", "TRUE")
    world.run(SECOND)
    ids = [world.publish(name, "publisher", {"a": 1}) for name in world.seats]
    world.run(10 * SECOND)
    assert world.delivered == {(id, f"at {name}"): 1 for id in ids for name in world.seats}
    world.sent.clear()
    world.run(30 * SECOND)
    assert not world.sent["Update"], "no update circulates for ever"
