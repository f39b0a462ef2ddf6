"""Durable brokers: an accepted publication survives a crash and arrives once; an acknowledged delivery is not repeated.

In memory mode a crash loses only publications that no other broker has.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from broker.core.effects import DroppedRow
from broker.core.inputs import ClientConnected, ClientLost
from broker.core.settings import MILLISECOND, SECOND, Settings
from experiments.torture.world import World
from routing.messages import PublicationId
from routing.registry import names

LINE = [("b1", "b2"), ("b2", "b3"), ("b3", "b4")]
CLUSTERS = {"b1": ("x",), "b2": ("x", "y"), "b3": ("y",), "b4": ("y",)}
DURABLE = Settings(is_durable=True)
PROTOCOLS = names()
STEP = MILLISECOND // 10


def line(protocol: str, settings: Settings = DURABLE) -> World:
    """A line of brokers with a subscriber at the far end."""
    world = World(protocol, LINE, clusters=CLUSTERS, settings=settings)
    world.settle()
    world.subscribe("b4", "subscriber", "all", "TRUE")
    world.settle()
    return world


def run_until(world: World, is_so: Callable[[], bool]) -> None:
    for _ in range(10_000):
        if is_so():
            return
        world.run(STEP)
    raise AssertionError("the condition never became true")


def publish(world: World, broker: str = "b1") -> PublicationId:
    known = len(world.accepted)
    world.publish(broker, "publisher", {"a": 1})
    run_until(world, lambda: len(world.accepted) > known)
    return list(world.accepted)[-1]


def restart(world: World, name: str) -> None:
    world.start(name)
    for each in LINE:
        if name in each:
            world.connect(*each)


def drops(world: World) -> list[str]:
    return [record.row.reason for _, record in world.records if isinstance(record.row, DroppedRow)]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_accepted_publication_survives_a_crash_before_anything_was_sent(protocol: str) -> None:
    world = line(protocol)
    world.cut("b1", "b2")
    id = publish(world)
    world.crash("b1")
    world.run(10 * SECOND)
    assert not world.delivered
    restart(world, "b1")
    world.run(70 * SECOND)
    assert world.delivered == {(id, "subscriber"): 1}
    assert world.broker("b1").unsettled == 0
    world.settle()
    assert not any(key[0] == "publication" for key in world.seats["b1"].store)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_accepted_publication_survives_a_crash_while_it_is_in_flight(protocol: str) -> None:
    world = line(protocol)
    id = publish(world)
    assert world.hops, "it has left"
    world.crash("b1")
    world.run(10 * SECOND)
    restart(world, "b1")
    world.run(70 * SECOND)
    assert world.delivered == {(id, "subscriber"): 1}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_publication_is_accepted_only_when_it_is_stored(protocol: str) -> None:
    world = line(protocol)
    assert world.publish("b1", "publisher", {"a": 1}) is None
    assert not world.accepted
    assert not any(key[0] == "publication" for key in world.seats["b1"].store)
    run_until(world, lambda: bool(world.accepted))
    assert any(key[0] == "publication" for key in world.seats["b1"].store)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_delivery_that_was_not_acknowledged_is_repeated_after_restart_and_reconnect(protocol: str) -> None:
    world = line(protocol)
    id = publish(world)
    run_until(world, lambda: bool(world.delivered))
    world.crash("b4")
    world.run(3 * SECOND)
    restart(world, "b4")
    world.run(20 * SECOND)
    assert world.delivered == {(id, "subscriber"): 1}, "no client is connected to receive it"
    world.connect_client("b4", "subscriber")
    world.run(70 * SECOND)
    assert world.delivered == {(id, "subscriber"): 2}
    assert world.delivered_in_life == {(id, "subscriber", "b4", 1): 1, (id, "subscriber", "b4", 2): 1}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_delivery_that_was_acknowledged_is_not_repeated(protocol: str) -> None:
    world = line(protocol)
    id = publish(world)
    world.run(SECOND)
    world.crash("b4")
    world.run(3 * SECOND)
    restart(world, "b4")
    world.connect_client("b4", "subscriber")
    world.run(70 * SECOND)
    assert world.delivered == {(id, "subscriber"): 1}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_copy_that_arrives_after_the_destinations_restart_is_not_delivered_again(protocol: str) -> None:
    world = line(protocol)
    id = publish(world)
    run_until(world, lambda: bool(world.delivered))
    world.run(2 * MILLISECOND)
    assert not world.sent["Settled"], "the client has acknowledged, the broker has not"
    world.crash("b4")
    world.run(3 * SECOND)
    copies = [receiver for _, receiver, _ in world.hops].count("b4")
    restart(world, "b4")
    world.connect_client("b4", "subscriber")
    world.run(70 * SECOND)
    assert [receiver for _, receiver, _ in world.hops].count("b4") > copies, "a copy arrived"
    assert world.delivered == {(id, "subscriber"): 1}
    assert world.broker("b1").unsettled == 0


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_entries_of_durable_clients_survive(protocol: str) -> None:
    world = line(protocol, Settings(is_durable=True, is_open=False))
    world.advertise("b1", "publisher", "mine", "a < 5")
    world.settle()
    for name in ("b1", "b4"):
        world.crash(name)
        world.run(5 * SECOND)
        restart(world, name)
        world.run(5 * SECOND)
    world.connect_client("b4", "subscriber")
    id = publish(world)
    world.settle()
    assert world.delivered == {(id, "subscriber"): 1}
    world.publish("b1", "publisher", {"a": 9})
    assert [refusal.reason for refusal in world.refused] == ["not advertised"]


def test_withdrawn_entries_stay_withdrawn() -> None:
    world = line("d-dbr", Settings(is_durable=True, is_open=False))
    world.advertise("b4", "subscriber", "mine", "TRUE")
    world.settle()
    world.unsubscribe("b4", "subscriber", "all")
    world.unadvertise("b4", "subscriber", "mine")
    world.run(2 * MILLISECOND)
    world.crash("b4")
    restart(world, "b4")
    counts = world.broker("b4").router.counts()
    assert (counts.local_subscriptions, counts.advertisements) == (0, 0)


def test_entries_withdrawn_while_they_are_being_stored_do_not_stay() -> None:
    world = line("d-dbr")
    world.subscribe("b3", "hasty", "one", "TRUE")
    world.unsubscribe("b3", "hasty", "one")
    world.settle()
    assert world.broker("b3").router.counts().local_subscriptions == 0
    assert not any(key[:2] == ("subscription", "hasty") for key in world.seats["b3"].store)


def test_deliveries_for_an_absent_client_wait_for_it() -> None:
    world = line("d-dbr")
    world.input("b4", ClientLost("subscriber"))
    ids = [publish(world) for _ in range(3)]
    world.settle()
    assert not world.delivered
    assert world.broker("b1").unsettled == 0, "the destination's broker is responsible for it"
    world.connect_client("b4", "subscriber")
    world.settle()
    assert world.delivered == {(id, "subscriber"): 1 for id in ids}


def test_too_much_for_an_absent_client_drops_the_oldest_by_name() -> None:
    world = line("d-dbr", Settings(is_durable=True, deliveries_for_absent=2))
    world.input("b4", ClientLost("subscriber"))
    ids: list[PublicationId] = []
    for _ in range(5):
        ids.append(publish(world))
        world.run(SECOND)
    assert drops(world) == ["too many deliveries waiting"] * 3
    world.crash("b4")
    restart(world, "b4")
    world.connect_client("b4", "subscriber")
    world.settle()
    assert world.delivered == {(id, "subscriber"): 1 for id in ids[3:]}


def test_the_store_keeps_the_records_that_the_window_needs_and_no_more() -> None:
    world = line("d-dbr", Settings(is_durable=True, window=4))
    for _ in range(12):
        publish(world)
        world.run(SECOND)
    world.settle()
    kept = [key for key in world.seats["b4"].store if key[0] == "arrival"]
    assert len(kept) <= 4 + 1
    assert sum(key[0] == "publication" for key in world.seats["b1"].store) <= 4
    world.settle()
    assert not any(key[0] == "publication" for key in world.seats["b1"].store)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_in_memory_mode_a_crash_loses_what_only_the_broker_had(protocol: str) -> None:
    world = line(protocol, Settings())
    world.cut("b1", "b2")
    lost = publish(world)
    world.crash("b1")
    world.run(5 * SECOND)
    restart(world, "b1")
    world.run(70 * SECOND)
    assert not world.delivered
    assert drops(world) == []
    kept = publish(world)
    world.settle()
    assert world.delivered == {(kept, "subscriber"): 1}
    assert lost.incarnation < kept.incarnation
    assert [world.broker(name).in_custody for name in world.seats] == [0, 0, 0, 0]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_in_memory_mode_a_crashed_destination_loses_its_clients(protocol: str) -> None:
    world = line(protocol, Settings())
    world.crash("b4")
    world.publish("b1", "publisher", {"a": 1})
    world.run(3 * SECOND)
    restart(world, "b4")
    world.input("b4", ClientConnected("subscriber"))
    world.run(90 * SECOND)
    assert not world.delivered
    assert [world.broker(name).in_custody for name in world.seats] == [0, 0, 0, 0]
    assert world.broker("b1").unsettled == 0
    assert drops(world) == []
    assert all(world.broker(name).router.counts().remote_subscriptions == 0 for name in world.seats)
