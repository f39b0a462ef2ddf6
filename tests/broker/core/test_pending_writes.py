"""Requests while writes are pending: clients withdraw, leave and reconnect, and no other client is affected."""

from __future__ import annotations

import sys

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from broker.core.broker import Broker
from broker.core.effects import Deliver
from broker.core.inputs import (
    Advertised,
    ClientLeft,
    ClientLost,
    DeliveryAcknowledged,
    Input,
    Subscribed,
    Unadvertised,
    Unsubscribed,
)
from broker.core.settings import SECOND, Settings
from tests.harness.slow_store import SlowPlace, answers, delivered


def place_with_subscriber() -> SlowPlace:
    place = SlowPlace()
    place.connect()
    place.handle(Subscribed("c", "s", "n > 0"))
    place.settle()
    return place


@pytest.mark.parametrize("end", [Unsubscribed("c", "s"), ClientLeft("c")], ids=lambda end: type(end).__name__)
def test_a_client_that_leaves_while_a_publication_is_stored_does_not_receive_it_and_stops_nothing(end: Input) -> None:
    place = place_with_subscriber()
    place.connect("other")
    place.handle(Subscribed("other", "s", "n > 0"))
    place.settle()
    place.publish(1)
    place.handle(end)
    effects = place.settle()
    assert answers(effects, "p") == [(True, 1)]
    assert delivered(effects, "c") == []
    assert delivered(effects, "other") == [1]
    assert place.broker.unsettled == 0
    assert (place.broker.client("c") is None) is isinstance(end, ClientLeft)


def test_of_several_subscriptions_the_active_ones_are_named() -> None:
    place = place_with_subscriber()
    for name in ("t", "u"):
        place.handle(Subscribed("c", name, "n > 0"))
    place.settle()
    place.publish(1)
    place.handle(Unsubscribed("c", "t"))
    (delivery,) = [each for each in place.settle() if isinstance(each, Deliver)]
    assert delivery.subscriptions == ("s", "u")


@pytest.mark.parametrize("is_in_flight", [False, True])
@pytest.mark.parametrize("is_known", [False, True])
def test_a_name_can_be_used_again_after_its_client_left_while_it_was_stored(is_known: bool, is_in_flight: bool) -> None:
    place = place_with_subscriber()
    name = "s" if is_known else "t"
    place.handle(Subscribed("c", name, "n > 1", "2"))
    if is_in_flight:
        place.write()
    place.handle(ClientLeft("c"))
    assert place.connect(session="next").is_resumed is False
    place.handle(Subscribed("c", name, "n > 2", "1"))
    assert answers(place.settle(), "c") == [(True, "1")]
    client = place.broker.client("c")
    assert client is not None
    assert list(client.expressions.values()) == ["n > 2"]


def test_earlier_requests_do_not_restore_a_client_that_left() -> None:
    place = SlowPlace()
    place.connect()
    place.handle(Subscribed("c", "s", "n > 1"))
    place.handle(Subscribed("c", "s", "n > 2"))
    place.handle(Unsubscribed("c", "s"))
    place.handle(Subscribed("c", "s", "n > 3"))
    place.handle(ClientLeft("c"))
    assert answers(place.settle(), "c") == []
    assert place.broker.client("c") is None
    assert place.broker.router.counts().local_subscriptions == 0
    assert place.stored("c") == []


def test_a_crash_does_not_restore_deliveries_stored_for_a_client_that_left() -> None:
    place = SlowPlace()
    place.connect()
    place.settle()
    place.handle(Subscribed("c", "s", "n > 1"))
    place.handle(ClientLeft("c"))
    place.write()
    place.start()
    assert place.broker.client("c") is None


def test_a_request_that_waits_for_the_store_does_not_make_a_lost_client_present() -> None:
    place = SlowPlace()
    place.connect()
    place.handle(Subscribed("c", "s", "n > 1"))
    place.handle(Subscribed("c", "s", "n > 2"))
    place.handle(ClientLost("c"))
    place.settle()
    client = place.broker.client("c")
    assert client is not None
    assert not client.is_connected
    assert list(client.expressions.values()) == ["n > 2"]


