"""Publications across lost connections and crashes: each is published once, and counts as accepted only if it is.

The publish queue of the client library runs against the broker core. Connections break at any time, and the store
commits at any time.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import cast

import msgpack
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from broker.client.connection import Connection
from broker.client.publish_queue import PublishQueue
from broker.core.deduplication import PublishLedger
from broker.core.effects import Accept, Effect, Refuse
from broker.core.inputs import ClientLost, Published
from broker.core.settings import SECOND, Settings
from broker.wire.client_codec import decode
from broker.wire.client_frames import PublicationRefused, PublishRequest, Welcome
from broker.wire.limits import Limits
from routing.messages import PublicationId
from tests.harness.slow_store import SlowPlace, answers

WINDOW = 3
GOOD, WRONG, FORBIDDEN = "good", "wrong", "forbidden"


class Publication:
    """A publication, with the answer that its publisher received."""

    def __init__(self, number: int, kind: str) -> None:
        self.kind = kind
        text = f"{kind} {number}"
        self.attributes: bytes = msgpack.packb({"text": text} if kind == GOOD else text)
        self.is_accepted = self.is_refused = False

    def done(self) -> bool:
        return self.is_accepted or self.is_refused

    def set_result(self, _: PublicationId | None, /) -> None:
        self.is_accepted = True

    def set_exception(self, _: BaseException, /) -> None:
        self.is_refused = True


class Wire:
    """The client's connection. Sent frames are in flight until the test makes them arrive."""

    def __init__(self) -> None:
        self.up: deque[bytes] = deque()
        self.down: deque[Effect] = deque()

    def send(self, frame: bytes) -> None:
        self.up.append(frame)

    def has_room(self) -> bool:
        return True


class PublishingMachine(RuleBasedStateMachine):
    is_durable = True

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.place = SlowPlace(Settings(is_durable=self.is_durable, publish_window=WINDOW))
        self.published: dict[bytes, set[PublicationId]] = {}
        """The ids of each publication that was published; at a durable broker, of each that was stored."""
        self.requested: list[Publication] = []
        self.session = 0
        self.wire: Wire | None = None
        self.another_session()
        self.connect()

    @precondition(lambda self: self.wire is None)
    @rule()
    def another_session(self) -> None:
        """Starts another process of the same client. The answers to the earlier process's publications are lost."""
        self.session += 1
        self.publishing = PublishQueue(self.loop, is_answered=True)
        self.of_session: list[Publication] = []

    @precondition(lambda self: self.wire is None)
    @rule()
    def connect(self) -> None:
        keep = None if self.is_durable else 3600 * SECOND
        greeting = self.place.connect(session=f"s{self.session}", keep=keep)
        self.wire = Wire()
        numbers = (
            self.place.incarnation,
            greeting.is_resumed,
            greeting.accepted_through,
            1 << 20,
            1 << 16,
            WINDOW,
            0,
            1,
        )
        welcome = Welcome("b1", *numbers, missing=greeting.missing)
        self.publishing.connected(cast("Connection", self.wire), welcome)

    @precondition(lambda self: self.wire is not None)
    @rule(kinds=st.lists(st.sampled_from([GOOD, GOOD, WRONG, FORBIDDEN]), min_size=1, max_size=WINDOW))
    def publish(self, kinds: list[str]) -> None:
        for kind in kinds:
            if not self.publishing.has_room():
                return
            publication = Publication(len(self.requested), kind)
            self.requested.append(publication)
            self.of_session.append(publication)
            self.publishing.put_for(publication, publication.attributes, b"", 0, False)

    @precondition(lambda self: self.wire is not None and self.wire.up)
    @rule(most=st.integers(1, WINDOW))
    def arrive(self, most: int) -> None:
        assert self.wire is not None
        for _ in range(min(most, len(self.wire.up))):
            self._arrive(self.wire)

    def _arrive(self, wire: Wire) -> None:
        request = decode(wire.up.popleft(), Limits())
        assert isinstance(request, PublishRequest)
        if FORBIDDEN.encode() in request.attributes:
            # The driver refuses it, and the core does not receive it.
            wire.down.append(Refuse("c", request.reference, "forbidden", "forbidden"))
            return
        effects = self.place.handle(Published("c", request.reference, request.attributes))
        if not self.is_durable:
            ids = [each.publication for each in effects if isinstance(each, Accept) and each.publication is not None]
            self.published.setdefault(request.attributes, set()).update(ids)
        self._send_answers()

    @precondition(lambda self: self.wire is not None and self.wire.down)
    @rule(most=st.integers(1, WINDOW))
    def receive_answers(self, most: int) -> None:
        assert self.wire is not None
        for _ in range(min(most, len(self.wire.down))):
            self._receive_answer(self.wire.down.popleft())

    def _receive_answer(self, answer: Effect) -> None:
        if isinstance(answer, Accept):
            assert answer.publication is not None
            self.publishing.accepted((int(answer.reference), answer.publication.counter))
        elif isinstance(answer, Refuse):
            self.publishing.refused(PublicationRefused(int(answer.reference), answer.code, answer.reason))

    @precondition(lambda self: self.wire is not None)
    @rule()
    def lose_connection(self) -> None:
        self.wire = None
        self.publishing.disconnected()
        self.place.handle(ClientLost("c"))

    @precondition(lambda self: not self.place.is_written)
    @rule()
    def write(self) -> None:
        self.place.write()
        for key, record in self.place.disk.items():
            if key[0] == "publication":
                assert isinstance(record, tuple)
                self.published.setdefault(record[0].attributes, set()).add(record[0].id)

    @rule()
    def report(self) -> None:
        self.place.report()
        self._send_answers()

    @rule()
    def commit(self) -> None:
        self.report()
        self.write()
        self.report()

    @precondition(lambda self: self.is_durable)
    @rule()
    def crash(self) -> None:
        self.wire = None
        self.publishing.disconnected()
        self.place.start()

    def _send_answers(self) -> None:
        effects, self.place.effects = self.place.effects, []
        if self.wire is not None:
            self.wire.down += [each for each in effects if isinstance(each, Accept | Refuse) and each.client == "c"]

    @invariant()
    def nothing_is_published_twice(self) -> None:
        assert all(len(ids) <= 1 for ids in self.published.values())

    @invariant()
    def only_what_is_published_counts_as_accepted(self) -> None:
        for publication in self.requested:
            if publication.is_accepted:
                assert publication.kind == GOOD
                assert self.published.get(publication.attributes)
            if publication.is_refused:
                assert publication.kind != GOOD

    def teardown(self) -> None:
        """Checks that in the end all publications are answered."""
        if self.wire is None:
            self.connect()
        assert self.wire is not None
        while self.wire.up or self.wire.down or self.publishing.unanswered:
            before = len(self.wire.up), len(self.wire.down), self.publishing.unanswered
            self.arrive(len(self.wire.up))
            self.commit()
            self.receive_answers(len(self.wire.down))
            assert (len(self.wire.up), len(self.wire.down), self.publishing.unanswered) != before, "no answer arrives"
        self.nothing_is_published_twice()
        self.only_what_is_published_counts_as_accepted()
        assert all(publication.done() for publication in self.of_session)
        self.loop.close()


