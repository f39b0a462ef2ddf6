"""Expressions built in Python equal the expressions parsed from text."""

from __future__ import annotations

import pytest

from matching import And, Expression, Not, Or, Predicate, Xor, attr, parse
from matching.errors import ExpressionError, ValueRefusedError


@pytest.mark.parametrize(
    ("built", "text"),
    [
        (attr("a") == 1, "a = 1"),
        (attr("a") == "x", "a = 'x'"),
        (attr("a") == True, "a = TRUE"),  # noqa: E712
        (attr("a") != 1, "a != 1"),
        (attr("a") < 1, "a < 1"),
        (attr("a") <= 1.5, "a <= 1.5"),
        (attr("a") > 1, "a > 1"),
        (attr("a") >= 1, "a >= 1"),
        (1 < attr("a"), "a > 1"),  # noqa: SIM300
        (attr("a").between(1, 2), "a BETWEEN 1 AND 2"),
        (attr("a").not_between(1, 2), "a NOT BETWEEN 1 AND 2"),
        (attr("a").is_in(1, 2), "a IN (1, 2)"),
        (attr("a").is_in([1, 2]), "a IN (1, 2)"),
        (attr("a").is_in(x for x in (1, 2)), "a IN (1, 2)"),
        (attr("a").is_in("xy"), "a IN ('xy')"),
        (attr("a").not_in(("x", "y")), "a NOT IN ('x', 'y')"),
        (attr("a").starts_with("x"), "a STARTS WITH 'x'"),
        (attr("a").not_starts_with("x"), "a NOT STARTS WITH 'x'"),
        (attr("a").ends_with("x"), "a ENDS WITH 'x'"),
        (attr("a").not_ends_with("x"), "a NOT ENDS WITH 'x'"),
        (attr("a").contains("x"), "a CONTAINS 'x'"),
        (attr("a").not_contains("x"), "a NOT CONTAINS 'x'"),
        (attr("a").matches("^x"), "a MATCHES '^x'"),
        (attr("a").not_matches("^x"), "a NOT MATCHES '^x'"),
        (attr("a").like("x!%%", escape="!"), "a STARTS WITH 'x%'"),
        (attr("a").not_like("%x"), "a NOT ENDS WITH 'x'"),
        (attr("a").exists(), "EXISTS a"),
        (attr("a").not_exists(), "NOT EXISTS a"),
        (attr("x y") == 1, '"x y" = 1'),
    ],
)
def test_each_comparison_is_a_predicate(built: Predicate, text: str) -> None:
    assert isinstance(built, Predicate)
    assert built == parse(text)


def test_predicates_combine_with_the_operators_of_sets() -> None:
    a, b, c = attr("a") == 1, attr("b") == 2, attr("c") == 3
    assert a & b & c == And((a, b, c))
    assert a | b | c == Or((a, b, c))
    assert (a ^ b) == Xor(a, b)
    assert ~a == Not(a)
    combined: Expression = (attr("price") > 80) & (attr("symbol") == "IBM") | ~attr("region").is_in("US", "CA")
    assert combined == parse("price > 80 AND symbol = 'IBM' OR NOT region IN ('US', 'CA')")


def test_a_chained_comparison_is_refused_instead_of_losing_its_first_half() -> None:
    with pytest.raises(TypeError, match=r"combine with & \| \^ ~"):
        assert 1 < attr("a") < 3


def test_an_attribute_alone_has_no_truth_and_no_hash() -> None:
    with pytest.raises(TypeError, match=r"attribute 'a' is no condition yet; compare it, or use \.exists\(\)"):
        bool(attr("a"))
    with pytest.raises(TypeError, match="unhashable"):
        hash(attr("a"))


def test_a_value_that_no_predicate_accepts_is_refused() -> None:
    with pytest.raises(ValueRefusedError, match="attribute name '' is not a non-empty string"):
        attr("")
    with pytest.raises(ValueRefusedError, match="a =: NaN is not a value"):
        assert attr("a") == float("nan")
    with pytest.raises(ValueRefusedError, match="a =: Attribute is not a value"):
        assert attr("a") == attr("b")  # type: ignore[operator]
    with pytest.raises(ExpressionError, match="a IN: the list is empty"):
        attr("a").is_in()
    with pytest.raises(ExpressionError, match="booleans have no order"):
        assert attr("a") < True
    with pytest.raises(ExpressionError, match="ESCAPE takes one character"):
        attr("a").like("x", escape="")
