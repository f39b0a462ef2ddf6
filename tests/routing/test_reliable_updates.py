"""Sender and receiver over a channel that loses, reorders and repeats: the receiver ends with the sender's entries."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from routing import reliable_updates
from routing.messages import (
    Advertise,
    Change,
    EntryId,
    Resend,
    Subscribe,
    Turn,
    Unadvertise,
    Unsubscribe,
    Update,
    UpdateAcknowledged,
)
from routing.reliable_updates import (
    MOST_CHANGES,
    MOST_PENDING,
    MOST_UNACKNOWLEDGED,
    Key,
    ReceivedChanges,
    UpdateReceiver,
    UpdateSender,
    key_of,
)

SOURCE = "b0"
DESTINATIONS = ("b1", "b2")
NUMBERS = st.integers(0, 5)


def entry(number: int, incarnation: int = 1) -> EntryId:
    return EntryId(SOURCE, incarnation, number)


def advertise(number: int, text: str = "TRUE") -> Advertise:
    return Advertise(entry(number), text)


def subscribe(number: int, text: str = "TRUE") -> Subscribe:
    return Subscribe(entry(number), text)


def is_entry(change: Change) -> bool:
    return isinstance(change, Advertise | Subscribe)


class Destination:
    """A receiver, and the table that results from the changes it returns."""

    def __init__(self, name: str, incarnation: int) -> None:
        self.name = name
        self.incarnation = incarnation
        self.receiver = UpdateReceiver(name, incarnation, "")
        self.table: dict[Key, Change] = {}

    def receive(self, update: Update) -> UpdateAcknowledged | Resend | None:
        turn = next(turn for turn in update.turns if turn.destination == self.name)
        received = self.receiver.receive(update, turn)
        self.apply(received.changes)
        self.apply(received.withdrawn)
        return received.answer

    def apply(self, changes: list[Change]) -> None:
        for change in changes:
            if is_entry(change):
                self.table[key_of(change)] = change
            else:
                del self.table[key_of(change)]


@dataclass(frozen=True, slots=True)
class Packet:
    destination: str
    message: Update | UpdateAcknowledged | Resend


class UpdateExchange(RuleBasedStateMachine):
    """One sender, two destinations, and packets in flight that arrive in any order."""

    @initialize()
    def begin(self) -> None:
        self.incarnation = 1
        self.sender = UpdateSender(SOURCE, self.incarnation, "")
        self.for_all: dict[Key, Change] = {}
        self.for_one: dict[str, dict[Key, Change]] = {name: {} for name in DESTINATIONS}
        self.destinations = {name: Destination(name, 1) for name in DESTINATIONS}
        self.in_flight: list[Packet] = []
        for name in DESTINATIONS:
            self.sender.set_reachable(name, 1)

    @rule(number=NUMBERS, text=st.sampled_from(("a > 1", "a > 2")))
    def advertises(self, number: int, text: str) -> None:
        change = Advertise(entry(number, self.incarnation), text)
        self.for_all[key_of(change)] = change
        self.sender.send_to_all(change)

    @rule(number=NUMBERS)
    def unadvertises(self, number: int) -> None:
        change = Unadvertise(entry(number, self.incarnation))
        if self.for_all.pop(key_of(change), None) is not None:
            self.sender.send_to_all(change)

    @rule(number=NUMBERS, name=st.sampled_from(DESTINATIONS))
    def subscribes(self, number: int, name: str) -> None:
        change = Subscribe(entry(number, self.incarnation), "a > 1")
        if key_of(change) not in self.for_one[name]:
            self.for_one[name][key_of(change)] = change
            self.sender.send(name, change)

    @rule(number=NUMBERS, name=st.sampled_from(DESTINATIONS))
    def unsubscribes(self, number: int, name: str) -> None:
        change = Unsubscribe(entry(number, self.incarnation))
        if self.for_one[name].pop(key_of(change), None) is not None:
            self.sender.send(name, change)

    @rule()
    def flush(self) -> None:
        self._post(self.sender.flush())

    @rule()
    def tick(self) -> None:
        self._post(self.sender.repeat())

    def _post(self, updates: list[Update]) -> None:
        for update in updates:
            self.in_flight += [Packet(name, update) for name in update.destinations]

    @precondition(lambda self: self.in_flight)
    @rule(place=st.integers(0, 40))
    def one_arrives(self, place: int) -> None:
        self._arrives(self.in_flight.pop(place % len(self.in_flight)))

    @precondition(lambda self: self.in_flight)
    @rule(place=st.integers(0, 40))
    def one_arrives_and_stays_in_flight(self, place: int) -> None:
        self._arrives(self.in_flight[place % len(self.in_flight)])

    @precondition(lambda self: self.in_flight)
    @rule(place=st.integers(0, 40))
    def one_is_lost(self, place: int) -> None:
        self.in_flight.pop(place % len(self.in_flight))

    def _arrives(self, packet: Packet) -> None:
        message = packet.message
        if isinstance(message, Update):
            answer = self.destinations[packet.destination].receive(message)
            if answer is not None:
                self.in_flight.append(Packet(SOURCE, answer))
        elif isinstance(message, UpdateAcknowledged):
            self.sender.receive_acknowledgement(message)
        else:
            self.sender.receive_resend_request(message)

    @rule(name=st.sampled_from(DESTINATIONS))
    def destination_is_out_of_reach(self, name: str) -> None:
        self.sender.set_unreachable(name)

    @rule(name=st.sampled_from(DESTINATIONS))
    def destination_is_within_reach(self, name: str) -> None:
        self.sender.set_reachable(name, self.destinations[name].incarnation)

    @rule(name=st.sampled_from(DESTINATIONS))
    def destination_restarts(self, name: str) -> None:
        """The sender notices it later, or only at the end."""
        self.destinations[name] = Destination(name, self.destinations[name].incarnation + 1)

    @rule()
    def source_restarts(self) -> None:
        """The new incarnation has no entries. The destinations notice it later, or only at the end."""
        self.incarnation += 1
        self.sender = UpdateSender(SOURCE, self.incarnation, "")
        self.sender.leave_openings_unfinished()
        self.for_all = {}
        self.for_one = {name: {} for name in DESTINATIONS}
        for name, destination in self.destinations.items():
            self.sender.set_reachable(name, destination.incarnation)

    @rule(name=st.sampled_from(DESTINATIONS))
    def destination_notices_the_restart_of_the_source(self, name: str) -> None:
        receiver = self.destinations[name].receiver
        request = (
            receiver.opening_request(SOURCE, self.incarnation)
            if receiver.has_older_entries(SOURCE, self.incarnation)
            else None
        )
        if request is not None:
            self.in_flight.append(Packet(SOURCE, request))

    @rule()
    def source_has_recovered(self) -> None:
        self.sender.finish_openings()

    @invariant()
    def entries_equal_the_applied_changes(self) -> None:
        for destination in getattr(self, "destinations", {}).values():
            entries = destination.receiver.entries_from(SOURCE)
            assert {key_of(change): change for change in entries} == destination.table

    def teardown(self) -> None:
        if not hasattr(self, "teller"):
            return
        self.source_has_recovered()
        for name in DESTINATIONS:
            self.destination_is_within_reach(name)
        for _ in range(6):
            for name in DESTINATIONS:
                self.destination_notices_the_restart_of_the_source(name)
            self.flush()
            self.tick()
            while self.in_flight:
                self._arrives(self.in_flight.pop(0))
        for name, destination in self.destinations.items():
            assert destination.table == {**self.for_all, **self.for_one[name]}
        assert self.sender.unacknowledged == 0


TestUpdateExchange = UpdateExchange.TestCase
TestUpdateExchange.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_the_same_is_true_with_batches_of_two_changes_and_small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reliable_updates, "MOST_CHANGES", 2)
    monkeypatch.setattr(reliable_updates, "MOST_PENDING", 6)
    monkeypatch.setattr(reliable_updates, "MOST_UNACKNOWLEDGED", 8)
    chosen = settings(max_examples=30, stateful_step_count=40, deadline=None)
    run_state_machine_as_test(UpdateExchange, settings=chosen)


def only(updates: list[Update]) -> Update:
    assert len(updates) == 1
    return updates[0]


def sender_to(*names: str) -> UpdateSender:
    sender = UpdateSender(SOURCE, 1, "")
    for name in names:
        sender.set_reachable(name, 1)
    return sender


def test_destinations_with_the_same_batch_share_one_update() -> None:
    sender = sender_to("b2", "b1")
    sender.send_to_all(advertise(1))
    assert only(sender.flush()).turns == (Turn("b1", 0, 0), Turn("b2", 0, 0))
    assert sender.flush() == []


def test_changes_before_a_flush_travel_in_one_batch_in_their_order() -> None:
    sender = sender_to("b1")
    sender.send("b1", subscribe(1))
    sender.flush()
    sender.send("b1", subscribe(2))
    sender.send("b1", Unsubscribe(entry(1)))
    assert only(sender.flush()).changes == (subscribe(2), Unsubscribe(entry(1)))


def test_a_destination_without_entries_receives_nothing() -> None:
    sender = sender_to("b1")
    sender.send("b1", subscribe(1))
    sender.send("b1", Unsubscribe(entry(1)))
    assert sender.flush() == []


def test_a_batch_is_repeated_until_it_is_acknowledged() -> None:
    sender, receiver = sender_to("b1"), UpdateReceiver("b1", 1, "")
    sender.send_to_all(advertise(1))
    sent = only(sender.flush())
    assert sender.repeat() == [], "it was sent in this tick"
    assert sender.repeat() == [sent]
    answer = receiver.receive(sent, sent.turns[0]).answer
    assert isinstance(answer, UpdateAcknowledged)
    sender.receive_acknowledgement(answer)
    assert sender.repeat() == sender.repeat() == []


def test_an_acknowledgement_for_an_earlier_incarnation_is_ignored() -> None:
    earlier, receiver = sender_to("b1"), UpdateReceiver("b1", 1, "")
    earlier.send_to_all(advertise(1))
    update = only(earlier.flush())
    late = receiver.receive(update, update.turns[0]).answer
    assert isinstance(late, UpdateAcknowledged)
    present = UpdateSender(SOURCE, 2, "")
    present.set_reachable("b1", 1)
    present.send_to_all(advertise(2))
    sent = only(present.flush())
    present.receive_acknowledgement(late)
    present.repeat()
    assert present.repeat() == [sent], "this was not acknowledged"


def test_an_unsubscription_that_arrives_before_its_subscription_waits_for_it() -> None:
    sender, receiver = sender_to("b1"), UpdateReceiver("b1", 1, "")
    sender.send_to_all(advertise(9))
    first = only(sender.flush())
    receiver.receive(first, first.turns[0])
    sender.send("b1", subscribe(1))
    subscribed = only(sender.flush())
    sender.send("b1", Unsubscribe(entry(1)))
    unsubscribed = only(sender.flush())
    assert receiver.receive(unsubscribed, unsubscribed.turns[0])[0] == []
    changes, _, _, _, answer = receiver.receive(subscribed, subscribed.turns[0])
    assert changes == [subscribe(1), Unsubscribe(entry(1))]
    assert isinstance(answer, UpdateAcknowledged)
    assert answer.sequence == 2


def test_an_update_that_arrives_twice_is_applied_once_and_acknowledged_again() -> None:
    sender, receiver = sender_to("b1"), UpdateReceiver("b1", 1, "")
    sender.send_to_all(advertise(1))
    update = only(sender.flush())
    first = receiver.receive(update, update.turns[0])
    assert receiver.receive(update, update.turns[0]) == ReceivedChanges([], [], [], answer=first.answer)


def test_an_unreachable_destination_receives_the_rest_later() -> None:
    sender = sender_to("b1")
    sender.send_to_all(advertise(1))
    sender.flush()
    sender.set_unreachable("b1")
    sender.send_to_all(advertise(2))
    assert sender.flush() == []
    assert sender.repeat() == sender.repeat() == []
    sender.set_reachable("b1", 1)
    assert only(sender.flush()).changes == (advertise(2),)


def test_pending_changes_for_an_unreachable_destination_are_bounded() -> None:
    sender, receiver = sender_to("b1"), UpdateReceiver("b1", 1, "")
    sender.send_to_all(advertise(1))
    before = only(sender.flush())
    receiver.receive(before, before.turns[0])
    sender.set_unreachable("b1")
    for number in range(MOST_PENDING):
        sender.send("b1", subscribe(number))
        sender.send("b1", Unsubscribe(entry(number)))
    assert sender.unacknowledged <= MOST_PENDING
    sender.send_to_all(Unadvertise(entry(1)))
    sender.set_reachable("b1", 1)
    update = only(sender.flush())
    assert receiver.receive(update, update.turns[0]).withdrawn == [Unadvertise(entry(1))]
    assert receiver.entries_from(SOURCE) == ()


def test_a_new_incarnation_receives_all_entries_in_a_new_epoch() -> None:
    sender = sender_to("b1")
    sender.send_to_all(advertise(1))
    sender.flush()
    sender.send("b1", subscribe(2))
    sender.flush()
    sender.set_reachable("b1", 2)
    update = only(sender.flush())
    assert update.changes == (advertise(1), subscribe(2))
    assert update.turns == (Turn("b1", 1, 0),)


def test_too_many_unacknowledged_batches_start_a_new_epoch() -> None:
    sender, receiver = sender_to("b1"), UpdateReceiver("b1", 1, "")
    for number in range(MOST_UNACKNOWLEDGED):
        sender.send_to_all(advertise(number % 3, f"a > {number}"))
        sender.flush()
    assert sender.unacknowledged == MOST_UNACKNOWLEDGED
    sender.send_to_all(Unadvertise(entry(0)))
    update = only(sender.flush())
    assert update.turns == (Turn("b1", 1, 0),)
    assert {change.entry.number for change in update.changes} == {1, 2}
    assert sender.unacknowledged == 1
    assert receiver.receive(update, update.turns[0])[0] == list(update.changes)


def test_the_first_batch_of_an_epoch_replaces_earlier_entries() -> None:
    receiver = UpdateReceiver("b1", 1, "")
    first = Update(SOURCE, 1, "", (Turn("b1", 0, 0),), (advertise(1), advertise(2), subscribe(3)))
    receiver.receive(first, first.turns[0])
    opening = Update(SOURCE, 1, "", (Turn("b1", 1, 0),), (advertise(2), advertise(1, "a > 9"), subscribe(4)))
    received = receiver.receive(opening, opening.turns[0])
    assert received.changes == [advertise(1, "a > 9"), subscribe(4)]
    assert received.withdrawn == [Unsubscribe(entry(3))]


def test_an_opening_of_several_batches_replaces_earlier_entries_when_it_is_complete() -> None:
    """Otherwise subscriptions would be missing between the first batch and the last, and publications would be lost."""
    sender, receiver = sender_to("b1"), UpdateReceiver("b1", 1, "")
    for number in range(MOST_CHANGES + 2):
        sender.send("b1", subscribe(number))
    first, last = sender.flush()
    assert (first.is_unfinished, last.is_unfinished) == (True, False)
    for update in (first, last):
        receiver.receive(update, update.turns[0])
    assert len(receiver.entries_from(SOURCE)) == MOST_CHANGES + 2
    sender.receive_resend_request(Resend("b1", 1, "", (SOURCE,), 0))
    sender.send("b1", Unsubscribe(entry(0)))
    sender.send("b1", subscribe(-1))
    first, last = sender.flush()
    assert not any(receiver.receive(first, first.turns[0])[:3])
    received = receiver.receive(last, last.turns[0])
    assert (received.changes, received.withdrawn) == ([subscribe(-1)], [Unsubscribe(entry(0))])


def test_a_late_batch_of_an_unknown_epoch_causes_a_resend_request() -> None:
    receiver = UpdateReceiver("b1", 1, "")
    late = Update(SOURCE, 1, "", (Turn("b1", 3, 2),), (advertise(1),))
    changes, _, _, _, answer = receiver.receive(late, late.turns[0])
    assert changes == []
    assert isinstance(answer, Resend)
    assert (answer.destinations, answer.epoch) == ((SOURCE,), 3)


def test_a_batch_of_an_earlier_incarnation_of_the_source_changes_nothing() -> None:
    receiver = UpdateReceiver("b1", 1, "")
    present = Update(SOURCE, 2, "", (Turn("b1", 0, 0),), (advertise(1),))
    past = Update(SOURCE, 1, "", (Turn("b1", 7, 0),), (advertise(2),))
    receiver.receive(present, present.turns[0])
    assert receiver.receive(past, past.turns[0]) == ReceivedChanges([], [], [])
    assert receiver.entries_from(SOURCE) == (advertise(1),)


def test_entries_of_a_restarted_source_count_until_its_new_opening_is_complete() -> None:
    receiver = UpdateReceiver("b1", 1, "")
    update = Update(SOURCE, 1, "", (Turn("b1", 0, 0),), (advertise(1), subscribe(2), subscribe(3)))
    receiver.receive(update, update.turns[0])
    assert receiver.is_complete(SOURCE, 1)
    assert receiver.has_older_entries(SOURCE, 2)
    assert receiver.opening_request(SOURCE, 2) == Resend("b1", 1, "", (SOURCE,), 0)
    begun = Update(SOURCE, 2, "", (Turn("b1", 0, 0),), (subscribe(2), subscribe(4)), is_unfinished=True)
    received = receiver.receive(begun, begun.turns[0])
    assert received.changes == [subscribe(4)], "a new entry is applied at once"
    assert received.repeated == [subscribe(2)]
    assert received.withdrawn == []
    assert receiver.opening_request(SOURCE, 2) is None, "the source repeats the rest by itself"
    assert not receiver.is_complete(SOURCE, 2)
    ended = Update(SOURCE, 2, "", (Turn("b1", 0, 1),), ())
    received = receiver.receive(ended, ended.turns[0])
    assert received.withdrawn == [Unadvertise(entry(1)), Unsubscribe(entry(3))]
    assert receiver.is_complete(SOURCE, 2)
    assert receiver.entries_from(SOURCE) == (subscribe(2), subscribe(4))


def test_a_source_that_recovers_leaves_its_openings_unfinished() -> None:
    sender, receiver = sender_to("b1"), UpdateReceiver("b1", 1, "")
    sender.leave_openings_unfinished()
    sender.send_to_all(advertise(1))
    first = only(sender.flush())
    sender.send("b1", subscribe(2))
    second = only(sender.flush())
    assert first.is_unfinished
    assert second.is_unfinished
    for update in (first, second):
        receiver.receive(update, update.turns[0])
    assert not receiver.is_complete(SOURCE, 1)
    sender.finish_openings()
    last = only(sender.flush())
    assert (last.changes, last.is_unfinished) == ((), False)
    receiver.receive(last, last.turns[0])
    assert receiver.is_complete(SOURCE, 1)
    assert receiver.entries_from(SOURCE) == (advertise(1), subscribe(2))


def test_a_source_that_left_leaves_no_entries() -> None:
    receiver = UpdateReceiver("b1", 1, "")
    update = Update(SOURCE, 1, "", (Turn("b1", 0, 0),), (advertise(1), subscribe(2)))
    receiver.receive(update, update.turns[0])
    assert receiver.drop_older_incarnations(SOURCE, 1) == [], "this incarnation sent the entries"
    assert receiver.drop_older_incarnations(SOURCE, 2) == [Unadvertise(entry(1)), Unsubscribe(entry(2))]
    assert receiver.drop_older_incarnations(SOURCE, 2) == []
    assert receiver.entries_from(SOURCE) == ()
    assert receiver.receive(update, update.turns[0]) == ReceivedChanges([], [], []), "it was in flight for a long time"
    assert receiver.entries_from(SOURCE) == ()


def test_a_source_answers_an_inquiry_after_its_last_change() -> None:
    sender, receiver = sender_to("b1"), UpdateReceiver("b1", 1, "")
    sender.send_to_all(advertise(1))
    first = only(sender.flush())
    assert receiver.receive(first, first.turns[0]).is_complete, "it is the opening"
    sender.set_unreachable("b1")
    sender.send("b1", subscribe(2))
    sender.set_reachable("b1", 1)
    inquiry = receiver.inquiry(SOURCE)
    assert isinstance(inquiry, UpdateAcknowledged)
    sender.receive_acknowledgement(inquiry)
    more, empty = sender.flush()
    assert (more.changes, empty.changes) == ((subscribe(2),), ())
    assert not receiver.receive(more, more.turns[0]).is_complete
    assert receiver.receive(empty, empty.turns[0]).is_complete


def test_a_source_with_unacknowledged_batches_answers_after_these() -> None:
    sender, receiver = sender_to("b1"), UpdateReceiver("b1", 1, "")
    sender.send_to_all(advertise(1))
    first = only(sender.flush())
    receiver.receive(first, first.turns[0])
    sender.send("b1", subscribe(2))
    lost = only(sender.flush())
    inquiry = receiver.inquiry(SOURCE)
    assert isinstance(inquiry, UpdateAcknowledged)
    sender.receive_acknowledgement(inquiry)
    assert sender.flush() == []
    received = receiver.receive(lost, lost.turns[0])
    assert isinstance(received.answer, UpdateAcknowledged)
    sender.receive_acknowledgement(received.answer)
    inquiry = receiver.inquiry(SOURCE)
    assert isinstance(inquiry, UpdateAcknowledged)
    sender.receive_acknowledgement(inquiry)
    empty = only(sender.flush())
    assert receiver.receive(empty, empty.turns[0]).is_complete


def test_an_entry_added_again_right_after_an_opening_that_left_it_out_is_not_withdrawn() -> None:
    """A lost batch delays the later ones, and they are applied together with it."""
    receiver = UpdateReceiver("b1", 1, "")
    old = Update(SOURCE, 1, "", (Turn("b1", 0, 0),), (advertise(1), advertise(2)))
    receiver.receive(old, old.turns[0])
    opening = Update(SOURCE, 2, "", (Turn("b1", 0, 0),), (advertise(3),), is_unfinished=True)
    receiver.receive(opening, opening.turns[0])
    lost = Update(SOURCE, 2, "", (Turn("b1", 0, 1),), ())
    again = Update(SOURCE, 2, "", (Turn("b1", 0, 2),), (advertise(1),))
    assert receiver.receive(again, again.turns[0]).changes == []
    received = receiver.receive(lost, lost.turns[0])
    assert received.changes == [advertise(1)]
    assert received.withdrawn == [Unadvertise(entry(2))]
    assert set(receiver.entries_from(SOURCE)) == {advertise(1), advertise(3)}
