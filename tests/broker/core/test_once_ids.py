"""A client receives one of several publications with the same once id, whichever brokers accepted them."""

from __future__ import annotations

from collections import Counter

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.core.broker import CATCH_UP, Broker
from broker.core.effects import Effect, Forget, Persist, Send
from broker.core.inputs import (
    ClientLeft,
    ClientLost,
    DeliveryAcknowledged,
    FrameReceived,
    PeerUp,
    Subscribed,
    TimerFired,
)
from broker.core.publications import PUBLISHED_BEFORE, SETTLE
from broker.core.settings import MILLISECOND, SECOND, Settings
from experiments.torture.world import World
from routing.messages import OnceId, PublicationId, Publish, Settled
from routing.registry import create, names
from tests.broker.core.test_sessions import Place, numbers, subscribed
from tests.harness.slow_store import SlowPlace, delivered

DURABLE = Settings(is_durable=True)
RING = [("b1", "b2"), ("b2", "b3"), ("b3", "b4"), ("b4", "b1")]
CLUSTERS = {"b1": ("x",), "b2": ("x", "y"), "b3": ("y",), "b4": ("x", "y")}
SUBSCRIBERS = {"near": "b1", "other": "b2", "far": "b3"}
QUICK = settings(max_examples=10, deadline=None)


def overlay(protocol: str, seed: int, *, is_durable: bool = False, loss: float = 0.0) -> World:
    settings = Settings(is_durable=is_durable)
    # Without this option, FBR's trees stay broken when a broker is lost.
    options = {"readvertise": True} if protocol == "fbr" else None
    world = World(protocol, RING, clusters=CLUSTERS, seed=seed, settings=settings, loss=loss, options=options)
    world.settle()
    for client, broker in SUBSCRIBERS.items():
        world.subscribe(broker, client, "all", "TRUE")
    world.settle()
    return world


def received(world: World) -> Counter[tuple[object, str]]:
    """How many publications with each once id each client received. The attribute `k` is the id."""
    return Counter((world.accepted[id]["k"], client) for id, client in world.delivered)


@pytest.mark.parametrize("is_durable", [False, True], ids=["memory", "durable"])
@pytest.mark.parametrize("protocol", names())
@QUICK
@given(
    schedule=st.lists(
        st.tuples(st.sampled_from(["b1", "b2", "b4"]), st.integers(0, 2), st.integers(0, 3 * MILLISECOND)),
        min_size=1,
        max_size=12,
    ),
    seed=st.integers(0, 2**31),
    loss=st.sampled_from([0.0, 0.1]),
)
def test_any_interleaving_of_publications_with_the_same_id_is_delivered_once(
    protocol: str, is_durable: bool, schedule: list[tuple[str, int, int]], seed: int, loss: float
) -> None:
    world = overlay(protocol, seed, is_durable=is_durable, loss=loss)
    for broker, k, pause in schedule:
        world.publish(broker, "p", {"k": k}, once=str(k))
        world.run(pause)
    world.settle()
    while any(world.broker(name).in_custody for name in world.seats):
        # A frame may be lost several times, and the time between retransmissions grows.
        world.settle()
    assert received(world) == {(k, client): 1 for _, k, _ in schedule for client in SUBSCRIBERS}
    assert len(world.accepted) == len(schedule), "every broker accepts what it cannot know"


@pytest.mark.parametrize("protocol", names())
@QUICK
@given(seed=st.integers(0, 2**31), before_crash=st.integers(0, 20 * MILLISECOND))
def test_a_publication_is_received_once_when_its_broker_crashes_and_another_accepts_it(
    protocol: str, seed: int, before_crash: int
) -> None:
    world = overlay(protocol, seed)
    world.publish("b4", "p", {"k": 7}, once="7")
    world.run(before_crash)
    world.crash("b4")
    world.publish("b1", "p", {"k": 7}, once="7")
    world.run(20 * SECOND)
    assert received(world) == {(7, client): 1 for client in SUBSCRIBERS}


@QUICK
@given(seed=st.integers(0, 2**31), before_crash=st.integers(0, 20 * MILLISECOND))
def test_a_durable_session_receives_it_once_although_its_own_broker_crashes_in_between(
    seed: int, before_crash: int
) -> None:
    world = overlay("d-dbr", seed, is_durable=True)
    world.publish("b4", "p", {"k": 7}, once="7")
    world.run(before_crash)
    world.crash("b3")
    world.run(3 * SECOND)
    world.start("b3")
    for each in RING:
        if "b3" in each:
            world.connect(*each)
    world.connect_client("b3", "far")
    world.publish("b1", "p", {"k": 7}, once="7")
    world.run(90 * SECOND)
    assert received(world) == {(7, client): 1 for client in SUBSCRIBERS}


