"""Teller and hearer over a channel that loses, reorders and repeats: the hearer ends with what the teller holds."""

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
    MOST_UNACKNOWLEDGED,
    MOST_WAITING,
    Heard,
    Key,
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


def is_held(change: Change) -> bool:
    return isinstance(change, Advertise | Subscribe)


class Destination:
    """A hearer, and the table that its owner makes from what it is told to apply."""

    def __init__(self, name: str, incarnation: int) -> None:
        self.name = name
        self.incarnation = incarnation
        self.hearer = UpdateReceiver(name, incarnation, "")
        self.table: dict[Key, Change] = {}

    def take(self, update: Update) -> UpdateAcknowledged | Resend | None:
        turn = next(turn for turn in update.turns if turn.destination == self.name)
        heard = self.hearer.receive(update, turn)
        self.apply(heard.changes)
        self.apply(heard.gone)
        return heard.answer

    def apply(self, changes: list[Change]) -> None:
        for change in changes:
            if is_held(change):
                self.table[key_of(change)] = change
            else:
                del self.table[key_of(change)]


@dataclass(frozen=True, slots=True)
class Letter:
    destination: str
    message: Update | UpdateAcknowledged | Resend


class Correspondence(RuleBasedStateMachine):
    """One teller, two destinations, and letters under way in no particular order."""

    @initialize()
    def begin(self) -> None:
        self.incarnation = 1
        self.teller = UpdateSender(SOURCE, self.incarnation, "")
        self.for_all: dict[Key, Change] = {}
        self.for_one: dict[str, dict[Key, Change]] = {name: {} for name in DESTINATIONS}
        self.destinations = {name: Destination(name, 1) for name in DESTINATIONS}
        self.under_way: list[Letter] = []
        for name in DESTINATIONS:
            self.teller.reaches(name, 1)

    @rule(number=NUMBERS, text=st.sampled_from(("a > 1", "a > 2")))
    def advertises(self, number: int, text: str) -> None:
        change = Advertise(entry(number, self.incarnation), text)
        self.for_all[key_of(change)] = change
        self.teller.tell_all(change)

    @rule(number=NUMBERS)
    def unadvertises(self, number: int) -> None:
        change = Unadvertise(entry(number, self.incarnation))
        if self.for_all.pop(key_of(change), None) is not None:
            self.teller.tell_all(change)

    @rule(number=NUMBERS, name=st.sampled_from(DESTINATIONS))
    def subscribes(self, number: int, name: str) -> None:
        change = Subscribe(entry(number, self.incarnation), "a > 1")
        if key_of(change) not in self.for_one[name]:
            self.for_one[name][key_of(change)] = change
            self.teller.tell(name, change)

    @rule(number=NUMBERS, name=st.sampled_from(DESTINATIONS))
    def unsubscribes(self, number: int, name: str) -> None:
        change = Unsubscribe(entry(number, self.incarnation))
        if self.for_one[name].pop(key_of(change), None) is not None:
            self.teller.tell(name, change)

    @rule()
    def flush(self) -> None:
        self._post(self.teller.flush())

    @rule()
    def tick(self) -> None:
        self._post(self.teller.repeat())

    def _post(self, updates: list[Update]) -> None:
        for update in updates:
            self.under_way += [Letter(name, update) for name in update.destinations]

    @precondition(lambda self: self.under_way)
    @rule(place=st.integers(0, 40))
    def one_arrives(self, place: int) -> None:
        self._arrives(self.under_way.pop(place % len(self.under_way)))

    @precondition(lambda self: self.under_way)
    @rule(place=st.integers(0, 40))
    def one_arrives_and_stays_under_way(self, place: int) -> None:
        self._arrives(self.under_way[place % len(self.under_way)])

    @precondition(lambda self: self.under_way)
    @rule(place=st.integers(0, 40))
    def one_is_lost(self, place: int) -> None:
        self.under_way.pop(place % len(self.under_way))

    def _arrives(self, letter: Letter) -> None:
        message = letter.message
        if isinstance(message, Update):
            answer = self.destinations[letter.destination].take(message)
            if answer is not None:
                self.under_way.append(Letter(SOURCE, answer))
        elif isinstance(message, UpdateAcknowledged):
            self.teller.acknowledged(message)
        else:
            self.teller.asked_to_resend(message)

    @rule(name=st.sampled_from(DESTINATIONS))
    def destination_is_out_of_reach(self, name: str) -> None:
        self.teller.cannot_reach(name)

    @rule(name=st.sampled_from(DESTINATIONS))
    def destination_is_within_reach(self, name: str) -> None:
        self.teller.reaches(name, self.destinations[name].incarnation)

    @rule(name=st.sampled_from(DESTINATIONS))
    def destination_starts_anew(self, name: str) -> None:
        """The teller hears of it later, or never before the end."""
        self.destinations[name] = Destination(name, self.destinations[name].incarnation + 1)

    @rule()
    def source_starts_anew(self) -> None:
        """It knows nothing of what it told; the destinations hear of it later, or never before the end."""
        self.incarnation += 1
        self.teller = UpdateSender(SOURCE, self.incarnation, "")
        self.teller.leave_open()
        self.for_all = {}
        self.for_one = {name: {} for name in DESTINATIONS}
        for name, destination in self.destinations.items():
            self.teller.reaches(name, destination.incarnation)

    @rule(name=st.sampled_from(DESTINATIONS))
    def destination_hears_that_the_source_started_anew(self, name: str) -> None:
        hearer = self.destinations[name].hearer
        request = hearer.request(SOURCE, self.incarnation) if hearer.holds_older(SOURCE, self.incarnation) else None
        if request is not None:
            self.under_way.append(Letter(SOURCE, request))

    @rule()
    def source_has_recovered(self) -> None:
        self.teller.finish()

    @invariant()
    def what_is_held_is_what_was_applied(self) -> None:
        for destination in getattr(self, "destinations", {}).values():
            held = destination.hearer.held_from(SOURCE)
            assert {key_of(change): change for change in held} == destination.table

    def teardown(self) -> None:
        if not hasattr(self, "teller"):
            return
        self.source_has_recovered()
        for name in DESTINATIONS:
            self.destination_is_within_reach(name)
        for _ in range(6):
            for name in DESTINATIONS:
                self.destination_hears_that_the_source_started_anew(name)
            self.flush()
            self.tick()
            while self.under_way:
                self._arrives(self.under_way.pop(0))
        for name, destination in self.destinations.items():
            assert destination.table == {**self.for_all, **self.for_one[name]}
        assert self.teller.unacknowledged == 0


