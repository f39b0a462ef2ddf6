"""What happens while the store writes: subscribers withdraw and leave, and nobody else is to notice."""

from __future__ import annotations

import pytest

from broker.effects import Deliver
from broker.inputs import ClientLeft, Input, Subscribed, Unsubscribed
from tests.broker.slow_store import SlowPlace, answers, delivered


def place_with_subscriber() -> SlowPlace:
    place = SlowPlace()
    place.connect()
    place.tell(Subscribed("c", "s", "n > 0"))
    place.settle()
    return place


@pytest.mark.parametrize("end", [Unsubscribed("c", "s"), ClientLeft("c")], ids=lambda end: type(end).__name__)
def test_who_goes_while_a_publication_is_stored_does_not_get_it_and_stops_nothing(end: Input) -> None:
    place = place_with_subscriber()
    place.connect("other")
    place.tell(Subscribed("other", "s", "n > 0"))
    place.settle()
    place.publish(1)
    place.tell(end)
    effects = place.settle()
    assert answers(effects, "p") == [(True, 1)]
    assert delivered(effects, "c") == []
    assert delivered(effects, "other") == [1]
    assert place.broker.unsettled == 0
    assert (place.broker.client("c") is None) is isinstance(end, ClientLeft)


def test_of_several_subscriptions_those_that_stand_are_named() -> None:
    place = place_with_subscriber()
    for name in ("t", "u"):
        place.tell(Subscribed("c", name, "n > 0"))
    place.settle()
    place.publish(1)
    place.tell(Unsubscribed("c", "t"))
    (delivery,) = [each for each in place.settle() if isinstance(each, Deliver)]
    assert delivery.subscriptions == ("s", "u")
