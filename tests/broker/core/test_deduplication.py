"""The window of seen publications: nothing is new twice, and memory does not grow."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from broker.core.deduplication import INCARNATIONS, REMEMBERED_WINDOWS, SeenPublications
from routing.messages import PublicationId


def id(counter: int, incarnation: int = 1, broker: str = "b1") -> PublicationId:
    return PublicationId(broker, incarnation, counter)


@given(st.lists(st.integers(0, 40), max_size=80))
def test_within_the_window_each_is_new_once_and_beyond_it_never(counters: list[int]) -> None:
    window = 8
    seen, added, highest = SeenPublications(window), set(), -1
    for counter in counters:
        is_new = counter not in added and highest - counter < window
        assert seen.add_if_new(id(counter)) is is_new
        added.add(counter)
        highest = max(highest, counter)
        assert seen.is_before_window(id(counter)) is (highest - counter >= window)


@given(st.permutations(range(16)))
def test_any_order_within_the_window_is_accepted_in_full(counters: list[int]) -> None:
    seen = SeenPublications(16)
    assert all(seen.add_if_new(id(counter)) for counter in counters)
    assert not any(seen.add_if_new(id(counter)) for counter in counters)


def test_sources_and_incarnations_have_separate_windows() -> None:
    seen = SeenPublications(4)
    assert seen.add_if_new(id(100))
    assert seen.add_if_new(id(0, incarnation=2))
    assert seen.add_if_new(id(0, broker="b2"))
    assert not seen.add_if_new(id(100))
    assert len(seen) == 3


def test_a_long_jump_removes_older_publications() -> None:
    seen = SeenPublications(4)
    seen.add_if_new(id(0))
    assert seen.add_if_new(id(10**12))
    assert not seen.add_if_new(id(0)), "too old to be new"
    assert seen.add_if_new(id(10**12 - 3))
    assert not seen.add_if_new(id(10**12 - 4))


def test_a_window_uses_no_more_memory_than_its_bits() -> None:
    seen = SeenPublications(64)
    for counter in range(10_000):
        seen.add_if_new(id(counter))
    ((_, bits),) = seen._sources.values()
    assert bits.bit_length() <= REMEMBERED_WINDOWS * 64


def test_a_copy_beyond_the_window_is_recognised_for_some_windows() -> None:
    seen = SeenPublications(4)
    seen.add_if_new(id(0))
    seen.add_if_new(id(9))
    assert not seen.add_if_new(id(0))
    assert id(0) in seen
    assert not seen.add_if_new(id(1)), "too old to be new"
    assert id(1) not in seen, "nobody knows whether it arrived"
    seen.add_if_new(id(4 * REMEMBERED_WINDOWS))
    assert id(0) not in seen


def test_of_a_brokers_incarnations_the_early_ones_are_forgotten() -> None:
    seen = SeenPublications()
    seen.add_if_new(id(0, broker="b2"))
    for incarnation in range(1, 101):
        assert seen.add_if_new(id(0, incarnation))
    assert len(seen) == 1 + INCARNATIONS
    assert not seen.add_if_new(id(0, 100))
    assert not seen.add_if_new(id(0, 100 - INCARNATIONS + 1))
    assert not seen.add_if_new(id(0, broker="b2"))