class PublishingMachineInMemory(PublishingMachine):
    is_durable = False


PublishingMachine.TestCase.settings = settings(max_examples=200, stateful_step_count=50, deadline=None)
PublishingMachineInMemory.TestCase.settings = settings(max_examples=50, stateful_step_count=50, deadline=None)
TestPublishing = PublishingMachine.TestCase
TestPublishingInMemory = PublishingMachineInMemory.TestCase


def test_after_a_restart_a_new_session_of_a_durable_client_does_not_learn_of_the_earlier_ones_publications() -> None:
    place = SlowPlace()
    place.connect()
    for reference in range(1, 6):
        place.publish(reference, "c", reference)
    place.settle()
    place.handle(ClientLost("c"))
    assert place.connect(session="next").accepted_through == 0
    place.settle()
    place.start()
    assert place.connect(session="next").accepted_through == 0


def test_a_publication_being_stored_is_not_reported_as_accepted_and_not_accepted_again() -> None:
    place = SlowPlace()
    place.connect()
    place.publish(1, "c", 1)
    place.handle(ClientLost("c"))
    assert place.connect().accepted_through == 0
    assert place.publish(1, "c", 1) == []
    assert answers(place.settle(), "c") == [(True, 1)]
    assert place.connect().accepted_through == 1


def test_another_session_does_not_learn_the_outcome_of_the_earlier_ones_publication_of_the_same_number() -> None:
    place = SlowPlace()
    place.connect()
    place.publish(1, "c", 1)
    place.handle(ClientLost("c"))
    place.connect(session="next")
    assert answers(place.settle(), "c") == []
    assert place.broker.unsettled == 0, "it was published"
    assert place.connect(session="next").accepted_through == 0


def test_refusals_survive_a_restart_while_the_client_may_not_have_received_them() -> None:
    place = SlowPlace(Settings(is_durable=True, publish_window=4))
    place.connect()
    place.publish(1, "c", 1)
    place.handle(Published("c", 2, b"no map"))
    place.publish(3, "c", 3)
    place.settle()
    place.start()
    assert place.connect().missing == (2,)
    for reference in (4, 5, 6, 7):
        place.publish(reference, "c", reference)
    place.settle()
    place.start()
    greeting = place.connect()
    assert (greeting.accepted_through, greeting.missing) == (7, ()), (
        "a client that sent so many since has received the answers"
    )


def test_repeated_refusals_of_the_driver_are_remembered_as_long_as_those_of_the_core() -> None:
    ledger = PublishLedger(window=3)
    ledger.accept(2)
    ledger.accept(3)
    assert ledger.resume() == (3, (1,)), "the core has never seen the first one"
    ledger.accept(4)
    ledger.accept(5)
    assert ledger.resume() == (5, (1,)), "the client may have missed the second refusal too"
    for reference in (6, 7, 8):
        ledger.accept(reference)
    assert ledger.resume() == (8, ())


def test_the_ledger_of_a_session_is_bounded() -> None:
    ledger = PublishLedger(window=8)
    for reference in range(1, 1000):
        ledger.refuse(reference)
        # A correct client would not repeat this so often.
        for earlier in range(1, reference):
            if ledger.is_new(earlier):
                ledger.refuse(earlier)
    ledger.accept(1_000_000)
    last, missing = ledger.resume()
    assert last == 1_000_000
    assert len(missing) <= 8
