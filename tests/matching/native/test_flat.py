"""The native flat index: cases that its structure makes difficult, and features that only a native index has.

`test_every_index` proves for all indexes that results equal those of the linear scan. Here the index has enough
subscriptions to refine its grids, and to split and move its lists and slots.
"""

from __future__ import annotations

import importlib.util
import itertools
import random
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

import matching
from matching import And, Expression, Predicate
from matching.errors import (
    DuplicateIdError,
    PublicationError,
    UnknownIdError,
    UnsupportedExpressionError,
    ValueRefusedError,
)
from matching.expressions.model import Operator
from matching.expressions.values import Value
from matching.indexes.scan import LinearScan
from tests.harness.expression_strategies import conjunctions, publications
from tests.harness.programs import needs_compiler

pytestmark = needs_compiler
if importlib.util.find_spec("matching._native") is not None:
    from matching import _native
    from matching.native import flat


def random_conjunction(random: random.Random) -> Expression:
    parts = []
    for name in random.sample(["a", "b", "c", "d", "e", "s"], random.randint(1, 5)):
        if name == "s":
            parts.append(Predicate(name, Operator.EQ, (random.choice("uvwxyz"),)))
            continue
        low, width = random.randint(0, 60), random.randint(0, 12)
        operator, values = random.choice(
            [
                (Operator.EQ, (low,)),
                (Operator.LT, (low,)),
                (Operator.GE, (low,)),
                (Operator.BETWEEN, (low, low + width)),
                (Operator.IN, (low, low + 1.5, low + width)),
                (Operator.NE, (low,)),
            ]
        )
        parts.append(Predicate(name, operator, values))
    return And.of(parts)


def random_publication(random: random.Random) -> dict[str, Value]:
    values: dict[str, Value] = {name: random.randint(0, 72) for name in "abcde" if random.random() < 0.8}
    if random.random() < 0.5:
        values["s"] = random.choice("uvwxyz")
    if random.random() < 0.2:
        values["a"] = random.uniform(0, 72)
    return values


@pytest.fixture(params=["vectors", "bytes"])
def scan_variant(request: pytest.FixtureRequest) -> Iterator[None]:
    """Runs with the vector instructions of the processor, and without them."""
    if request.param == "vectors" and not _native.has_vectors():
        pytest.skip("this processor has no AVX-512 with VBMI")
    _native.forbid_vectors(request.param == "bytes")
    yield
    _native.forbid_vectors(False)


@pytest.mark.usefixtures("scan_variant")
def test_thousands_of_changes_give_the_answers_of_the_scan() -> None:
    """Adds and removes in waves, so that grids are refined, lists grow and shrink, and slots move."""
    chance = random.Random(7)
    index, scan = flat.Flat(), LinearScan()
    next_id = 0
    for size in (3_000, 200, 2_000, 0, 700):
        while len(scan) < size:
            next_id += 1
            expression = random_conjunction(chance)
            index.add(next_id, expression)
            scan.add(next_id, expression)
        for id in chance.sample(list(scan), len(scan) - size):
            index.remove(id)
            scan.remove(id)
        for _ in range(12):
            publication = random_publication(chance)
            assert index.match(publication).ids == list(scan.match(publication).ids)
    assert list(index) == list(scan)


def test_memory_is_proportional_to_the_stored_subscriptions() -> None:
    chance = random.Random(3)
    index = flat.Flat()
    for id in range(20_000):
        index.add(id, random_conjunction(chance))
    full = index.describe().bytes
    assert full < 400 * 20_000
    for id in chance.sample(range(20_000), 19_000):
        index.remove(id)
    assert index.describe().bytes < full / 3
    for round_number in range(20):
        for id in range(30_000, 31_000):
            index.add(id, random_conjunction(chance))
        for id in range(30_000, 31_000):
            index.remove(id)
        if round_number == 0:
            after_one = index.describe().bytes
    assert index.describe().bytes < after_one * 1.2


@given(conjunctions(0, 5))
def test_an_expression_is_returned_as_it_was_added(expression: Expression) -> None:
    index = flat.Flat()
    index.add(1, expression, "b1")
    assert index.expression(1) == expression
    assert str(index.expression(1)) == str(expression)
    index.remove(1)
    with pytest.raises(UnknownIdError, match="1"):
        index.expression(1)


@given(st.lists(conjunctions(), max_size=12), st.lists(publications(), min_size=1, max_size=5), st.integers(1, 3))
def test_many_publications_at_once_are_answered_as_one_by_one(
    stored: list[Expression], published: list[dict[str, Value]], threads: int
) -> None:
    index = flat.Flat()
    index.add_many(range(len(stored)), stored)
    together = index.match_many(published, threads)
    assert [list(report.ids) for report in together] == [list(index.match(one).ids) for one in published]
    assert [report.stored for report in together] == [len(stored)] * len(published)


def _answer(index: matching.Matcher, attributes: bytes) -> list[int] | tuple[type, str]:
    try:
        return list(index.match_packed(attributes).ids)
    except matching.MatchingError as refused:
        return type(refused), str(refused)


