"""Clients' sessions in the core: windows, pauses, bounded queues, reconnects, and the state after a restart."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgpack
import pytest

from broker.core.broker import Broker
from broker.core.delivery_queue import EXPIRED, FORBIDDEN, SLOW, TOO_MANY_WAITING
from broker.core.effects import Accept, Deliver, Disconnect, Effect, Forget, Greet, Persist, Refuse, SetTimer
from broker.core.inputs import (
    Advertised,
    ClientConnected,
    ClientLeft,
    ClientLost,
    ClientPaused,
    ClientResumed,
    DeliveryAcknowledged,
    Input,
    Persisted,
    Published,
    Restored,
    RightsNarrowed,
    Subscribed,
    TimerFired,
    Unsubscribed,
)
from broker.core.sessions import MOST_WITHDRAWALS, WITHDRAW
from broker.core.settings import SECOND, Settings
from routing.messages import PublicationId
from routing.registry import create
from tests.harness.slow_store import SlowPlace, delivered


class Place:
    """A broker without neighbours, with a store that commits at once."""

    def __init__(self, settings: Settings | None = None, store: dict[tuple[str, ...], object] | None = None) -> None:
        self.settings = settings or Settings()
        self.store = {} if store is None else store
        incarnation = 2 if store else 1
        self.broker = Broker(create("d-dbr", "b1", incarnation), "b1", incarnation, self.settings)
        self.now = 0
        self.effects: list[Effect] = []
        if store:
            self.handle(Restored(dict(store)))
        self._references = 0

    def handle(self, happened: Input) -> list[Effect]:
        """Handles an input and commits its records. Returns all effects."""
        effects = self.broker.handle(happened, self.now)
        for effect in list(effects):
            if isinstance(effect, Persist):
                self.store[effect.key] = effect.record
                effects += self.handle(Persisted(effect.key))
            elif isinstance(effect, Forget):
                self.store.pop(effect.key, None)
        return effects

    def publish(
        self, n: int, *, expires: int | None = None, payload: bytes = b"", client: str = "p", once: str = ""
    ) -> list[Effect]:
        self._references += 1
        attributes = msgpack.packb({"n": n})
        return self.handle(Published(client, self._references, attributes, payload, expires, once=once))

    def connect(self, name: str = "c", session: str = "s", **options: object) -> Greet:
        kept: dict[str, object] = {"is_reliable": True, "keep": 10 * SECOND, **options}
        effects = self.handle(ClientConnected(name, session, **kept))  # type: ignore[arg-type]
        (greeting,) = [each for each in effects if isinstance(each, Greet)]
        self.effects = effects
        return greeting

    def wait(self, duration: int) -> None:
        self.now += duration
        self.handle(TimerFired("tick"))


def numbers(effects: list[Effect]) -> list[object]:
    return [msgpack.unpackb(each.attributes)["n"] for each in effects if isinstance(each, Deliver)]


def subscribed(settings: Settings | None = None, **options: Any) -> Place:
    place = Place(settings)
    place.connect(**options)
    place.handle(Subscribed("c", "all", "TRUE"))
    return place


def test_a_reconnect_delivers_unacknowledged_and_new_publications_in_order() -> None:
    place = subscribed()
    deliveries = [each for n in range(3) for each in place.publish(n) if isinstance(each, Deliver)]
    place.handle(DeliveryAcknowledged("c", deliveries[0].number))
    place.handle(ClientLost("c"))
    assert numbers(place.publish(3)) == []
    assert place.connect().is_resumed
    assert numbers(place.effects) == [1, 2, 3]


def test_another_session_with_the_same_name_starts_empty() -> None:
    place = subscribed()
    place.handle(ClientLost("c"))
    place.publish(0)
    assert not place.connect(session="another").is_resumed
    assert numbers(place.effects) == []
    assert numbers(place.publish(1)) == [], "the subscription ended with the session"


def test_a_session_waits_for_its_configured_time() -> None:
    place = subscribed(keep=2 * SECOND)
    place.handle(ClientLost("c"))
    place.wait(SECOND)
    assert place.broker.client("c") is not None
    place.wait(SECOND)
    assert place.broker.client("c") is None
    assert place.broker.router.counts().local_subscriptions == 0


def test_no_more_than_a_window_is_in_flight() -> None:
    place = subscribed(window=2)
    assert [numbers(place.publish(n)) for n in range(4)] == [[0], [1], [], []]
    assert numbers(place.handle(DeliveryAcknowledged("c", 1))) == [2]
    assert numbers(place.handle(DeliveryAcknowledged("c", 3))) == [3]


def test_a_paused_client_gets_nothing_until_it_has_room() -> None:
    place = subscribed(is_reliable=False)
    place.handle(ClientPaused("c"))
    assert [numbers(place.publish(n)) for n in range(3)] == [[], [], []]
    assert numbers(place.handle(ClientResumed("c"))) == [0, 1, 2]
    assert numbers(place.publish(3)) == [3]


def test_a_full_outbox_drops_the_oldest_that_was_not_sent() -> None:
    place = subscribed(Settings(deliveries_for_absent=4), window=2)
    for n in range(7):
        place.publish(n)
    assert place.broker.drops == {SLOW: 3}
    assert numbers(place.handle(DeliveryAcknowledged("c", 2))) == [5, 6]


def test_an_outbox_is_bounded_in_bytes_too() -> None:
    place = subscribed(Settings(outbox_bytes=1000))
    place.handle(ClientPaused("c"))
    for n in range(5):
        place.publish(n, payload=bytes(400))
    assert place.broker.drops == {SLOW: 3}
    assert numbers(place.handle(ClientResumed("c"))) == [3, 4]


def test_the_policy_disconnect_ends_the_connection_and_keeps_the_session() -> None:
    place = subscribed(Settings(deliveries_for_absent=2, disconnects_slow=True))
    place.handle(ClientPaused("c"))
    effects = [each for n in range(4) for each in place.publish(n)]
    assert [each for each in effects if isinstance(each, Disconnect)] == [Disconnect("c", SLOW)]
    assert place.broker.drops == {TOO_MANY_WAITING: 2}
    assert place.connect().is_resumed
    assert numbers(place.effects) == [2, 3]


@pytest.mark.parametrize("clock_skew", [0, 10 * SECOND])
def test_a_publication_that_expires_while_it_waits_is_not_delivered(clock_skew: int) -> None:
    """The publisher's broker needs no allowance for other clocks."""
    place = subscribed(Settings(clock_skew=clock_skew))
    place.handle(ClientLost("c"))
    place.publish(0, expires=SECOND)
    place.publish(1, expires=9 * SECOND)
    place.now = 2 * SECOND
    place.connect()
    assert numbers(place.effects) == [1]
    assert place.broker.drops == {EXPIRED: 1}


