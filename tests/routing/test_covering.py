"""FBR's option `covering` stores fewer copies up the trees and makes the same deliveries, under any changes."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.core.settings import MILLISECOND, SECOND, Settings
from experiments.torture.random_scenario import EXPRESSIONS, REACH, Scenario
from experiments.torture.world import World
from matching.expressions.intersection import covers
from matching.languages.sql import parse
from routing.covering import ForwardAll, Forwarding, ForwardUncovered
from routing.fbr import FBR
from routing.messages import EntryId, PublicationId, Subscribe, Unsubscribe

TREE = EntryId("home", 1, 1)
LINE = [("b1", "b2"), ("b2", "b3"), ("b3", "b4")]
COVERING: dict[str, object] = {"covering": True}


def copy(number: int, text: str) -> Subscribe:
    return Subscribe(EntryId("b9", 1, number), text, tree=TREE)


def add(forwarding: Forwarding, number: int, text: str) -> list[Subscribe | Unsubscribe]:
    return forwarding.add_copy(TREE, copy(number, text), parse(text))


def withdrawal(number: int) -> Unsubscribe:
    return Unsubscribe(EntryId("b9", 1, number), TREE)


def test_a_covered_copy_is_forwarded_when_the_covering_one_is_removed() -> None:
    forwarding = ForwardUncovered()
    assert add(forwarding, 1, "a > 0") == [copy(1, "a > 0")]
    assert add(forwarding, 2, "a > 5") == []
    assert add(forwarding, 3, "a > 7") == []
    assert forwarding.remove_copy(TREE, copy(1, "").entry) == [copy(2, "a > 5"), withdrawal(1)]
    assert forwarding.remove_copy(TREE, copy(2, "").entry) == [copy(3, "a > 7"), withdrawal(2)]


def test_a_wider_copy_replaces_the_forwarded_ones() -> None:
    forwarding = ForwardUncovered()
    add(forwarding, 1, "a > 5")
    add(forwarding, 2, "a < 3")
    assert add(forwarding, 3, "a > 8") == []
    assert add(forwarding, 4, "EXISTS a") == [copy(4, "EXISTS a"), withdrawal(1), withdrawal(2)]
    assert forwarding.remove_copy(TREE, copy(1, "").entry) == [], "it was withdrawn before"
    assert forwarding.remove_copy(TREE, copy(4, "").entry) == [copy(3, "a > 8"), copy(2, "a < 3"), withdrawal(4)]


def test_of_equal_copies_one_is_forwarded() -> None:
    forwarding = ForwardUncovered()
    assert [add(forwarding, number, "a = 1") for number in range(3)] == [[copy(0, "a = 1")], [], []]
    assert forwarding.remove_copy(TREE, copy(0, "").entry) == [copy(1, "a = 1"), withdrawal(0)]


def test_copies_of_different_trees_do_not_cover_each_other() -> None:
    forwarding = ForwardUncovered()
    other = EntryId("home", 1, 2)
    add(forwarding, 1, "a > 0")
    elsewhere = Subscribe(EntryId("b9", 1, 2), "a > 5", tree=other)
    assert forwarding.add_copy(other, elsewhere, parse("a > 5")) == [elsewhere]


@pytest.mark.parametrize("forwarding", [ForwardAll(), ForwardUncovered()], ids=["all", "uncovered"])
def test_a_removed_tree_withdraws_its_forwarded_copies(forwarding: Forwarding) -> None:
    forwarded = [*add(forwarding, 1, "a > 0"), *add(forwarding, 2, "a > 5"), *add(forwarding, 3, "b = 1")]
    assert forwarding.remove_tree(TREE) == [Unsubscribe(each.entry, TREE) for each in forwarded]
    assert forwarding.remove_tree(TREE) == [], "nothing is left to withdraw"


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 20), st.sampled_from(EXPRESSIONS)), max_size=30))
def test_forwarded_copies_cover_every_copy_and_not_each_other(
    steps: list[tuple[bool, int, str]],
) -> None:
    forwarding = ForwardUncovered()
    present: dict[EntryId, str] = {}
    forwarded: dict[EntryId, str] = {}
    for is_new, number, text in steps:
        entry = EntryId("b9", 1, number)
        if is_new and entry not in present:
            changes = add(forwarding, number, text)
            present[entry] = text
        elif not is_new and entry in present:
            changes = forwarding.remove_copy(TREE, entry)
            del present[entry]
        else:
            continue
        for change in changes:
            if isinstance(change, Subscribe):
                assert change.entry not in forwarded
                forwarded[change.entry] = change.expression
            else:
                del forwarded[change.entry]
        assert forwarded.items() <= present.items()
        for text in present.values():
            assert any(covers(parse(wider), parse(text)) for wider in forwarded.values())
        for one, other in itertools.permutations(forwarded.values(), 2):
            assert not covers(parse(one), parse(other))


def copies(world: World) -> dict[str, int]:
    return {name: world.broker(name).router.counts().remote_subscriptions for name in world.seats}


def test_a_line_stores_one_copy_where_one_subscription_covers_another() -> None:
    stored = {}
    for options in ({}, COVERING):
        world = World("fbr", LINE, options=options)
        world.settle()
        world.subscribe("b4", "s", "narrow", "price > 20")
        world.settle()
        world.subscribe("b4", "t", "wide", "price > 10")
        world.settle()
        both = {"b1": 2, "b2": 4, "b3": 6, "b4": 0}
        assert copies(world) == both, "earlier publications may be owed to the narrow one alone"
        world.run(2 * world.settings.hold_unreachable)
        stored[bool(options)] = copies(world)
    # Each broker on the line has its own tree, and is in the trees of the brokers beyond it.
    assert stored == {False: both, True: {"b1": 1, "b2": 2, "b3": 3, "b4": 0}}


def test_a_covered_subscription_continues_without_a_gap_when_the_covering_one_is_withdrawn() -> None:
    world = World("fbr", LINE, options=COVERING)
    world.settle()
    world.subscribe("b4", "t", "wide", "price > 10")
    world.subscribe("b4", "s", "narrow", "price > 20")
    world.settle()
    expected: list[PublicationId] = []
    world.unsubscribe("b4", "t", "wide")
    for _ in range(40):
        id = world.publish("b1", "p", {"price": 30})
        assert id is not None
        expected.append(id)
        world.run(MILLISECOND)
    world.settle()
    assert [world.delivered[id, "s"] for id in expected] == [1] * 40
    assert copies(world) == {"b1": 1, "b2": 2, "b3": 3, "b4": 0}


@pytest.mark.parametrize("options", [{}, COVERING], ids=["all", "uncovered"])
def test_a_withdrawn_advertisement_leaves_nothing_of_its_tree_anywhere(options: dict[str, object]) -> None:
    world = World("fbr", LINE, settings=Settings(is_open=False), options=options)
    world.settle()
    world.advertise("b1", "publisher", "mine", "TRUE")
    world.settle()
    world.subscribe("b4", "t", "wide", "price > 10")
    world.subscribe("b4", "s", "narrow", "price > 20")
    world.settle()
    world.unadvertise("b1", "publisher", "mine")
    world.settle()
    assert copies(world) == {"b1": 0, "b2": 0, "b3": 0, "b4": 0}
    for name in world.seats:
        router = world.broker(name).router
        assert isinstance(router, FBR)
        assert [router._update_receiver.entries_from(neighbour) for neighbour in world.seats] == [()] * 4


def in_quiet_steps(seed: int, options: dict[str, object]) -> tuple[Scenario, list[dict[str, int]]]:
    """Runs a scenario step by step. The trees are complete before the runs differ, so both have the same trees."""
    scenario = Scenario(seed, "fbr", options=options)
    stored: list[dict[str, int]] = []
    for _ in range(20):
        scenario.random.choice((scenario.subscribe, scenario.subscribe, scenario.publish, scenario.withdraw))()
        scenario.world.run(SECOND)
        stored.append(copies(scenario.world))
    return scenario, stored


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 2**31))
def test_covering_delivers_the_same_and_never_stores_more(seed: int) -> None:
    plain, plain_copies = in_quiet_steps(seed, {})
    covering, covering_copies = in_quiet_steps(seed, COVERING)
    assert covering.world.delivered == plain.world.delivered
    assert covering.world.got == plain.world.got
    for fewer, more in zip(covering_copies, plain_copies, strict=True):
        assert all(fewer[name] <= more[name] for name in more)


@pytest.mark.parametrize("is_open", [True, False], ids=["open", "strict"])
@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 2**31), loss=st.sampled_from((0.0, 0.05)))
def test_covering_delivers_owed_publications_while_everything_changes(is_open: bool, seed: int, loss: float) -> None:
    scenario = Scenario(seed, "fbr", is_open=is_open, loss=loss, options=COVERING)
    scenario.churn(20)
    scenario.world.run(REACH)
    scenario.check()