TestCorrespondence = Correspondence.TestCase
TestCorrespondence.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_the_same_holds_with_batches_of_two_changes_and_little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reliable_updates, "MOST_CHANGES", 2)
    monkeypatch.setattr(reliable_updates, "MOST_WAITING", 6)
    monkeypatch.setattr(reliable_updates, "MOST_UNACKNOWLEDGED", 8)
    chosen = settings(max_examples=30, stateful_step_count=40, deadline=None)
    run_state_machine_as_test(Correspondence, settings=chosen)


def only(updates: list[Update]) -> Update:
    assert len(updates) == 1
    return updates[0]


def told_to(*names: str) -> UpdateSender:
    teller = UpdateSender(SOURCE, 1, "")
    for name in names:
        teller.reaches(name, 1)
    return teller


def test_destinations_that_hear_the_same_share_one_update() -> None:
    teller = told_to("b2", "b1")
    teller.tell_all(advertise(1))
    assert only(teller.flush()).turns == (Turn("b1", 0, 0), Turn("b2", 0, 0))
    assert teller.flush() == []


def test_changes_of_one_moment_travel_in_one_batch_in_their_order() -> None:
    teller = told_to("b1")
    teller.tell("b1", subscribe(1))
    teller.flush()
    teller.tell("b1", subscribe(2))
    teller.tell("b1", Unsubscribe(entry(1)))
    assert only(teller.flush()).changes == (subscribe(2), Unsubscribe(entry(1)))


def test_nothing_is_said_to_whoever_there_is_nothing_to_tell() -> None:
    teller = told_to("b1")
    teller.tell("b1", subscribe(1))
    teller.tell("b1", Unsubscribe(entry(1)))
    assert teller.flush() == []


def test_a_batch_is_repeated_until_it_is_acknowledged() -> None:
    teller, hearer = told_to("b1"), UpdateReceiver("b1", 1, "")
    teller.tell_all(advertise(1))
    sent = only(teller.flush())
    assert teller.repeat() == [], "it was sent only just now"
    assert teller.repeat() == [sent]
    answer = hearer.receive(sent, sent.turns[0]).answer
    assert isinstance(answer, UpdateAcknowledged)
    teller.acknowledged(answer)
    assert teller.repeat() == teller.repeat() == []