def test_another_session_of_a_durable_client_gets_no_answers_to_the_earlier_ones_requests() -> None:
    place = SlowPlace()
    place.connect()
    place.handle(Subscribed("c", "s", "n > 1", "1"))
    place.handle(Subscribed("c", "s", "n > 2", "2"))
    place.handle(ClientLost("c"))
    place.connect(session="next")
    assert answers(place.settle(), "c") == []


def test_deliveries_stored_for_a_session_are_not_delivered_to_the_next_one_with_its_name() -> None:
    place = place_with_subscriber()
    place.publish(1)
    place.commit()
    assert any(key[0] == "publication" for key in place.disk), "the arrival waits for the store"
    place.handle(ClientLeft("c"))
    place.connect(session="next")
    place.handle(Subscribed("c", "s", "n > 0"))
    assert delivered(place.settle(), "c") == []
    place.publish(2, reference=2)
    assert delivered(place.settle(), "c") == [2]


def place_where_another_waits_too() -> SlowPlace:
    """A broker that delivered a publication and keeps its record, because another client has not acknowledged it."""
    place = place_with_subscriber()
    place.connect("other")
    place.handle(Subscribed("other", "s", "n > 0"))
    place.settle()
    place.publish(1)
    return place


@pytest.mark.parametrize("is_crashed", [False, True])
def test_after_a_restart_a_new_session_with_a_name_receives_nothing_of_the_earlier_one(is_crashed: bool) -> None:
    place = place_where_another_waits_too()
    assert delivered(place.settle(), "c") == [1]
    place.handle(ClientLeft("c"))
    place.settle()
    if is_crashed:
        place.start()
    place.connect(session="next")
    place.handle(Subscribed("c", "s", "n > 0"))
    place.settle()
    place.start()
    assert place.connect(session="next").is_resumed
    assert delivered(place.settle(), "c") == []
    place.publish(2, reference=2)
    assert delivered(place.settle(), "c") == [2]


def acknowledge_all(place: SlowPlace) -> list[int]:
    effects = place.settle()
    for each in effects:
        if isinstance(each, Deliver) and each.client == "c":
            place.handle(DeliveryAcknowledged("c", each.number))
    return delivered(effects, "c")


def test_acknowledged_deliveries_stay_acknowledged_after_an_at_most_once_session() -> None:
    place = place_where_another_waits_too()
    assert acknowledge_all(place) == [1]
    place.connect(is_reliable=False)
    place.handle(ClientLost("c"))
    place.publish(2, reference=2)
    place.settle()
    place.connect()
    assert acknowledge_all(place) == [2]
    place.settle()
    place.start()
    place.connect()
    assert delivered(place.settle(), "c") == []


@pytest.mark.parametrize("kind", [Subscribed, Advertised])
def test_entries_being_stored_count_towards_the_limits_of_a_client(kind: type[Subscribed | Advertised]) -> None:
    place = SlowPlace(Settings(is_durable=True, entries_of_client=2))
    place.connect()
    requests = [("s", "n > 0"), ("t", "n > 0"), ("u", "n > 0"), ("s", "n > 1"), ("t", "n > 2")]
    for number, (name, expression) in enumerate(requests):
        place.handle(kind("c", name, expression, str(number)))
    assert sorted(answers(place.settle(), "c")) == [(False, "2"), (True, "0"), (True, "1"), (True, "3"), (True, "4")]
    client = place.broker.client("c")
    assert client is not None
    assert sorted(client.expressions.values()) == ["n > 1", "n > 2"]
    place.handle((Unsubscribed if kind is Subscribed else Unadvertised)("c", "s", "5"))
    place.handle(kind("c", "u", "n > 0", "6"))
    assert answers(place.settle(), "c") == [(True, "5"), (True, "6")], "there is room for another"


def test_a_name_may_be_changed_any_number_of_times_before_the_store_has_the_first() -> None:
    place = SlowPlace()
    place.connect()
    changes = 2 * sys.getrecursionlimit()
    for number in range(0, changes, 2):
        place.handle(Subscribed("c", "s", "n > 0", str(number)))
        place.handle(Unsubscribed("c", "s", str(number + 1)))
    assert answers(place.settle(), "c") == [(True, str(number)) for number in range(changes)]


