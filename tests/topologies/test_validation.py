"""Every kind of invalid overlay is refused, by a message that names the broker, link or cluster."""

from __future__ import annotations

import math

import pytest

from topologies.broker_and_link import Broker, Link
from topologies.errors import OverlayError
from topologies.overlay import Overlay


def refusal(brokers: list[Broker], links: list[Link]) -> str:
    with pytest.raises(OverlayError) as caught:
        Overlay("wrong", tuple(brokers), tuple(links))
    assert caught.value.exit_code == 3
    return str(caught.value)


def plain(*ids: str) -> list[Broker]:
    return [Broker(id) for id in ids]


def test_an_overlay_without_brokers_is_refused() -> None:
    assert refusal([], []) == "an overlay needs at least one broker"


def test_two_brokers_with_one_id_are_refused_by_name() -> None:
    assert "broker 'b2' is defined twice" in refusal(plain("b1", "b2", "b2"), [Link("b1", "b2")])


@pytest.mark.parametrize("id", ["", "b 1", "b/1", "b:1", "-b", "b\n"])
def test_an_id_that_is_no_plain_word_is_refused(id: str) -> None:
    assert f"broker id {id!r} is not a plain word" in refusal(plain(id), [])


def test_a_cluster_name_that_is_no_plain_word_is_refused() -> None:
    assert "broker 'b1': 'far west' is not a plain word" in refusal([Broker("b1", ("far west",))], [])


def test_a_cluster_listed_twice_is_refused() -> None:
    assert "broker 'b1' lists cluster 'west' twice" in refusal([Broker("b1", ("west", "west"))], [])


@pytest.mark.parametrize("position", [(math.nan, 0.0), (0.0, math.inf)])
def test_a_position_nowhere_is_refused(position: tuple[float, float]) -> None:
    assert "broker 'b1' stands at" in refusal([Broker("b1", position=position)], [])


def test_a_link_to_an_unknown_broker_is_refused_with_the_nearest_id() -> None:
    message = refusal(plain("broker1", "broker2"), [Link("broker1", "brokr2")])
    assert "link broker1-brokr2 names an unknown broker 'brokr2'; did you mean 'broker2'?" in message


def test_a_link_of_a_broker_with_itself_is_refused() -> None:
    assert "link b1-b1 joins broker 'b1' with itself" in refusal(plain("b1", "b2"), [Link("b1", "b1")])


def test_a_second_link_between_two_brokers_is_refused_in_either_direction() -> None:
    for twin in (Link("b1", "b2"), Link("b2", "b1")):
        assert "link b1-b2 is defined twice" in refusal(plain("b1", "b2"), [Link("b1", "b2"), twin])


@pytest.mark.parametrize(
    ("link", "words"),
    [
        (Link("b1", "b2", latency_ms=-1.0), "link b1-b2 has latency_ms -1.0"),
        (Link("b1", "b2", latency_ms=math.nan), "link b1-b2 has latency_ms nan"),
        (Link("b1", "b2", bandwidth_mbit=0.0), "link b1-b2 has bandwidth_mbit 0.0"),
        (Link("b1", "b2", policy_weight=0), "link b1-b2 has policy_weight 0"),
    ],
)
def test_a_link_with_an_impossible_number_is_refused(link: Link, words: str) -> None:
    assert words in refusal(plain("b1", "b2"), [link])


def test_a_disconnected_overlay_is_refused_by_name() -> None:
    message = refusal(plain("b1", "b2", "b3", "b4", "b5"), [Link("b1", "b2"), Link("b2", "b3"), Link("b4", "b5")])
    assert "disconnected" in message
    assert "2 parts" in message
    assert "from 'b1' to 'b4', 'b5'" in message


def test_a_broker_in_no_cluster_while_others_are_is_refused() -> None:
    message = refusal([Broker("b1", ("west",)), Broker("b2")], [Link("b1", "b2")])
    assert "broker 'b2' is in no cluster" in message
    assert "'west'" in message


def test_a_flagged_edge_broker_in_one_cluster_is_refused() -> None:
    brokers = [Broker("b1", ("west",), edge=True), Broker("b2", ("west",))]
    assert "broker 'b1' says that it is an edge broker but is in cluster 'west'" in refusal(brokers, [Link("b1", "b2")])


def test_a_flagged_edge_broker_in_no_cluster_is_refused() -> None:
    assert "broker 'b1' says that it is an edge broker but is in no cluster" in refusal([Broker("b1", edge=True)], [])


def test_an_edge_broker_that_denies_it_is_refused() -> None:
    brokers = [Broker("b1", ("east", "west"), edge=False)]
    assert "broker 'b1' says that it is no edge broker but is in clusters 'east', 'west'" in refusal(brokers, [])


def test_a_true_statement_about_an_edge_broker_is_accepted() -> None:
    brokers = (Broker("b1", ("west",), edge=False), Broker("b2", ("west", "east"), edge=True), Broker("b3", ("east",)))
    assert Overlay("right", brokers, (Link("b1", "b2"), Link("b2", "b3"))).edge_brokers == ("b2",)


def test_a_cluster_cut_in_two_is_refused_by_name() -> None:
    brokers = [
        Broker("b1", ("west",)),
        Broker("b2", ("east", "west")),
        Broker("b3", ("east",)),
        Broker("b4", ("west",)),
    ]
    links = [Link("b1", "b2"), Link("b2", "b3"), Link("b3", "b4")]
    message = refusal(brokers, links)
    assert "cluster 'west' is cut in 2" in message
    assert "from 'b1' to 'b4'" in message


def test_clusters_that_no_edge_broker_joins_are_refused_with_the_option() -> None:
    brokers = [Broker("b1", ("west",)), Broker("b2", ("west",)), Broker("b3", ("east",))]
    message = refusal(brokers, [Link("b1", "b2"), Link("b2", "b3")])
    assert "no edge broker joins cluster 'west' with 'east'" in message
    assert 'unshared_links = "join"' in message
    assert "--join-links" in message


def test_a_link_whose_ends_share_no_cluster_is_refused_with_the_option() -> None:
    brokers = [Broker("b1", ("west",)), Broker("b2", ("east", "west")), Broker("b3", ("east",))]
    message = refusal(brokers, [Link("b1", "b2"), Link("b2", "b3"), Link("b1", "b3")])
    assert "link b1-b3 crosses from cluster 'west' to 'east' and its ends share none" in message
    assert 'unshared_links = "join"' in message
    assert "--join-links" in message


def test_every_refusal_has_a_different_message() -> None:
    west, east = ("west",), ("east",)
    messages = [
        refusal([], []),
        refusal(plain("b1", "b1"), []),
        refusal(plain("b1"), [Link("b1", "b9")]),
        refusal(plain("b1"), [Link("b1", "b1")]),
        refusal(plain("b1", "b2"), []),
        refusal([Broker("b1", west), Broker("b2")], [Link("b1", "b2")]),
        refusal([Broker("b1", west), Broker("b2", east)], [Link("b1", "b2")]),
        refusal([Broker("b1", west, edge=True)], []),
    ]
    assert len(set(messages)) == len(messages)