def test_ids_of_different_clients_are_different() -> None:
    place = subscribed()
    assert numbers(place.publish(1, once="x")) == [1]
    assert numbers(place.publish(2, once="x", client="q")) == [2]
    assert numbers(place.publish(3, once="y")) == [3]
    assert numbers(place.publish(4)) == [4]
    assert numbers(place.publish(5)) == [5], "publications without an id have none in common"
    assert numbers(place.publish(6, once="x")) == []
    assert place.broker.drops == {PUBLISHED_BEFORE: 1}


def test_a_client_that_subscribes_in_between_receives_the_second_publication() -> None:
    place = subscribed()
    place.publish(1, once="x")
    place.connect("late")
    place.handle(Subscribed("late", "all", "TRUE"))
    assert numbers(place.publish(2, once="x")) == [2]
    assert numbers(place.publish(3, once="x")) == []


def test_an_id_is_known_for_its_time() -> None:
    place = subscribed(Settings(once=10 * SECOND))
    place.publish(1, once="x")
    place.wait(9 * SECOND)
    assert numbers(place.publish(2, once="x")) == []
    place.wait(SECOND)
    assert numbers(place.publish(3, once="x")) == [3]
    place.wait(10 * SECOND)
    assert len(place.broker.once_ids) == 0


def test_ids_are_bounded_and_those_forgotten_early_are_counted() -> None:
    place = subscribed(Settings(once_ids=3))
    for n in range(5):
        place.publish(n, once=str(n))
    assert (len(place.broker.once_ids), place.broker.once_ids.forgotten) == (3, 2)
    assert numbers(place.publish(12, once="2")) == []
    assert numbers(place.publish(10, once="0")) == [10]


@pytest.mark.parametrize("is_durable", [False, True], ids=["memory", "durable"])
def test_a_new_session_under_the_same_name_receives_the_second_publication(is_durable: bool) -> None:
    place = subscribed(Settings(is_durable=is_durable))
    place.publish(1, once="x")
    place.handle(ClientLeft("c"))
    place.now += 1
    place.connect(session="another")
    place.handle(Subscribed("c", "all", "TRUE"))
    if is_durable:
        place = Place(DURABLE, place.store)
        place.connect(session="another")
    assert numbers(place.publish(2, once="x")) == [2]


@pytest.mark.parametrize("is_acknowledged", [False, True])
def test_a_durable_broker_knows_ids_after_a_restart(is_acknowledged: bool) -> None:
    place = subscribed(DURABLE, keep=None)
    place.publish(1, once="x")
    if is_acknowledged:
        place.handle(DeliveryAcknowledged("c", 1))
    again = Place(DURABLE, place.store)
    again.connect(session="another", keep=None)
    assert numbers(again.effects) == ([] if is_acknowledged else [1])
    assert numbers(again.publish(2, once="x")) == []
    again.wait(DURABLE.once)
    assert not [key for key in again.store if key[0] == "once"]


def test_ids_of_an_absent_durable_client_count_when_they_are_queued() -> None:
    place = subscribed(DURABLE, keep=None)
    place.handle(ClientLost("c"))
    place.publish(1, once="x")
    place.publish(2, once="x")
    place.connect(keep=None)
    assert numbers(place.effects) == [1]


def test_the_store_has_the_id_and_the_delivery_in_one_transaction() -> None:
    place = subscribed(DURABLE)
    effects: list[Effect] = place.publish(1, once="x")
    kinds = [each.key[0] for each in effects if isinstance(each, Persist)]
    assert kinds[-2:] == ["once", "arrival"]
    assert not [each for each in place.publish(2) if isinstance(each, Persist | Forget) and each.key[0] == "once"]


def test_a_repeated_publication_is_settled_when_the_first_one_is_stored() -> None:
    """Otherwise a crash of this broker could lose both: the broker of the first one may be gone."""
    place = SlowPlace()
    place.connect()
    place.handle(Subscribed("c", "all", "TRUE"))
    neighbour = Broker(create("d-dbr", "b2", 1), "b2", 1)
    place.handle(PeerUp("b2", neighbour.router.greeting()))
    for effect in neighbour.handle(PeerUp("b1", place.broker.router.greeting()), place.now):
        if isinstance(effect, Send):
            place.handle(FrameReceived("b2", effect.message, effect.sequence))
    place.handle(TimerFired(CATCH_UP))
    place.settle()
    copies = [
        Publish(PublicationId(broker, 1, 0), "b2", "", ("b1",), (), msgpack.packb({"n": 1}), b"", once=OnceId("p", "x"))
        for broker in ("b2", "b3")
    ]

    def settled(effects: list[Effect]) -> list[PublicationId]:
        sent = [each.message for each in effects if isinstance(each, Send)]
        return [id for each in sent if isinstance(each, Settled) for id in each.publications]

    for sequence, copy in enumerate(copies):
        place.handle(FrameReceived("b2", copy, sequence))
    assert settled(place.handle(TimerFired(SETTLE))) == []
    place.commit()
    assert settled(place.handle(TimerFired(SETTLE))) == [copy.id for copy in copies]
    assert delivered(place.settle(), "c") == [1]
