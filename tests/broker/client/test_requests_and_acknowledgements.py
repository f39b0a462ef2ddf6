"""A client's state: the deliveries it has seen, the number up to which all are finished, and its requests."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.client.acknowledgements import Acknowledgements
from broker.client.connection import Connection
from broker.client.delivery_inbox import SeenDeliveries
from broker.client.requests import Kind, Requests
from broker.wire.client_codec import decode
from broker.wire.client_frames import (
    Advertise,
    Reason,
    RequestAccepted,
    RequestRefused,
    Subscribe,
    Unadvertise,
    Unsubscribe,
    Welcome,
)
from broker.wire.limits import Limits
from routing.messages import PublicationId

Request = Advertise | Unadvertise | Subscribe | Unsubscribe


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
        self.sent: list[Request] = []

    def send(self, frame: bytes) -> None:
        content = decode(frame, Limits())
        assert isinstance(content, Advertise | Unadvertise | Subscribe | Unsubscribe)
        self.sent.append(content)

    @property
    def names(self) -> list[str]:
        return [each.name for each in self.sent]

    @property
    def withdrawn(self) -> list[str]:
        return [each.name for each in self.sent if isinstance(each, Unadvertise | Unsubscribe)]


class Peer:
    """A client's requests, and the brokers that it connects to in turn."""

    def __init__(self) -> None:
        self.requests = Requests(asyncio.get_running_loop(), lambda *_: None, lambda: None)
        self._broker = ""

    def connect(self, broker: str = "b1", *, is_resumed: bool = True) -> Wire:
        wire = Wire()
        welcome = Welcome(broker, 1, is_resumed, 0, 1 << 20, 1 << 16, 16, 0, 16)
        self.requests.connected(cast("Connection", wire), welcome)
        self._broker = broker
        return wire

    def disconnect(self) -> None:
        self.requests.disconnected(self._broker, None)

    def answer(self, wire: Wire) -> None:
        """Accepts all requests that were sent over the connection."""
        for frame in wire.sent:
            self.requests.answered(RequestAccepted(frame.request))

    async def start(self, request: Coroutine[object, object, None]) -> asyncio.Task[None]:
        """Starts a request and lets it send its frames."""
        task = asyncio.create_task(request)
        await asyncio.sleep(0)
        return task

    async def give_up(self, task: asyncio.Task[None]) -> None:
        """Ends a request as a caller does that does not wait any longer."""
        task.cancel()
        await asyncio.wait([task])

    async def enter(self, kind: Kind, wire: Wire, expressions: dict[str, str]) -> None:
        task = await self.start(self.requests.enter(kind, expressions))
        self.answer(wire)
        await task


def test_a_repeated_entry_counts_as_entered_when_the_broker_has_answered() -> None:
    async def scenario() -> None:
        peer = Peer()
        await peer.enter(Subscribe, peer.connect(is_resumed=False), {"one": "a = 1", "other": "a = 2"})
        peer.disconnect()
        again = peer.connect(is_resumed=False)
        assert again.names == ["one", "other"], "the broker was restarted"
        peer.requests.answered(RequestAccepted(again.sent[0].request))
        peer.disconnect()
        assert peer.connect().names == ["other"]
        peer.disconnect()
        assert peer.connect().names == ["other"], "that was not answered either"

    asyncio.run(scenario())


KINDS = pytest.mark.parametrize("kind", [Subscribe, Advertise])


@KINDS
def test_an_unanswered_withdrawal_is_repeated_while_its_caller_waits(kind: Kind) -> None:
    async def scenario() -> None:
        peer = Peer()
        await peer.enter(kind, peer.connect(is_resumed=False), {"one": "a = 1"})
        withdrawing = await peer.start(peer.requests.withdraw(kind, ["one"]))
        peer.disconnect()
        again = peer.connect()
        assert again.withdrawn == ["one"]
        peer.requests.refused(RequestRefused(again.sent[-1].request, Reason.UNKNOWN, "it was withdrawn"))
        await withdrawing
        peer.disconnect()
        assert peer.connect().names == []

    asyncio.run(scenario())


@KINDS
def test_an_unanswered_withdrawal_is_repeated_after_its_caller_has_given_up(kind: Kind) -> None:
    async def scenario() -> None:
        peer = Peer()
        first = peer.connect(is_resumed=False)
        await peer.enter(kind, first, {"one": "a = 1"})
        withdrawing = await peer.start(peer.requests.withdraw(kind, ["one"]))
        await peer.give_up(withdrawing)
        for _ in range(2):
            peer.disconnect()
            again = peer.connect()
            assert again.withdrawn == ["one"]
        peer.answer(again)
        peer.disconnect()
        assert peer.connect().names == []

    asyncio.run(scenario())


@KINDS
def test_an_entry_that_is_given_up_unanswered_is_withdrawn_after_the_reconnect(kind: Kind) -> None:
    async def scenario() -> None:
        peer = Peer()
        peer.connect(is_resumed=False)
        entering = await peer.start(peer.requests.enter(kind, {"one": "a = 1"}))
        peer.disconnect()
        # The broker may have the entry. The client cannot tell it anything now.
        await peer.give_up(entering)
        again = peer.connect()
        assert again.withdrawn == ["one"]
        peer.answer(again)
        peer.disconnect()
        assert peer.connect().names == []

    asyncio.run(scenario())


@KINDS
def test_a_withdrawal_that_another_broker_answered_is_repeated_at_the_broker_that_has_the_entry(kind: Kind) -> None:
    async def scenario() -> None:
        peer = Peer()
        await peer.enter(kind, peer.connect("b1", is_resumed=False), {"one": "a = 1"})
        withdrawing = await peer.start(peer.requests.withdraw(kind, ["one"]))
        peer.disconnect()
        peer.answer(peer.connect("b2", is_resumed=False))
        await withdrawing
        peer.disconnect()
        assert peer.connect("b1").withdrawn == ["one"]

    asyncio.run(scenario())


def test_an_unanswered_entry_is_not_withdrawn_before_it_is_sent_again() -> None:
    async def scenario() -> None:
        peer = Peer()
        peer.connect(is_resumed=False)
        entering = await peer.start(peer.requests.enter(Subscribe, {"alerts": "a = 1"}))
        peer.disconnect()
        # A durable client's broker may have publications queued for the name since an earlier process.
        again = peer.connect()
        assert again.names == ["alerts"]
        assert again.withdrawn == []
        peer.answer(again)
        await entering

    asyncio.run(scenario())


def test_a_broker_that_denies_the_session_is_sent_unanswered_withdrawals_too() -> None:
    async def scenario() -> None:
        peer = Peer()
        await peer.enter(Subscribe, peer.connect(is_resumed=False), {"one": "a = 1", "other": "a = 2"})
        peer.requests.abandon(Subscribe, ["one"])
        peer.disconnect()
        # After a revocation a broker denies the session to hear of all entries, and still has the others.
        again = peer.connect(is_resumed=False)
        assert again.withdrawn == ["one"]
        assert set(again.names) == {"one", "other"}

    asyncio.run(scenario())
