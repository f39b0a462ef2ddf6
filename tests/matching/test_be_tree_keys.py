"""Keys keep the order of values, and buckets and domains enclose what they must: no value is ever filtered wrongly."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from matching.be_tree.keys import KEY_BITS, Domain, access_to, enclosing_bucket, key_of
from matching.conjunction import conditions_of
from matching.model import Expression
from matching.normal_forms import as_conjunction
from matching.values import CLASS_BY_TYPE, TypeClass, Value
from tests.matching.strategies import conjunctions, published_values, values_of

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
def test_a_domain_encloses_its_keys_and_moves_a_few_times_only(keys: list[int], further: int) -> None:
    domain = Domain.around(keys)
    assert domain.low <= min(keys) <= max(keys) <= domain.high
    wider = Domain.around([*keys, further])
    assert wider.low <= domain.low <= domain.high <= wider.high
    assert Domain.around([domain.low, domain.high]) == domain, "what is within changes nothing"


def test_a_domain_of_percentages_ends_at_powers_of_two() -> None:
    domain = Domain.around([key_of(0), key_of(99)])
    assert domain.low == key_of(0)
    assert key_of(127) < domain.high < key_of(128)
    below_zero = Domain.around([key_of(-20), key_of(40)])
    assert key_of(-32) <= below_zero.low < key_of(-31)


@given(conjunctions(), published_values())
def test_a_value_that_satisfies_a_condition_has_a_key_within_its_access(expression: Expression, value: Value) -> None:
    clause = as_conjunction(expression)
    assert clause is not None
    for condition in conditions_of(clause):
        if condition.dimension[1] is not CLASS_BY_TYPE[type(value)]:
            continue
        if not all(predicate.holds_for(value) for predicate in condition.predicates):
            continue
        access = access_to(condition)
        key = key_of(value)
        assert access.low is None or access.low <= key
        assert access.high is None or key <= access.high
        assert access.point is None or access.point == value


@given(conjunctions(), published_values())
def test_what_an_access_proves_is_true(expression: Expression, value: Value) -> None:
    clause = as_conjunction(expression)
    assert clause is not None
    for condition in conditions_of(clause):
        if condition.dimension[1] is not CLASS_BY_TYPE[type(value)]:
            continue
        access = access_to(condition)
        if access.is_proven_by_presence or (access.is_proven_by_point and access.point == value):
            assert all(predicate.holds_for(value) for predicate in condition.predicates)