def test_a_name_that_is_known_is_replaced_or_accepted_again() -> None:
    place = subscribed()
    assert place.handle(Subscribed("c", "all", "TRUE", "7")) == [Accept("c", "7")]
    assert Accept("c", "8") in place.handle(Subscribed("c", "all", "n > 5", "8"))
    assert numbers(place.publish(1)) == []
    assert numbers(place.publish(9)) == [9]
    assert place.broker.router.counts().local_subscriptions == 1


def test_a_client_has_no_more_entries_than_it_may() -> None:
    place = subscribed(Settings(entries_of_client=1))
    (refusal,) = place.handle(Subscribed("c", "more", "n > 5"))
    assert isinstance(refusal, Refuse)
    assert refusal.code == "limit"
    place.handle(Unsubscribed("c", "all"))
    assert Accept("c", "more") in place.handle(Subscribed("c", "more", "n > 5"))


def test_a_session_that_resumes_learns_which_publications_were_accepted() -> None:
    place = subscribed()
    for reference in (1, 2):
        place.handle(Published("c", reference, msgpack.packb({"n": 1})))
    place.handle(Published("c", 3, b"no map"))
    place.handle(ClientLost("c"))
    assert place.connect() == Greet("c", is_resumed=True, accepted_through=2)
    place.handle(Published("c", 4, msgpack.packb({"n": 1})))
    place.handle(ClientLost("c"))
    assert place.connect() == Greet("c", is_resumed=True, accepted_through=4, missing=(3,)), (
        "the client may have missed the refusal"
    )
    place.handle(Published("c", 3, msgpack.packb({"n": 1})))
    assert place.connect() == Greet("c", is_resumed=True, accepted_through=4)
    assert place.connect(session="another") == Greet("c", is_resumed=False, accepted_through=0)


