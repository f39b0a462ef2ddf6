"""Keys keep the order of values. Buckets and domains enclose their intervals, so no value is filtered wrongly."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from matching.expressions.conjunction import conditions_of
from matching.expressions.model import Expression
from matching.expressions.normal_forms import as_conjunction
from matching.expressions.values import CLASS_BY_TYPE, TypeClass, Value
from matching.indexes.be_tree.domain import Domain, rounded_outwards
from matching.indexes.be_tree.keys import KEY_BITS, Access, access_to, enclosing_bucket, key_of
from tests.harness.expression_strategies import conjunctions, published_values, values_of

KEYS = st.integers(0, 2**KEY_BITS - 1)
NUMBERS = st.one_of(
    values_of(TypeClass.NUMBER),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.integers(-5, 5).map(lambda steps: 2.0**31 + steps * 2.0**-22),
)
STRINGS = st.one_of(values_of(TypeClass.STRING), st.text(max_size=12))


@given(NUMBERS, NUMBERS)
def test_keys_keep_the_order_of_numbers(one: Value, other: Value) -> None:
    assert 0 <= key_of(one) < 2**KEY_BITS
    if one <= other:  # type: ignore[operator]
        assert key_of(one) <= key_of(other)


@given(STRINGS, STRINGS)
def test_keys_keep_the_order_of_strings(one: Value, other: Value) -> None:
    if one <= other:  # type: ignore[operator]
        assert key_of(one) <= key_of(other)


def test_keys_of_equal_numbers_are_equal_and_of_neighbouring_integers_are_not() -> None:
    assert key_of(5) == key_of(5.0)
    assert key_of(0) == key_of(-0.0)
    assert len({key_of(number) for number in range(-1000, 1000)}) == 2000
    assert len({key_of(number) for number in range(2**40, 2**40 + 1000)}) == 1000
    assert key_of(False) < key_of(True)


def test_integers_with_one_double_share_a_key() -> None:
    assert key_of(2**53) == key_of(2**53 + 1)


@given(st.lists(KEYS, min_size=1, max_size=4))
def test_the_enclosing_bucket_is_the_smallest_dyadic_one(keys: list[int]) -> None:
    low, high = enclosing_bucket(min(keys), max(keys))
    size = high - low + 1
    assert all(low <= key <= high for key in keys)
    assert size & (size - 1) == 0
    assert low % size == 0
    if size > 1:
        middle = (low + high) // 2
        assert min(keys) <= middle < max(keys), "no half encloses all"


@given(st.lists(KEYS, min_size=1, max_size=4), KEYS)
def test_rounded_bounds_enclose_their_keys_and_move_a_few_times_only(keys: list[int], further: int) -> None:
    low, high = rounded_outwards(min(keys), max(keys))
    assert low <= min(keys) <= max(keys) <= high
    wider = rounded_outwards(min(*keys, further), max(*keys, further))
    assert wider[0] <= low <= high <= wider[1]
    assert rounded_outwards(low, high) == (low, high), "what is within changes nothing"


@given(st.lists(KEYS, min_size=2, max_size=6), st.integers(1, 5))
def test_bounds_are_the_same_however_they_grew(keys: list[int], cut: int) -> None:
    first = rounded_outwards(min(keys[:cut]), max(keys[:cut]))
    ends = [*keys[cut:], *first]
    assert rounded_outwards(min(ends), max(ends)) == rounded_outwards(min(keys), max(keys))


def test_the_bounds_of_percentages_are_powers_of_two() -> None:
    low, high = rounded_outwards(key_of(0), key_of(99))
    assert low == key_of(0)
    assert key_of(127) < high < key_of(128)
    low, high = rounded_outwards(key_of(-20), key_of(40))
    assert key_of(-32) <= low < key_of(-31)
    low, high = rounded_outwards(key_of(-(2**40) - 5), key_of(10**12))
    assert key_of(-(2**41)) <= low < key_of(-(2**40))
    assert key_of(10**12) < high < key_of(2**40)


def test_bounds_far_from_zero_are_as_narrow_as_their_values() -> None:
    moments = key_of(1_700_000_000_000), key_of(1_700_000_100_000)
    low, high = rounded_outwards(*moments)
    assert high - low < 4 * (moments[1] - moments[0])


def test_a_value_outside_the_domain_is_where_open_intervals_end() -> None:
    domain = Domain()
    domain.widen(Access(key_of(10), key_of(20)))
    assert domain.position(key_of(1000)) is None
    assert domain.overlap(key_of(1000), None) is None
    domain.widen(Access(key_of(10), None))
    assert domain.bounds is not None
    assert domain.position(key_of(1000)) == domain.bounds[1]
    assert domain.overlap(key_of(1000), None) == (domain.bounds[1], domain.bounds[1])
    assert domain.position(key_of(-1000)) is None
    assert domain.overlap(None, key_of(-1000)) is None


@given(conjunctions(), published_values())
def test_a_value_that_satisfies_a_condition_has_a_key_within_its_access(expression: Expression, value: Value) -> None:
    clause = as_conjunction(expression)
    assert clause is not None
    for condition in conditions_of(clause):
        if condition.dimension[1] is not CLASS_BY_TYPE[type(value)]:
            continue
        if not all(predicate.is_true_for(value) for predicate in condition.predicates):
            continue
        access = access_to(condition)
        key = key_of(value)
        assert access.low is None or access.low <= key
        assert access.high is None or key <= access.high
        assert access.point is None or access.point == value


@given(conjunctions(), published_values())
def test_conditions_that_an_access_proves_are_true(expression: Expression, value: Value) -> None:
    clause = as_conjunction(expression)
    assert clause is not None
    for condition in conditions_of(clause):
        if condition.dimension[1] is not CLASS_BY_TYPE[type(value)]:
            continue
        access = access_to(condition)
        if access.is_proven_by_presence or (access.is_proven_by_point and access.point == value):
            assert all(predicate.is_true_for(value) for predicate in condition.predicates)
