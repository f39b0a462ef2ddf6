"""The core withdraws entries that a client's rights no longer cover, whether the client is connected or not."""

from __future__ import annotations

import pytest

from broker.core.delivery_queue import FORBIDDEN
from broker.core.effects import Deliver
from broker.core.inputs import Advertised, ClientLost, DeliveryAcknowledged, RightsNarrowed, Subscribed
from broker.core.settings import Settings
from routing.messages import PublicationId
from tests.broker.core.test_sessions import Place, numbers
from tests.harness.slow_store import SlowPlace, answers


def ids(place: Place, *counters: int) -> frozenset[PublicationId]:
    return frozenset(PublicationId("b1", place.broker.incarnation, counter) for counter in counters)


def with_entries(settings: Settings | None = None) -> Place:
    place = Place(settings)
    place.connect()
    place.handle(Subscribed("c", "all", "n >= 0"))
    place.handle(Subscribed("c", "large", "n > 10"))
    place.handle(Advertised("c", "mine", "n = 1"))
    return place


@pytest.mark.parametrize("is_here", [True, False])
def test_entries_are_withdrawn_and_nobody_is_answered_or_connected(is_here: bool) -> None:
    place = with_entries(Settings(is_durable=True))
    if not is_here:
        place.handle(ClientLost("c"))
    effects = place.handle(RightsNarrowed("c", ("all", "never heard of"), ("mine",), frozenset()))
    assert all(getattr(each, "client", None) is None for each in effects)
    client = place.broker.client("c")
    assert client is not None
    assert client.is_connected is is_here
    assert (list(client.subscriptions), list(client.advertisements)) == (["large"], [])
    assert not {key for key in place.store if key[0] == "advertisement" or key[2:] == ("all",)}
    assert numbers(place.publish(5)) == []
    assert numbers(place.publish(11)) == ([11] if is_here else [])


def test_waiting_and_unacknowledged_deliveries_are_dropped_and_the_rest_keeps_its_order() -> None:
    place = with_entries(Settings(is_durable=True))
    for n in (1, 11, 2):
        place.publish(n)
    place.handle(ClientLost("c"))
    for n in (3, 12, 4):
        place.publish(n)
    place.handle(RightsNarrowed("c", ("all",), (), ids(place, 0, 2, 3, 5)))
    assert place.broker.drops[FORBIDDEN] == 4
    client = place.broker.client("c")
    assert client is not None
    assert client.undelivered_bytes == sum(len(each.attributes) for each in client.undelivered())
    place.connect()
    assert numbers(place.effects) == [11, 12]
    last = [each.number for each in place.effects if isinstance(each, Deliver)][-1]
    place.handle(DeliveryAcknowledged("c", last))
    assert not list(client.undelivered())
    assert client.undelivered_bytes == 0


@pytest.mark.parametrize("is_in_flight", [False, True])
def test_an_entry_being_stored_in_place_of_a_withdrawn_one_is_there_after_a_restart(
    is_in_flight: bool,
) -> None:
    place = SlowPlace()
    place.connect()
    place.handle(Subscribed("c", "s", "n >= 0"))
    place.settle()
    place.handle(Subscribed("c", "s", "n > 10", "2"))
    if is_in_flight:
        place.write()
    place.handle(RightsNarrowed("c", ("s",), (), frozenset()))
    assert answers(place.settle(), "c") == [(True, "2")]
    place.start()
    client = place.broker.client("c")
    assert client is not None
    assert list(client.expressions.values()) == ["n > 10"]


def test_an_unknown_client_loses_nothing() -> None:
    place = Place()
    assert place.handle(RightsNarrowed("nobody", ("all",), (), frozenset())) == []
    assert place.broker.client("nobody") is None