def test_a_restart_keeps_sessions_and_repeats_only_unacknowledged_deliveries() -> None:
    durable = Settings(is_durable=True)
    place = subscribed(durable, keep=None)
    place.connect("other", keep=None)
    place.handle(Subscribed("other", "all", "TRUE"))
    deliveries = [each for n in range(3) for each in place.publish(n) if isinstance(each, Deliver)]
    place.handle(Published("c", 1, msgpack.packb({"n": 3})))
    place.handle(DeliveryAcknowledged("c", [each.number for each in deliveries if each.client == "c"][1]))
    again = Place(durable, place.store)
    assert again.connect(keep=None) == Greet("c", is_resumed=True, accepted_through=1)
    assert numbers(again.effects) == [2, 3]
    again.connect("other", keep=None)
    assert numbers(again.effects) == [0, 1, 2, 3]
    (delivery, _) = [each for each in again.publish(4) if isinstance(each, Deliver)]
    assert delivery.number == 5, "the numbers continue"
    assert delivery.subscriptions == ("all",)


def test_a_session_without_acknowledgements_is_not_stored() -> None:
    place = Place(Settings(is_durable=True))
    place.connect(is_reliable=False, keep=0)
    place.handle(Subscribed("c", "all", "TRUE"))
    assert not place.store
    assert numbers(place.publish(1)) == [1]
    assert not any(key[0] == "arrival" for key in place.store)


@pytest.mark.parametrize("is_durable", [False, True])
def test_a_farewell_removes_everything_of_the_client(is_durable: bool) -> None:
    place = subscribed(Settings(is_durable=is_durable), keep=None)
    place.publish(1)
    place.handle(ClientLeft("c"))
    assert place.broker.client("c") is None
    assert not [key for key in place.store if key[0] in ("client", "subscription", "acknowledged", "taken")]
    assert all(record == () for key, record in place.store.items() if key[0] == "arrival")


@pytest.mark.parametrize("is_left", [False, True])
def test_a_durable_client_that_reconnects_as_a_plain_one_is_not_stored_any_more(is_left: bool) -> None:
    durable = Settings(is_durable=True)
    place = subscribed(durable, keep=None)
    place.handle(Advertised("c", "mine", "TRUE"))
    place.handle(Published("c", 7, msgpack.packb({"n": 0})))
    place.handle(ClientLost("c"))
    place.publish(1)
    assert place.connect(session="plain", is_reliable=False, keep=0).is_resumed
    assert numbers(place.effects) == [0, 1], "its entries and waiting deliveries are there"
    if is_left:
        place.handle(ClientLeft("c"))
    of_publications = [key for key in place.store if key[0] in ("arrival", "publication")]
    assert all(place.store[key] == () for key in of_publications if key[0] == "arrival")
    assert set(place.store) == set(of_publications), "nothing of the client's session"
    assert Place(durable, place.store).broker.client("c") is None


def test_entries_of_a_plain_client_are_stored_when_its_session_becomes_durable() -> None:
    durable = Settings(is_durable=True)
    place = subscribed(durable, is_reliable=False, keep=0)
    assert not place.store
    place.connect(keep=None)
    restored = Place(durable, place.store).broker.client("c")
    assert restored is not None
    assert list(restored.subscriptions) == ["all"]


