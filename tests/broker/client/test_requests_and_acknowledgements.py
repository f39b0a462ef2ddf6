"""A client's state: the deliveries it has seen, the number up to which all are finished, and its requests."""

from __future__ import annotations

import asyncio
from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from broker.client.acknowledgements import Acknowledgements
from broker.client.connection import Connection
from broker.client.delivery_inbox import SeenDeliveries
from broker.client.requests import Requests
from broker.wire.client_codec import decode
from broker.wire.client_frames import RequestAccepted, Subscribe, Welcome
from broker.wire.limits import Limits
from routing.messages import PublicationId


def id_of(number: int, broker: str = "b1") -> PublicationId:
    return PublicationId(broker, 1, number)


@given(st.permutations(range(1, 12)), st.integers(0, 11), st.integers(1, 5))
def test_an_acknowledgement_covers_only_deliveries_without_a_gap(order: list[int], count: int, every: int) -> None:
    due: list[int] = []
    acknowledgements = Acknowledgements(lambda: due.append(acknowledgements.pending), every)
    for number in order[:count]:
        acknowledgements.finish(number)
    done = set(order[:count])
    expected = next(number for number in range(13) if number + 1 not in done)
    assert acknowledgements.mark_acknowledged() == expected
    assert bool(due) == bool(expected)
    assert acknowledgements.pending == 0


def test_a_shared_delivery_is_finished_with_its_last_part() -> None:
    acknowledgements = Acknowledgements(lambda: None)
    acknowledgements.share(1, 3)
    for expected in (0, 0, 1):
        acknowledgements.finish(1)
        assert acknowledgements.mark_acknowledged() == expected


def test_on_due_is_called_for_the_first_delivery_and_then_when_many_are_pending() -> None:
    due: list[int] = []
    acknowledgements = Acknowledgements(lambda: due.append(acknowledgements.pending), 4)
    for number in range(1, 7):
        acknowledgements.finish(number)
    assert due == [1, 4, 5, 6]


@given(st.lists(st.tuples(st.sampled_from(["b1", "b2"]), st.integers(0, 30)), max_size=60))
def test_within_a_generation_every_publication_is_new_once(drawn: list[tuple[str, int]]) -> None:
    seen = SeenDeliveries(generation=100)
    known: set[PublicationId] = set()
    for broker, number in drawn:
        id = id_of(number, broker)
        assert seen.add_if_new(id) == (id not in known)
        known.add(id)


def test_memory_is_bounded_and_the_latest_generation_is_always_known() -> None:
    seen = SeenDeliveries(generation=10)
    for number in range(1000):
        assert seen.add_if_new(id_of(number))
        assert len(seen) <= 20
    assert not any(seen.add_if_new(id_of(number)) for number in range(990, 1000))


def test_the_latest_deliveries_of_a_lost_broker_are_kept_while_the_client_uses_another() -> None:
    seen = SeenDeliveries(generation=10)
    for number in range(8):
        assert seen.add_if_new(id_of(number, "b1"))
    seen.keep_latest("b1", 5)
    for number in range(100):
        assert seen.add_if_new(id_of(number, "b2"))
    assert not any(seen.add_if_new(id_of(number, "b1")) for number in range(3, 8))
    assert seen.add_if_new(id_of(0, "b1"))


class Wire:
    """A connection that records frames and sends none."""

    def __init__(self) -> None:
        self.sent: list[Subscribe] = []

    def send(self, frame: bytes) -> None:
        content = decode(frame, Limits())
        assert isinstance(content, Subscribe)
        self.sent.append(content)

    @property
    def names(self) -> list[str]:
        return [each.name for each in self.sent]


def test_a_repeated_entry_counts_as_entered_when_the_broker_has_answered() -> None:
    expressions = {"one": "a = 1", "other": "a = 2"}

    async def scenario() -> None:
        requests = Requests(asyncio.get_running_loop(), lambda *_: None, lambda: None)

        def connect(*, is_resumed: bool) -> Wire:
            wire = Wire()
            welcome = Welcome("b1", 1, is_resumed, 0, 1 << 20, 1 << 16, 16, 0, 16)
            requests.connected(cast("Connection", wire), welcome)
            return wire

        first = connect(is_resumed=False)
        entering = asyncio.create_task(requests.enter(Subscribe, expressions))
        # The task sends its requests.
        await asyncio.sleep(0)
        for frame in first.sent:
            requests.answered(RequestAccepted(frame.request))
        await entering
        requests.disconnected("b1", None)
        again = connect(is_resumed=False)
        assert again.names == ["one", "other"], "the broker was restarted"
        requests.answered(RequestAccepted(again.sent[0].request))
        requests.disconnected("b1", None)
        assert connect(is_resumed=True).names == ["other"]
        requests.disconnected("b1", None)
        assert connect(is_resumed=True).names == ["other"], "that was not answered either"

    asyncio.run(scenario())