def test_an_acknowledgement_of_what_an_earlier_life_told_settles_nothing() -> None:
    earlier, hearer = told_to("b1"), UpdateReceiver("b1", 1, "")
    earlier.tell_all(advertise(1))
    update = only(earlier.flush())
    late = hearer.receive(update, update.turns[0]).answer
    assert isinstance(late, UpdateAcknowledged)
    present = UpdateSender(SOURCE, 2, "")
    present.reaches("b1", 1)
    present.tell_all(advertise(2))
    sent = only(present.flush())
    present.acknowledged(late)
    present.repeat()
    assert present.repeat() == [sent], "nobody has acknowledged this"


def test_an_unsubscription_that_overtakes_its_subscription_waits_for_it() -> None:
    teller, hearer = told_to("b1"), UpdateReceiver("b1", 1, "")
    teller.tell_all(advertise(9))
    first = only(teller.flush())
    hearer.receive(first, first.turns[0])
    teller.tell("b1", subscribe(1))
    subscribed = only(teller.flush())
    teller.tell("b1", Unsubscribe(entry(1)))
    unsubscribed = only(teller.flush())
    assert hearer.receive(unsubscribed, unsubscribed.turns[0])[0] == []
    changes, _, _, _, answer = hearer.receive(subscribed, subscribed.turns[0])
    assert changes == [subscribe(1), Unsubscribe(entry(1))]
    assert isinstance(answer, UpdateAcknowledged)
    assert answer.sequence == 2


def test_what_comes_twice_is_applied_once_and_acknowledged_again() -> None:
    teller, hearer = told_to("b1"), UpdateReceiver("b1", 1, "")
    teller.tell_all(advertise(1))
    update = only(teller.flush())
    first = hearer.receive(update, update.turns[0])
    assert hearer.receive(update, update.turns[0]) == Heard([], [], [], answer=first.answer)


def test_whoever_cannot_be_reached_hears_the_rest_later() -> None:
    teller = told_to("b1")
    teller.tell_all(advertise(1))
    teller.flush()
    teller.cannot_reach("b1")
    teller.tell_all(advertise(2))
    assert teller.flush() == []
    assert teller.repeat() == teller.repeat() == []
    teller.reaches("b1", 1)
    assert only(teller.flush()).changes == (advertise(2),)


def test_what_waits_for_whoever_cannot_be_reached_has_an_end() -> None:
    teller, hearer = told_to("b1"), UpdateReceiver("b1", 1, "")
    teller.tell_all(advertise(1))
    before = only(teller.flush())
    hearer.receive(before, before.turns[0])
    teller.cannot_reach("b1")
    for number in range(MOST_WAITING):
        teller.tell("b1", subscribe(number))
        teller.tell("b1", Unsubscribe(entry(number)))
    assert teller.unacknowledged <= MOST_WAITING
    teller.tell_all(Unadvertise(entry(1)))
    teller.reaches("b1", 1)
    update = only(teller.flush())
    assert hearer.receive(update, update.turns[0]).gone == [Unadvertise(entry(1))]
    assert hearer.held_from(SOURCE) == ()


def test_a_new_incarnation_is_told_everything_in_a_new_epoch() -> None:
    teller = told_to("b1")
    teller.tell_all(advertise(1))
    teller.flush()
    teller.tell("b1", subscribe(2))
    teller.flush()
    teller.reaches("b1", 2)
    update = only(teller.flush())
    assert update.changes == (advertise(1), subscribe(2))
    assert update.turns == (Turn("b1", 1, 0),)


def test_too_much_unacknowledged_starts_a_new_epoch() -> None:
    teller, hearer = told_to("b1"), UpdateReceiver("b1", 1, "")
    for number in range(MOST_UNACKNOWLEDGED):
        teller.tell_all(advertise(number % 3, f"a > {number}"))
        teller.flush()
    assert teller.unacknowledged == MOST_UNACKNOWLEDGED
    teller.tell_all(Unadvertise(entry(0)))
    update = only(teller.flush())
    assert update.turns == (Turn("b1", 1, 0),)
    assert {change.entry.number for change in update.changes} == {1, 2}
    assert teller.unacknowledged == 1
    assert hearer.receive(update, update.turns[0])[0] == list(update.changes)