@given(st.lists(conjunctions(), max_size=8), st.binary(max_size=60), publications(), st.data())
def test_any_bytes_are_matched_or_refused_as_in_python(
    stored: list[Expression], noise: bytes, publication: dict[str, Value], data: st.DataObject
) -> None:
    index, scan = flat.Flat(), LinearScan()
    for id, expression in enumerate(stored):
        index.add(id, expression)
        scan.add(id, expression)
    packed = msgpack.packb(publication)
    at = data.draw(st.integers(0, len(packed)))
    for attributes in (noise, packed[:at], packed + noise[:1], packed[:at] + noise[:2] + packed[at:]):
        expected = _answer(scan, attributes)
        assert _answer(index, attributes) == expected


def test_an_attribute_that_is_packed_twice_has_its_last_value() -> None:
    index = flat.Flat()
    index.add(1, "a = 1")
    index.add(2, "a = 2")
    assert index.match_packed(b"\x82\xa1a\x01\xa1a\x02").ids == [2]


def test_ids_behave_like_a_sequence_and_like_a_buffer() -> None:
    index = flat.Flat()
    for id in (5, -3, 2**40, 7):
        index.add(id, "a = 1")
    ids: Any = index.match({"a": 1}).ids
    view = memoryview(ids)
    assert isinstance(ids, Sequence)
    assert (len(ids), ids[0], ids[-1], ids[1:3]) == (4, -3, 2**40, [5, 7])
    assert ids == [-3, 5, 7, 2**40]
    assert ids != [5]
    assert 5 in ids
    assert 6 not in ids
    assert list(reversed(ids)) == [2**40, 7, 5, -3]
    assert (ids.index(7), ids.count(7), ids.count(8)) == (2, 1, 0)
    assert (view.format, view.readonly, view.tolist()) == ("q", True, [-3, 5, 7, 2**40])
    assert repr(ids[:1]) == "Ids([-3])"
    with pytest.raises(IndexError):
        ids[4]


def test_a_batch_with_a_refused_expression_leaves_no_trace() -> None:
    index = flat.Flat()
    index.add(3, "a = 1")
    before = index.describe().details
    with pytest.raises(DuplicateIdError, match="3"):
        index.add_many([1, 2, 3], ["a = 1", "s MATCHES 'x'", "b = 2"])
    with pytest.raises(UnsupportedExpressionError, match="disjunction"):
        index.add_many([4, 5], [matching.parse("a = 1"), matching.parse("a = 1 OR b = 2")])
    assert list(index) == [3]
    assert index.describe().details == before


def test_an_expression_that_is_refused_in_its_middle_leaves_no_trace() -> None:
    new = [matching.parse("new > 1"), matching.parse("name = 'new'"), matching.parse("a = 1 OR b = 2")]
    for index in (flat.Flat(), index_where_additions_wait()):
        index.add(3, "a = 1")
        before = index.describe().details
        with pytest.raises(UnsupportedExpressionError, match="disjunction"):
            index.add(4, And(tuple(new)))
        with pytest.raises(DuplicateIdError, match="3"):
            index.add(3, And(tuple(new[:2])))
        assert index.describe().details == before
        assert 4 not in index
        assert list(index.match({"new": 2, "name": "new", "a": 1}).ids) == [3]


def test_ids_of_any_kind_are_added_and_removed() -> None:
    ids = [*range(-40, 40), -(2**63), 1 - 2**63, 2**63 - 1, 2**63 - 2, *range(10**12, 10**12 + 600, 7)]
    index, chance = flat.Flat(), random.Random(9)
    kept: list[int] = []
    for _ in range(4):
        chance.shuffle(ids)
        for id in ids:
            if id in kept:
                index.remove(id)
                kept.remove(id)
            elif chance.random() < 0.7:
                index.add(id, matching.parse("a = 1"))
                kept.append(id)
        assert list(index) == kept
        assert list(index.match({"a": 1}).ids) == sorted(kept)
        assert [id in index for id in ids] == [id in kept for id in ids]


def index_where_additions_wait() -> Any:
    """Small indexes complete each addition immediately."""
    index = flat.Flat()
    index.add_many(range(1_000, 1_100), [matching.parse("elsewhere = 1")] * 100)
    return index


def test_an_id_that_a_batch_has_twice_is_refused() -> None:
    parsed = [matching.parse(f"a = {value}") for value in range(4)]
    for index in (flat.Flat(), index_where_additions_wait()):
        before = list(index)
        with pytest.raises(DuplicateIdError, match="1"):
            index.add_many([0, 1, 2, 1], parsed)
        assert list(index) == before
        assert list(index.match({"a": 2}).ids) == []