CLIENTS, NAMES = st.just("c"), st.sampled_from(["s", "t"])  # Only one client, so that many events concern it at a time.
EXPRESSIONS = st.lists(st.sampled_from(["n > 0", "n > 1", "n > 2"]), min_size=1, max_size=3, unique=True)
KINDS: dict[str, dict[str, object]] = {
    "durable": {"is_reliable": True, "keep": None},
    "durable, at most once": {"is_reliable": False, "keep": None},
    "reliable": {"is_reliable": True, "keep": 3600 * SECOND},
    "plain": {"is_reliable": False, "keep": 0},
}


class ConnectingAndLeaving(RuleBasedStateMachine):
    """Clients connect with different sessions, send requests, lose connections and leave, while writes are pending."""

    def __init__(self) -> None:
        super().__init__()
        self.place = SlowPlace()
        self.connected: dict[str, list[str]] = {}
        """The connected clients, with their unanswered requests."""
        self.requests = 0

    @rule(client=CLIENTS, session=st.sampled_from(["one", "other"]), kind=st.sampled_from(list(KINDS)))
    def connect(self, client: str, session: str, kind: str) -> None:
        if client not in self.connected:
            self.connected[client] = []
            self.place.connect(client, session, **KINDS[kind])

    @rule(client=CLIENTS, is_farewell=st.booleans())
    def disconnect(self, client: str, is_farewell: bool) -> None:
        if self.connected.pop(client, None) is not None:
            self.place.handle(ClientLeft(client) if is_farewell else ClientLost(client))

    @rule(client=CLIENTS, name=NAMES, expressions=EXPRESSIONS, is_subscription=st.booleans())
    def enter(self, client: str, name: str, expressions: list[str], is_subscription: bool) -> None:
        kind = Subscribed if is_subscription else Advertised
        if client in self.connected:
            for expression in expressions:
                self.place.handle(kind(client, name, expression, self._next_request(client)))

    @rule(client=CLIENTS, name=NAMES, is_subscription=st.booleans())
    def withdraw(self, client: str, name: str, is_subscription: bool) -> None:
        kind = Unsubscribed if is_subscription else Unadvertised
        if client in self.connected:
            self.place.handle(kind(client, name, self._next_request(client)))

    def _next_request(self, client: str) -> str:
        self.requests += 1
        self.connected[client].append(str(self.requests))
        return str(self.requests)

    @rule(n=st.integers(0, 3))
    def publish(self, n: int) -> None:
        self.requests += 1
        self.place.publish(n, reference=self.requests)

    @rule()
    def write(self) -> None:
        if not self.place.is_written:
            self.place.write()

    @rule()
    def report(self) -> None:
        self.place.report()

    @rule()
    def crash(self) -> None:
        self.connected.clear()
        self.place.start()

    @rule()
    def settle(self) -> None:
        effects = self.place.settle()
        for client, pending in self.connected.items():
            answered = [reference for _, reference in answers(effects, client)]
            assert set(pending) <= set(answered), "every request has its answer"
            pending.clear()
        assert self.place.broker.unsettled == 0
        assert all(each.is_connected == (each.name in self.connected) for each in self.place.broker.clients)
        kept = [each.name for each in self.place.broker.clients if each.is_reliable or each.keep is None]
        now = {name: entries for name, entries in _entered(self.place.broker).items() if name in kept}
        restarted = SlowPlace()
        restarted.disk = dict(self.place.disk)
        restarted.start()
        assert _entered(restarted.broker) == now, "a restart restores exactly the stored sessions' entries"

    def teardown(self) -> None:
        self.settle()


def _entered(broker: Broker) -> dict[str, dict[str, dict[str, str]]]:
    return {
        client.name: {
            kind: {name: client.expressions[entry] for name, entry in sorted(entries.items())}
            for kind, entries in (("subscriptions", client.subscriptions), ("advertisements", client.advertisements))
        }
        for client in broker.clients
    }


ConnectingAndLeaving.TestCase.settings = settings(max_examples=200, stateful_step_count=30, deadline=None)
TestConnectingAndLeaving = ConnectingAndLeaving.TestCase