def test_the_first_batch_of_an_epoch_replaces_what_was_held() -> None:
    hearer = UpdateReceiver("b1", 1, "")
    first = Update(SOURCE, 1, "", (Turn("b1", 0, 0),), (advertise(1), advertise(2), subscribe(3)))
    hearer.receive(first, first.turns[0])
    anew = Update(SOURCE, 1, "", (Turn("b1", 1, 0),), (advertise(2), advertise(1, "a > 9"), subscribe(4)))
    heard = hearer.receive(anew, anew.turns[0])
    assert heard.changes == [advertise(1, "a > 9"), subscribe(4)]
    assert heard.gone == [Unsubscribe(entry(3))]


def test_an_epoch_that_starts_with_several_batches_replaces_what_was_held_when_all_are_there() -> None:
    """Otherwise subscriptions would be missing from the first batch to the last, and publications with them."""
    teller, hearer = told_to("b1"), UpdateReceiver("b1", 1, "")
    for number in range(MOST_CHANGES + 2):
        teller.tell("b1", subscribe(number))
    first, last = teller.flush()
    assert (first.is_unfinished, last.is_unfinished) == (True, False)
    for update in (first, last):
        hearer.receive(update, update.turns[0])
    assert len(hearer.held_from(SOURCE)) == MOST_CHANGES + 2
    teller.asked_to_resend(Resend("b1", 1, "", (SOURCE,), 0))
    teller.tell("b1", Unsubscribe(entry(0)))
    teller.tell("b1", subscribe(-1))
    first, last = teller.flush()
    assert not any(hearer.receive(first, first.turns[0])[:3])
    heard = hearer.receive(last, last.turns[0])
    assert (heard.changes, heard.gone) == ([subscribe(-1)], [Unsubscribe(entry(0))])


def test_a_batch_of_an_unknown_epoch_is_asked_for_again_from_the_start() -> None:
    hearer = UpdateReceiver("b1", 1, "")
    late = Update(SOURCE, 1, "", (Turn("b1", 3, 2),), (advertise(1),))
    changes, _, _, _, answer = hearer.receive(late, late.turns[0])
    assert changes == []
    assert isinstance(answer, Resend)
    assert (answer.destinations, answer.epoch) == ((SOURCE,), 3)


def test_a_batch_of_an_earlier_life_of_the_source_changes_nothing() -> None:
    hearer = UpdateReceiver("b1", 1, "")
    present = Update(SOURCE, 2, "", (Turn("b1", 0, 0),), (advertise(1),))
    past = Update(SOURCE, 1, "", (Turn("b1", 7, 0),), (advertise(2),))
    hearer.receive(present, present.turns[0])
    assert hearer.receive(past, past.turns[0]) == Heard([], [], [])
    assert hearer.held_from(SOURCE) == (advertise(1),)


def test_what_a_source_told_counts_after_its_restart_until_it_has_told_everything_anew() -> None:
    hearer = UpdateReceiver("b1", 1, "")
    update = Update(SOURCE, 1, "", (Turn("b1", 0, 0),), (advertise(1), subscribe(2), subscribe(3)))
    hearer.receive(update, update.turns[0])
    assert hearer.is_complete(SOURCE, 1)
    assert hearer.holds_older(SOURCE, 2)
    assert hearer.request(SOURCE, 2) == Resend("b1", 1, "", (SOURCE,), 0)
    begun = Update(SOURCE, 2, "", (Turn("b1", 0, 0),), (subscribe(2), subscribe(4)), is_unfinished=True)
    heard = hearer.receive(begun, begun.turns[0])
    assert heard.changes == [subscribe(4)], "what is new counts at once"
    assert heard.repeated == [subscribe(2)]
    assert heard.gone == []
    assert hearer.request(SOURCE, 2) is None, "the source repeats the rest by itself"
    assert not hearer.is_complete(SOURCE, 2)
    ended = Update(SOURCE, 2, "", (Turn("b1", 0, 1),), ())
    heard = hearer.receive(ended, ended.turns[0])
    assert heard.gone == [Unadvertise(entry(1)), Unsubscribe(entry(3))]
    assert hearer.is_complete(SOURCE, 2)
    assert hearer.held_from(SOURCE) == (subscribe(2), subscribe(4))