def test_a_new_subscription_is_there_for_any_first_call() -> None:
    for query in (len, list, lambda index: index.match({"a": 1}), lambda index: index.describe()):
        index = index_where_additions_wait()
        for id in range(20):
            index.add(id, matching.parse("a >= 0 AND b < 5"), "b1")
        query(index)
        assert list(index.match({"a": 1, "b": 1}).ids) == list(range(20))
    index = index_where_additions_wait()
    index.add(1, matching.parse("a = 1"), "b1")
    assert 1 in index
    assert str(index.expression(1)) == "a = 1"
    index.add(2, matching.parse("a = 1"), "b2")
    index.remove(2)
    with pytest.raises(DuplicateIdError, match="1"):
        index.add(1, matching.parse("a = 2"))
    index.add(3, matching.parse("a = 1"), "b3")
    assert index.match_destinations({"a": 1}).destinations == ("b1", "b3")


def test_an_attribute_reuses_the_number_of_a_removed_one() -> None:
    index = flat.Flat()
    index.add(0, matching.parse("other = 1"))
    for round_number in range(3):
        index.add(1, matching.parse("price = 1"))
        assert list(index.match({"price": 1}).ids) == [1]
        index.remove(1)
        index.add(2, matching.parse("volume = 1"))
        assert list(index.match({"price": 1}).ids) == []
        assert list(index.match({"volume": 1}).ids) == [2]
        index.remove(2)
        if round_number == 1:
            index.remove(0)


def test_more_attributes_than_the_table_of_names_begins_with() -> None:
    index = flat.Flat()
    names = [f"attribute_{number}" for number in range(3_000)]
    for id, name in enumerate(names):
        index.add(id, matching.parse(f"{name} > 0 AND {names[id // 2]} < 9"))
    for id in range(0, 3_000, 7):
        publication = {names[id]: 1, names[id // 2]: 2} if id else {names[0]: 1}
        expected = [other for other in sorted({id, id // 2}) if {names[other], names[other // 2]} <= publication.keys()]
        assert list(index.match(publication).ids) == expected


def test_bounds_that_are_integers_of_a_narrow_range_and_values_between_them() -> None:
    chance = random.Random(5)
    index, scan = flat.Flat(), LinearScan()
    operators = ("=", "<", "<=", ">", ">=", "!=")
    for id in range(3_000):
        low = chance.randrange(-20, 60)
        text = f"a {chance.choice(operators)} {low} AND b BETWEEN {low} AND {low + chance.randrange(20)}"
        index.add(id, text)
        scan.add(id, text)
    # So close to an integer that their distance from the smallest number is rounded to that of the integer.
    near = (-1e-20, 1e-20, 2.9999999999999996, 3.0000000000000004)
    for id, (operator, bound) in enumerate(itertools.product(operators, (*near, -0.0, -1e300, 1e300)), start=3_000):
        index.add(id, f"a {operator} {bound!r}")
        scan.add(id, f"a {operator} {bound!r}")
    for value in (-1e300, -21, -20.5, -20, -0.5, *near, -0.0, 0, 0.5, 3, 59, 59.5, 80, 2**60, 1e300):
        for other in (-20, 7.25, 30, 79):
            publication: dict[str, Value] = {"a": value, "b": other}
            assert list(index.match(publication).ids) == list(scan.match(publication).ids)


def test_ids_that_no_native_index_can_store_are_refused_by_value() -> None:
    index = flat.Flat()
    with pytest.raises(ValueRefusedError, match=str(2**63)):
        index.add(2**63, "a = 1")
    with pytest.raises(TypeError, match="True"):
        index.add(True, "a = 1")
    assert len(index) == 0


def test_destinations_that_patterns_decide_are_found_and_skipped() -> None:
    index = flat.Flat()
    index.add(1, "s MATCHES '^a'", "b1")
    index.add(2, "s MATCHES 'z$'", "b2")
    index.add(3, "EXISTS s", "b3")
    assert index.match_destinations({"s": "abc"}).destinations == ("b1", "b3")
    assert index.match_packed_destinations(msgpack.packb({"s": "xyz"})).destinations == ("b2", "b3")
    index.add(4, "s MATCHES 'c'")
    with pytest.raises(PublicationError, match="subscription 4"):
        index.match_destinations({"s": "abc"})


def test_a_destination_that_was_hit_is_not_looked_at_again() -> None:
    index = flat.Flat()
    for id in range(100):
        index.add(id, f"a > {id - 200} AND b != {id}", "b1")
    report = index.match_destinations({"a": 5, "b": 1000})
    assert report.destinations == ("b1",)
    assert report.evaluated == 1


def test_other_threads_run_while_many_publications_are_matched() -> None:
    """Meanwhile the index refuses a change, or applies it before or after the match. It is never corrupted."""
    index = flat.Flat()
    chance = random.Random(1)
    index.add_many(range(5_000), [random_conjunction(chance) for _ in range(5_000)])
    published = [random_publication(chance) for _ in range(400)]
    expected = [list(index.match(one).ids) for one in published]
    answers: list[list[list[int]]] = []
    others = [
        threading.Thread(target=lambda: answers.append([list(one.ids) for one in index.match_many(published, 2)]))
        for _ in range(3)
    ]
    for other in others:
        other.start()
    for other in others:
        other.join()
    assert answers == [expected] * 3
