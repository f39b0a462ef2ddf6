"""The order of values is discrete: no value is between a value and its successor. Invalid values are refused."""

from __future__ import annotations

import enum
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matching.errors import MatchingError, PublicationError, ValueRefusedError
from matching.expressions.values import (
    LARGEST_INT,
    SMALLEST_INT,
    TypeClass,
    Value,
    after_prefix,
    check_attribute,
    check_publication,
    check_value,
    smallest,
    successor,
)

LARGEST_FLOAT = 1.7976931348623157e308
EDGES: tuple[int | float, ...] = (0, -0.0, 1, 2**53, 2.0**53, 2**53 + 1, -(2**53) - 1, LARGEST_INT, SMALLEST_INT)
MORE_EDGES = (2.0**63, -(2.0**63), math.inf, -math.inf, LARGEST_FLOAT, -LARGEST_FLOAT, 5e-324, -5e-324)

numbers = st.one_of(
    st.integers(SMALLEST_INT, LARGEST_INT), st.floats(allow_nan=False), st.sampled_from(EDGES + MORE_EDGES)
)
# The last character, and the characters next to the surrogates, are the difficult cases for prefixes.
texts = st.text(st.sampled_from("\0ab\ud7ff\ue000\U0010ffff"), max_size=4)


@st.composite
def close_pairs(draw: st.DrawFn) -> tuple[int | float, int | float]:
    """A number, and another one that is often so close that few numbers are between them."""
    number = draw(numbers)
    steps = draw(st.integers(-3, 3))
    near: list[int | float] = [draw(numbers)]
    if math.isfinite(number):
        near.append(min(max(math.floor(number) + steps, SMALLEST_INT), LARGEST_INT))
    as_float = float(number)
    for _ in range(abs(steps)):
        as_float = math.nextafter(as_float, math.copysign(math.inf, steps))
    near.append(as_float)
    return number, draw(st.sampled_from(near))


@given(close_pairs())
@settings(max_examples=500, deadline=None)
def test_no_number_is_between_a_number_and_its_successor(pair: tuple[int | float, int | float]) -> None:
    number, other = pair
    following = successor(number)
    if following is None:
        assert number == math.inf
        assert other <= number
    else:
        assert isinstance(following, int | float)
        assert check_value(following, "successor") == following
        assert number < following
        assert not number < other < following


@given(texts, texts)
@settings(deadline=None)
def test_no_string_is_between_a_string_and_its_successor(text: str, other: str) -> None:
    for candidate in (other, text + other):
        following = successor(text)
        assert isinstance(following, str)
        assert text < following
        assert not text < candidate < following


def test_true_follows_false_and_nothing_follows_true() -> None:
    assert successor(False) is True
    assert successor(True) is None


@pytest.mark.parametrize(
    ("number", "following"),
    [
        (1, math.nextafter(1.0, math.inf)),
        (2**53, 2**53 + 1),
        (2.0**53, 2**53 + 1),
        (2**53 + 1, 2**53 + 2),
        (LARGEST_INT, 2.0**63),
        (SMALLEST_INT, SMALLEST_INT + 1),
        (math.nextafter(-(2.0**63), -math.inf), SMALLEST_INT),
        (0, 5e-324),
        (-5e-324, 0),
        (LARGEST_FLOAT, math.inf),
        (-math.inf, -LARGEST_FLOAT),
        (math.inf, None),
    ],
)
def test_successors_of_notable_numbers(number: Value, following: Value | None) -> None:
    assert successor(number) == following


@given(numbers, texts)
@settings(deadline=None)
def test_every_order_starts_with_its_smallest_value(number: int | float, text: str) -> None:
    assert smallest(TypeClass.NUMBER) <= number  # type: ignore[operator]
    assert smallest(TypeClass.STRING) <= text  # type: ignore[operator]
    assert smallest(TypeClass.BOOLEAN) is False


@given(texts, texts)
@settings(max_examples=500, deadline=None)
def test_a_prefix_is_an_interval_of_strings(prefix: str, other: str) -> None:
    end = after_prefix(prefix)
    for text in (other, prefix + other, prefix[:-1] + other):
        assert text.startswith(prefix) is (prefix <= text and (end is None or text < end))
    if end is not None:
        assert end.encode()


@pytest.mark.parametrize(
    ("prefix", "end"),
    [
        ("", None),
        ("a", "b"),
        ("a\U0010ffff", "b"),
        ("\U0010ffff\U0010ffff", None),
        ("a\ud7ff", "a\ue000"),
    ],
)
def test_ends_of_notable_prefixes(prefix: str, end: str | None) -> None:
    assert after_prefix(prefix) == end


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (math.nan, "NaN"),
        (2**63, "integer 9223372036854775808 does not fit in 64 bits"),
        (-(2**63) - 1, "integer -9223372036854775809 does not fit in 64 bits"),
        (10**500, "integer of 1661 bits does not fit in 64 bits"),
        (None, "NoneType is not a value"),
        ([1], "list is not a value"),
        (b"x", "bytes is not a value"),
        (1 + 2j, "complex is not a value"),
        ("ab\ud800", "lone surrogate at 2"),
    ],
)
def test_an_invalid_value_is_refused_by_place_and_name(value: object, problem: str) -> None:
    with pytest.raises(ValueRefusedError, match=problem) as refusal:
        check_value(value, "price =")
    assert str(refusal.value).startswith("price =: ")
    with pytest.raises(ValueRefusedError, match=problem) as refusal:
        check_publication({"fine": 1, "the price": value})
    assert str(refusal.value).startswith("attribute 'the price': ")


@pytest.mark.parametrize("name", ["", 7, None, "x\udfff"])
def test_an_invalid_name_is_refused_by_name(name: object) -> None:
    with pytest.raises(ValueRefusedError, match="attribute name") as refusal:
        check_attribute(name)
    assert repr(name) in str(refusal.value)
    with pytest.raises(ValueRefusedError, match="attribute name"):
        check_publication({name: 1})  # type: ignore[dict-item]


@pytest.mark.parametrize("publication", [None, [("a", 1)], "a", 5])
def test_a_publication_that_is_no_map_is_refused(publication: object) -> None:
    with pytest.raises(PublicationError, match=type(publication).__name__):
        check_publication(publication)  # type: ignore[arg-type]


def test_refusals_are_matching_errors_and_value_errors() -> None:
    for refusal in (ValueRefusedError, PublicationError):
        assert issubclass(refusal, MatchingError)
        assert issubclass(refusal, ValueError)


class Colour(enum.StrEnum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Shout(str):
    def __str__(self) -> str:
        return self.upper()


@pytest.mark.parametrize(
    ("value", "exact"),
    [(Colour.RED, "red"), (Level.HIGH, 3), (Shout("é"), "é"), (True, True), (1.0, 1.0), (math.inf, math.inf)],
)
def test_values_become_exact_python_types_and_keep_their_content(value: object, exact: Value) -> None:
    checked = check_value(value, "here")
    assert checked == exact
    assert type(checked) is type(exact)
    checked = check_publication({"a": value})["a"]
    assert type(checked) is type(exact)


def test_a_checked_publication_is_a_copy_with_exact_names() -> None:
    given_publication = {Colour.RED: "x", "é": 2}
    checked = check_publication(given_publication)
    assert checked == {"red": "x", "é": 2}
    assert [type(name) for name in checked] == [str, str]
    given_publication["é"] = 3
    assert checked["é"] == 2
