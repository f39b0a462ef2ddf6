"""Credits of links and windows of sources: no queue overflows, a refused client gets the reason, and no accepted
publication is lost."""

from __future__ import annotations

from collections import Counter

import msgpack
import pytest

from broker.core.effects import DroppedRow, Send
from broker.core.inputs import FrameReceived, Input, Published
from broker.core.settings import MILLISECOND, SECOND, Settings
from experiments.torture.world import World
from routing.messages import PublicationId, Publish
from routing.registry import names

LINE = [("b1", "b2"), ("b2", "b3"), ("b3", "b4")]
CLUSTERS = {"b1": ("x",), "b2": ("x", "y"), "b3": ("y",), "b4": ("y",)}
NARROW = Settings(credit=4, outbox_frames=8)
QUEUE_FULL = "overloaded: a neighbour's queue is full"
PROTOCOLS = names()


class ObservedWorld(World):
    """Counts publication frames that have left a broker and not arrived at the next."""

    def __init__(self, protocol: str, settings: Settings) -> None:
        self.in_flight: Counter[tuple[str, str]] = Counter()
        self.most_in_flight = 0
        super().__init__(protocol, LINE, clusters=CLUSTERS, settings=settings)

    def _send(self, name: str, effect: Send) -> None:
        if isinstance(effect.message, Publish):
            self.in_flight[name, effect.peer] += 1
            self.most_in_flight = max(self.most_in_flight, *self.in_flight.values())
        super()._send(name, effect)

    def input(self, name: str, happened: Input) -> None:
        if isinstance(happened, FrameReceived) and isinstance(happened.message, Publish):
            self.in_flight[happened.peer, name] -= 1
        super().input(name, happened)


def line(protocol: str, settings: Settings, loss: float = 0.0) -> ObservedWorld:
    world = ObservedWorld(protocol, settings)
    world.settle()
    world.subscribe("b4", "subscriber", "all", "TRUE")
    world.settle()
    world.loss = loss
    return world


def insist(world: World, broker: str, number: int) -> PublicationId:
    """Publishes, and repeats the request while it is refused."""
    for _ in range(10_000):
        id = world.publish(broker, "publisher", {"number": number})
        if id is not None:
            return id
        world.run(5 * MILLISECOND)
    raise AssertionError("refused for ever")


def drops(world: World) -> Counter[str]:
    return Counter(record.row.reason for _, record in world.records if isinstance(record.row, DroppedRow))


def in_flight(world: World) -> dict[str, int]:
    """The publications that each broker counts as in flight, on all its links."""
    return {
        name: sum(link.outbox.in_flight + link.outbox.waiting for link in world.broker(name)._links._links.values())
        for name in world.seats
    }


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_no_more_frames_are_in_flight_than_the_credit_allows_and_all_arrive(protocol: str) -> None:
    world = line(protocol, NARROW)
    ids = [insist(world, "b1", number) for number in range(150)]
    world.settle()
    assert world.most_in_flight == 4, "all the credit was used, and no more"
    assert world.delivered == {(id, "subscriber"): 1 for id in ids}
    assert world.refused, "the publisher was slowed down"
    assert {refusal.reason for refusal in world.refused} == {QUEUE_FULL}
    assert drops(world).keys() <= {"queue full"}
    assert in_flight(world) == dict.fromkeys(world.seats, 0)


def test_a_link_that_is_busy_for_long_does_not_count_as_lossy() -> None:
    """At every tick all the credit is in use, each time by other frames. So no credit was lost."""
    world = line("d-dbr", NARROW)
    for number in range(2_500):
        world.publish("b1", "publisher", {"number": number})
        world.run(MILLISECOND)
    assert world.most_in_flight == 4


def test_a_burst_is_accepted_up_to_the_queue_limit_and_the_rest_is_refused_with_a_reason() -> None:
    world = line("d-dbr", NARROW)
    burst = [world.publish("b1", "publisher", {"number": number}) for number in range(20)]
    assert [id is not None for id in burst] == [True] * 12 + [False] * 8, "4 on the link and 8 in the queue"
    assert [refusal.reason for refusal in world.refused] == [QUEUE_FULL] * 8
    assert world.broker("b1").drops == {f"refused: {QUEUE_FULL}": 8}
    world.settle()
    assert world.delivered == {(id, "subscriber"): 1 for id in burst if id is not None}
    assert world.publish("b1", "publisher", {"number": 20}) is not None


@pytest.mark.parametrize("protocol", ["fbr", "d-dbr", "merc"])
def test_a_lossy_link_leaks_no_credit(protocol: str) -> None:
    world = line(protocol, NARROW, loss=0.1)
    ids = [insist(world, "b1", number) for number in range(60)]
    world.run(300 * SECOND)
    world.loss = 0.0
    world.run(70 * SECOND)
    assert world.delivered == {(id, "subscriber"): 1 for id in ids}
    assert in_flight(world) == dict.fromkeys(world.seats, 0)
    assert [world.broker(name).in_custody for name in world.seats] == [0, 0, 0, 0]


def test_a_link_that_loses_all_publications_for_a_while_is_used_again() -> None:
    world = line("d-dbr", NARROW)
    world.loss = 1.0
    lost = [world.publish("b1", "publisher", {"number": number}) for number in range(4)]
    world.run(SECOND)
    world.loss = 0.0
    world.run(5 * SECOND)
    more = [insist(world, "b1", number) for number in range(20)]
    world.run(20 * SECOND)
    assert world.delivered == {(id, "subscriber"): 1 for id in (*lost, *more)}