def test_the_many_subscriptions_of_a_client_that_leaves_are_withdrawn_in_steps() -> None:
    place = Place()
    for number in range(3 * MOST_WITHDRAWALS):
        place.handle(Subscribed("c", f"s{number}", f"n > {-number}"))
    counts = place.broker.router.counts
    effects = place.handle(ClientLeft("c"))
    left = [counts().local_subscriptions]
    while any(isinstance(effect, SetTimer) and effect.name == WITHDRAW for effect in effects):
        assert not [each for each in place.publish(1) if isinstance(each, Deliver)]
        effects = place.handle(TimerFired(WITHDRAW))
        left.append(counts().local_subscriptions)
    assert left == [2 * MOST_WITHDRAWALS, MOST_WITHDRAWALS, 0]


def test_subscriptions_that_are_being_withdrawn_do_not_serve_a_new_client_of_the_same_name() -> None:
    place = Place()
    for number in range(2 * MOST_WITHDRAWALS):
        place.handle(Subscribed("c", f"s{number}", "n > 0"))
    place.handle(ClientLeft("c"))
    place.handle(Subscribed("c", "new", "n > 5"))
    assert [each for each in place.publish(3) if isinstance(each, Deliver)] == []
    delivered = [each for each in place.publish(7) if isinstance(each, Deliver)]
    assert [each.subscriptions for each in delivered] == [("new",)]


@pytest.mark.parametrize(
    ("settings", "limit"),
    [
        (Settings(expression_bytes_of_client=30), "expression_bytes"),
        (Settings(patterns_of_client=2), "patterns"),
    ],
)
@pytest.mark.parametrize("is_durable", [False, True])
def test_the_expressions_of_one_client_have_limits_in_all(settings: Settings, limit: str, is_durable: bool) -> None:
    place = Place(dataclasses.replace(settings, is_durable=is_durable))
    place.handle(ClientConnected("c", "s", is_reliable=True))

    def subscribe(name: str, pattern: str = "ab") -> Effect:
        (answer,) = (
            each
            for each in place.handle(Subscribed("c", name, f"n MATCHES '{pattern}'"))
            if isinstance(each, Accept | Refuse)
        )
        return answer

    assert [type(subscribe(name)) for name in ("one", "two")] == [Accept, Accept]
    refusal = subscribe("three")
    assert isinstance(refusal, Refuse)
    assert refusal.code == "limit"
    assert place.broker.drops == {f"refused: limit of {limit}": 1}
    # A replaced subscription does not count beside the one that replaces it.
    assert isinstance(subscribe("two", "cd"), Accept)
    assert isinstance(subscribe("three"), Refuse)
    place.handle(Unsubscribed("c", "one"))
    assert isinstance(subscribe("three"), Accept)
    if is_durable:
        place = Place(place.settings, place.store)
        assert isinstance(subscribe("four"), Refuse)
    place.handle(ClientLeft("c"))
    assert isinstance(subscribe("one"), Accept)


def test_the_attributes_of_a_publication_have_a_limit_of_their_own() -> None:
    place = Place(Settings(attribute_bytes=10))
    assert any(isinstance(each, Accept) for each in place.publish(1, payload=b"x" * 1000))
    (refusal,) = place.handle(Published("p", 9, msgpack.packb({"n": "x" * 10})))
    assert refusal == Refuse("p", 9, "14 bytes of attributes are too much; the limit is 10", "too-large")


def with_shared_deliveries(settings: Settings, count: int) -> Place:
    """Client `c` is away, and `other` acknowledges nothing. The records of their deliveries are shared."""
    place = subscribed(settings, keep=None)
    place.connect("other", keep=None)
    place.handle(Subscribed("other", "all", "TRUE"))
    place.handle(ClientLost("c"))
    for n in range(count):
        place.publish(n)
    return place