def test_a_source_that_recovers_leaves_its_openings_unfinished() -> None:
    teller, hearer = told_to("b1"), UpdateReceiver("b1", 1, "")
    teller.leave_open()
    teller.tell_all(advertise(1))
    first = only(teller.flush())
    teller.tell("b1", subscribe(2))
    second = only(teller.flush())
    assert first.is_unfinished
    assert second.is_unfinished
    for update in (first, second):
        hearer.receive(update, update.turns[0])
    assert not hearer.is_complete(SOURCE, 1)
    teller.finish()
    last = only(teller.flush())
    assert (last.changes, last.is_unfinished) == ((), False)
    hearer.receive(last, last.turns[0])
    assert hearer.is_complete(SOURCE, 1)
    assert hearer.held_from(SOURCE) == (advertise(1), subscribe(2))


def test_a_source_that_left_leaves_nothing_behind() -> None:
    hearer = UpdateReceiver("b1", 1, "")
    update = Update(SOURCE, 1, "", (Turn("b1", 0, 0),), (advertise(1), subscribe(2)))
    hearer.receive(update, update.turns[0])
    assert hearer.drop_before(SOURCE, 1) == [], "this is the incarnation that told it"
    assert hearer.drop_before(SOURCE, 2) == [Unadvertise(entry(1)), Unsubscribe(entry(2))]
    assert hearer.drop_before(SOURCE, 2) == []
    assert hearer.held_from(SOURCE) == ()
    assert hearer.receive(update, update.turns[0]) == Heard([], [], []), "it was long under way"
    assert hearer.held_from(SOURCE) == ()


def test_a_source_that_is_asked_whether_it_has_told_everything_answers_when_it_has() -> None:
    teller, hearer = told_to("b1"), UpdateReceiver("b1", 1, "")
    teller.tell_all(advertise(1))
    first = only(teller.flush())
    assert hearer.receive(first, first.turns[0]).is_all, "it is the opening"
    teller.cannot_reach("b1")
    teller.tell("b1", subscribe(2))
    teller.reaches("b1", 1)
    asked = hearer.inquiry(SOURCE)
    assert isinstance(asked, UpdateAcknowledged)
    teller.acknowledged(asked)
    more, nothing = teller.flush()
    assert (more.changes, nothing.changes) == ((subscribe(2),), ())
    assert not hearer.receive(more, more.turns[0]).is_all
    assert hearer.receive(nothing, nothing.turns[0]).is_all


def test_a_source_with_unacknowledged_batches_answers_after_these() -> None:
    teller, hearer = told_to("b1"), UpdateReceiver("b1", 1, "")
    teller.tell_all(advertise(1))
    first = only(teller.flush())
    hearer.receive(first, first.turns[0])
    teller.tell("b1", subscribe(2))
    lost = only(teller.flush())
    asked = hearer.inquiry(SOURCE)
    assert isinstance(asked, UpdateAcknowledged)
    teller.acknowledged(asked)
    assert teller.flush() == []
    heard = hearer.receive(lost, lost.turns[0])
    assert isinstance(heard.answer, UpdateAcknowledged)
    teller.acknowledged(heard.answer)
    asked = hearer.inquiry(SOURCE)
    assert isinstance(asked, UpdateAcknowledged)
    teller.acknowledged(asked)
    nothing = only(teller.flush())
    assert hearer.receive(nothing, nothing.turns[0]).is_all


def test_what_is_told_again_right_after_an_opening_that_left_it_out_is_not_gone() -> None:
    """A lost batch holds the later ones up, and they are taken in together with it."""
    hearer = UpdateReceiver("b1", 1, "")
    old = Update(SOURCE, 1, "", (Turn("b1", 0, 0),), (advertise(1), advertise(2)))
    hearer.receive(old, old.turns[0])
    opening = Update(SOURCE, 2, "", (Turn("b1", 0, 0),), (advertise(3),), is_unfinished=True)
    hearer.receive(opening, opening.turns[0])
    lost = Update(SOURCE, 2, "", (Turn("b1", 0, 1),), ())
    again = Update(SOURCE, 2, "", (Turn("b1", 0, 2),), (advertise(1),))
    assert hearer.receive(again, again.turns[0]).changes == []
    heard = hearer.receive(lost, lost.turns[0])
    assert heard.changes == [advertise(1)]
    assert heard.gone == [Unadvertise(entry(2))]
    assert set(hearer.held_from(SOURCE)) == {advertise(1), advertise(3)}
