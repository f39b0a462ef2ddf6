"""The multicasting layer sends one copy to each next hop with its destinations, and no message loops forever."""

from __future__ import annotations

import pytest

from routing.messages import (
    EntryId,
    LinkState,
    LinkStates,
    Message,
    Neighbour,
    OnceId,
    PublicationId,
    Publish,
    Turn,
    Update,
)
from routing.multicast import MOST_DESTINATIONS, MulticastLayer, destinations_of, forwarded, narrowed


def state(broker: str, *neighbours: str, sequence: int = 1, incarnation: int = 1) -> LinkState:
    return LinkState(broker, incarnation, sequence, "", tuple(Neighbour(each, 1) for each in neighbours))


def publication(local: tuple[str, ...], transit: tuple[str, ...] = (), hop_limit: int = 9) -> Publish:
    return Publish(PublicationId("b0", 1, 0), "b0", "", local, transit, b"a", b"p", hop_limit=hop_limit)


def middle() -> MulticastLayer:
    """b2, with links to b1, b3 and b4. Two paths lead to b5: over b3 and over b4."""
    layer = MulticastLayer("b2", 1, "")
    for peer in ("b1", "b3", "b4"):
        layer.neighbour_up(peer)
    layer.receive_states(
        [state("b1", "b2"), state("b3", "b2", "b5"), state("b4", "b2", "b5"), state("b5", "b3", "b4")], "b1"
    )
    layer.sends.clear()
    return layer


def sent(layer: MulticastLayer) -> list[tuple[str, Message]]:
    sends, layer.sends = layer.sends, []
    return sends


def test_destinations_are_grouped_by_next_hop() -> None:
    layer = middle()
    layer.send(publication(("b1", "b4", "b5"), ("b3", "b5")))
    assert sent(layer) == [
        ("b1", publication(("b1",))),
        ("b3", publication(("b5",), ("b3", "b5"))),
        ("b4", publication(("b4",))),
    ]


def test_a_list_that_fits_no_frame_is_sent_in_several_messages() -> None:
    layer = MulticastLayer("b2", 1, "")
    layer.neighbour_up("b1")
    many = [f"c{number:05}" for number in range(MOST_DESTINATIONS + 5)]
    layer.receive_states([state("b1", "b2", *many), *(state(each, "b1") for each in many)], "b1")
    layer.sends.clear()
    layer.send(publication(tuple(many)))
    lists = [destinations_of(message) for peer, message in sent(layer) if isinstance(message, Publish) and peer == "b1"]
    assert [len(each) for each in lists] == [MOST_DESTINATIONS, 5]
    assert [each for some in lists for each in some] == many


def test_an_arrived_message_is_passed_on_without_this_broker_and_one_hop_further() -> None:
    layer = middle()
    assert layer.pass_on(publication(("b2", "b5")))
    assert sent(layer) == [("b3", publication(("b5",))._replace(hops=1, hop_limit=8))]
    assert not layer.pass_on(publication(("b5",)))
    assert layer.pass_on(publication(("b2",)))


def test_a_publication_that_is_passed_on_keeps_all_fields_of_its_publisher() -> None:
    tree, once = EntryId("b7", 2, 5), OnceId("c", "x")
    ends = ("b9", "west", ("b5",), ("b6",), b"a", b"p", ("east",))
    given = Publish(PublicationId("b0", 3, 4), *ends, tree, 2, 99, 9, is_traced=True, once=once)
    assert [name for name, default in Publish._field_defaults.items() if getattr(given, name) == default] == []
    assert forwarded(given, ("b5",), (), further=1) == given._replace(local=("b5",), transit=(), hops=3, hop_limit=8)


def test_a_message_without_hops_left_is_not_forwarded_and_is_counted() -> None:
    layer = middle()
    assert layer.pass_on(publication(("b1", "b2", "b5"), hop_limit=1))
    assert sent(layer) == []
    assert layer.out_of_hops == 2


def test_a_destination_without_a_route_is_counted_and_the_others_are_served() -> None:
    layer = middle()
    layer.send(publication(("b1", "b9")))
    assert sent(layer) == [("b1", publication(("b1",)))]
    assert layer.unroutable == 1


def test_an_update_is_narrowed_to_the_turns_of_its_destinations() -> None:
    update = Update("b0", 1, "", (Turn("b1", 0, 3), Turn("b2", 1, 0), Turn("b3", 0, 3)), ())
    assert narrowed(update, ["b3", "b1"]).turns == (Turn("b1", 0, 3), Turn("b3", 0, 3))
    assert narrowed(update, ["b1", "b2", "b3"]) is update


def test_a_new_link_state_is_passed_on_to_all_neighbours_except_its_sender() -> None:
    layer = middle()
    newer = state("b5", sequence=2)
    assert layer.receive_states([newer, state("b1", "b2")], "b3")
    assert sent(layer) == [("b1", LinkStates((newer,))), ("b4", LinkStates((newer,)))]
    assert not layer.receive_states([newer], "b4")
    assert sent(layer) == []


def test_the_sender_of_an_old_link_state_receives_the_present_one() -> None:
    layer = middle()
    layer.receive_states([state("b5", sequence=2)], "b3")
    sent(layer)
    assert not layer.receive_states([state("b5", "b3", "b4")], "b4")
    assert sent(layer) == [("b4", LinkStates((state("b5", sequence=2),)))]


def test_an_own_link_state_from_before_a_restart_is_superseded() -> None:
    """A broker that lost its memory but kept its incarnation receives later link states of its own."""
    layer = middle()
    layer.receive_states([state("b2", sequence=50)], "b1")
    own = layer.state_of("b2")
    assert own is not None
    assert own.sequence == 51
    assert [each.broker for each in own.neighbours] == ["b1", "b3", "b4"]
    assert sent(layer)[0] == ("b1", LinkStates((own,)))


def test_equal_link_states_are_not_exchanged() -> None:
    layer = middle()
    layer.send_states_if_different(layer.digest, "b1")
    assert sent(layer) == []
    layer.send_states_if_different(b"another", "b1")
    assert sent(layer) == [("b1", LinkStates(layer.states()))]
    layer.send_states_if_different(b"another", "b5")
    assert sent(layer) == [], "b5 is no neighbour"


@pytest.mark.parametrize(
    ("received", "is_loss"),
    [
        (state("b5", "b3", sequence=2), 1),
        (state("b5", "b1", "b3", "b4", sequence=2), 0),
        (state("b5", "b3", "b4", incarnation=2), 1),
    ],
    ids=["a link less", "a link more", "a restart"],
)
def test_a_missing_link_or_a_restart_elsewhere_is_a_loss(received: LinkState, is_loss: int) -> None:
    layer = middle()
    layer.receive_states([received], "b1")
    assert layer.losses == is_loss