def test_deliveries_dropped_from_a_full_queue_do_not_return_after_a_restart() -> None:
    settings = Settings(is_durable=True, deliveries_for_absent=2)
    place = with_shared_deliveries(settings, 5)
    assert place.broker.drops == {TOO_MANY_WAITING: 3}
    again = Place(settings, place.store)
    again.connect(keep=None)
    assert numbers(again.effects) == [3, 4]
    again.connect("other", keep=None)
    assert numbers(again.effects) == [0, 1, 2, 3, 4]


def test_a_delivery_that_every_client_dropped_does_not_return_after_a_restart() -> None:
    settings = Settings(is_durable=True, deliveries_for_absent=2)
    place = with_shared_deliveries(settings, 1)
    place.handle(ClientLost("other"))
    for n in range(1, 5):
        place.publish(n)
    assert place.broker.drops == {TOO_MANY_WAITING: 6}
    again = Place(settings, place.store)
    for name in ("c", "other"):
        again.connect(name, keep=None)
        assert numbers(again.effects) == [3, 4]


def test_forbidden_and_expired_deliveries_do_not_return_after_a_restart() -> None:
    durable = Settings(is_durable=True)
    place = with_shared_deliveries(durable, 3)
    place.publish(3, expires=SECOND)
    place.handle(RightsNarrowed("c", (), (), frozenset({PublicationId("b1", 1, 1)})))
    place.now = 2 * SECOND
    place.connect(keep=None)
    assert numbers(place.effects) == [0, 2]
    assert place.broker.drops == {FORBIDDEN: 1, EXPIRED: 1}
    again = Place(durable, place.store)
    again.connect(keep=None)
    assert numbers(again.effects) == [0, 2]


@pytest.mark.parametrize("keep", [None, 0])
def test_deliveries_to_a_session_that_stops_acknowledging_are_not_repeated_after_a_restart(keep: int | None) -> None:
    durable = Settings(is_durable=True)
    place = with_shared_deliveries(durable, 3)
    place.connect(session="hasty", is_reliable=False, keep=keep)
    assert numbers(place.effects) == [0, 1, 2]
    assert numbers(place.publish(3)) == [3, 3], "for each client"
    again = Place(durable, place.store)
    again.connect(session="hasty", is_reliable=False, keep=keep)
    assert numbers(again.effects) == []
    again.connect("other", keep=None)
    assert numbers(again.effects) == [0, 1, 2, 3], "the other client has not acknowledged them"
    again.connect(keep=None)
    assert numbers(again.effects) == []


def with_queued_delivery() -> SlowPlace:
    """Client `c` is away, and one delivery is stored for it."""
    place = SlowPlace()
    place.connect()
    place.handle(Subscribed("c", "all", "TRUE"))
    place.settle()
    place.handle(ClientLost("c"))
    place.publish(0)
    place.settle()
    return place


@pytest.mark.parametrize("keep", [None, 0])
def test_a_session_that_stops_acknowledging_gets_queued_deliveries_when_a_crash_cannot_repeat_them(
    keep: int | None,
) -> None:
    place = with_queued_delivery()
    place.connect(session="hasty", is_reliable=False, keep=keep)
    place.publish(1, reference=2)
    assert delivered(place.effects, "c") == [], "a crash now would deliver it again"
    place.handle(ClientPaused("c"))
    place.handle(ClientResumed("c"))
    assert delivered(place.effects, "c") == []
    place.write()
    place.report()
    before = delivered(place.effects, "c")
    assert before[:1] == [0]
    place.start()
    place.connect(session="hasty", is_reliable=False, keep=keep)
    assert 0 not in delivered(place.settle(), "c")


def test_a_session_may_change_its_mode_again_before_the_first_change_is_stored() -> None:
    place = with_queued_delivery()
    place.connect(session="hasty", is_reliable=False)
    place.connect(session="careful")
    assert delivered(place.settle(), "c") == [0]
    place.publish(1, reference=2)
    assert delivered(place.settle(), "c") == [1]