def test_publications_without_room_at_a_broker_on_the_route_are_dropped_by_name_and_sent_again() -> None:
    """Two publishers share a link: b2's own publications fill the queue that b1's pass through."""
    world = line("d-dbr", Settings(credit=2, outbox_frames=3))
    ids: list[PublicationId | None] = []
    for number in range(6):
        ids += [world.publish("b2", "publisher", {"number": number}) for _ in range(5)]
        ids.append(world.publish("b1", "publisher", {"number": number}))
        world.run(2 * MILLISECOND)
    world.run(60 * SECOND)
    assert drops(world).keys() == {"queue full"}
    accepted = [id for id in ids if id is not None]
    assert {id.broker for id in accepted} == {"b1", "b2"}
    assert world.delivered == {(id, "subscriber"): 1 for id in accepted}


def test_control_passes_a_link_whose_queue_is_full() -> None:
    world = line("d-dbr", NARROW)
    for number in range(12):
        world.publish("b1", "publisher", {"number": number})
    world.subscribe("b1", "here", "all", "TRUE")
    world.run(30 * MILLISECOND)
    assert world.broker("b4").router.counts().remote_subscriptions == 1


def test_the_window_of_unsettled_publications_refuses_with_a_reason_and_recovers() -> None:
    world = line("d-dbr", Settings(window=4))
    world.loss = 1.0
    first = [world.publish("b1", "publisher", {"number": number}) for number in range(6)]
    assert [id is not None for id in first] == [True] * 4 + [False] * 2
    assert [refusal.reason for refusal in world.refused] == ["overloaded: 4 publications are not settled"] * 2
    world.run(SECOND)
    world.loss = 0.0
    world.run(20 * SECOND)
    assert world.broker("b1").unsettled == 0
    later = [insist(world, "b1", number) for number in range(20)]
    world.run(20 * SECOND)
    assert world.delivered == {(id, "subscriber"): 1 for id in (*first[:4], *later)}


def test_a_destination_that_cannot_be_reached_does_not_stop_the_others() -> None:
    world = line("d-dbr", Settings(window=4))
    world.subscribe("b2", "near", "all", "TRUE")
    world.settle()
    world.crash("b4")
    world.run(5 * SECOND)
    ids = []
    for number in range(10):
        ids.append(insist(world, "b1", number))
        world.run(SECOND)
    assert world.delivered == {(id, "near"): 1 for id in ids}
    assert world.refused == []
    assert drops(world) == {"unreachable": 6}, "those that made room for the last"
    world.run(60 * SECOND)
    assert drops(world) == {"unreachable": 10}
    assert (world.broker("b1").in_custody, world.broker("b1").unsettled) == (0, 0)


@pytest.mark.parametrize("protocol", ["fbr", "d-dbr", "merc"])
def test_publications_for_an_unreachable_destination_are_given_up_in_the_end(protocol: str) -> None:
    world = line(protocol, Settings())
    world.crash("b4")
    world.run(5 * SECOND)
    world.publish("b1", "publisher", {"number": 1})
    world.run(70 * SECOND)
    assert drops(world) == {"unreachable": 1}
    assert [world.broker(name).in_custody for name in ("b1", "b2", "b3")] == [0, 0, 0]
    assert world.broker("b1").unsettled == 0


def test_a_destination_that_is_back_in_time_receives_the_publications_that_waited_for_it() -> None:
    world = line("d-dbr", Settings())
    world.cut("b3", "b4")
    world.run(SECOND)
    ids = [world.publish("b1", "publisher", {"number": number}) for number in range(3)]
    world.run(20 * SECOND)
    assert not world.delivered
    world.connect("b3", "b4")
    world.run(3 * SECOND)
    assert world.delivered == {(id, "subscriber"): 1 for id in ids}
    assert drops(world) == {}


def test_an_expired_publication_is_dropped_by_name() -> None:
    world = line("d-dbr", Settings())
    soon = world.now + MILLISECOND
    world._publishing[1000] = (world.now, {})
    world.input("b1", Published("publisher", 1000, msgpack.packb({"a": 1}), expires=soon))
    world.run(SECOND)
    assert not world.delivered
    assert drops(world) == {"expired": 1}
    assert world.broker("b1").unsettled == 0


@pytest.mark.parametrize(("late", "is_delivered"), [(-MILLISECOND, True), (0, False), (MILLISECOND, False)])
def test_a_publication_of_another_broker_expires_later_by_the_clock_skew(late: int, is_delivered: bool) -> None:
    settings = Settings(clock_skew=50 * MILLISECOND)
    world = line("d-dbr", settings)
    body = (msgpack.packb({"a": 1}), b"")
    expires = world.now - settings.clock_skew - late
    message = Publish(PublicationId("b1", 1, 1), "b1", "", ("b4",), (), *body, expires=expires)
    world.input("b4", FrameReceived("b3", message, 1))
    world.run(SECOND)
    assert bool(world.delivered) == is_delivered
    assert drops(world) == ({} if is_delivered else {"expired": 1})


def test_a_publication_that_fits_into_no_frame_is_refused() -> None:
    world = line("d-dbr", Settings(publication_bytes=100))
    assert world.publish("b1", "publisher", {"text": "x" * 100}) is None
    (refusal,) = world.refused
    assert refusal.reason == "112 bytes are too much; the limit is 100"
    assert world.publish("b1", "publisher", {"text": "x" * 50}) is not None
